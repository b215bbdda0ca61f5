"""`kimi`: kimi-cli and kimi-code, what each prints and what each saves, and the shapes of the reference's adapter.

The records themselves tell the form: the reference's have an `event` that is a text, printed messages and those of a
`context.jsonl` a `role`, lines of kimi-cli's wire file a `message` with a `payload`, and those of kimi-code's a `type`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import Capabilities, Normalized, ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import either, optional_text, require, text_of
from incarnate.domain.dialects.kimi_code_wire import KimiCodeWire
from incarnate.domain.dialects.kimi_parts import NAME
from incarnate.domain.dialects.kimi_print import KimiPrint
from incarnate.domain.dialects.kimi_wire import KimiWire
from incarnate.domain.dialects.layouts import Layout
from incarnate.domain.dialects.stateless import StatelessDialect
from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["Kimi"]


def _text(record: dict[str, Any]) -> SessionEvent | None:
    return message(record.get("role"), text_of(NAME, record.get("text")))


def _reasoning(record: dict[str, Any]) -> SessionEvent:
    return reasoning(record.get("text"), record.get("continuation"))


def _tool(record: dict[str, Any]) -> SessionEvent:
    """A call or its result, as the phase says; without one it is a call."""
    phase, call_id = record.get("phase", "call"), require(NAME, record, "id", "tool")
    if phase == "call":
        return tool_call(call_id, require(NAME, record, "name", "tool"), either(record, "arguments", "args"))
    if phase == "result":
        return tool_result(call_id, record.get("output"), ok=record.get("ok") is not False)
    raise DialectError(NAME, f"tool is in the phase call or result, not {phase!r:.40}")


def _usage(record: dict[str, Any]) -> SessionEvent:
    return usage(record.get("prompt_tokens"), record.get("completion_tokens"), record.get("model"))


_MAKERS: dict[str, Maker] = {"text": _text, "reasoning": _reasoning, "tool": _tool, "usage": _usage}


class _Reference(StatelessDialect):
    """The shapes of the reference; each is understood alone."""

    name = NAME
    kind_field = "event"
    makers = _MAKERS

    def foreign_kind(self, record: dict[str, Any]) -> str:
        """What else the command lines print, such as a notification or a plan."""
        named = optional_text(record, "type", "category")
        return named or ("plan" if "file_path" in record else super().foreign_kind(record))


_REFERENCE = _Reference()


class KimiNormalizer:
    """One stream or file."""

    def __init__(self, code: KimiCodeWire | None = None) -> None:
        self._print = KimiPrint()
        self._wire = KimiWire()
        self._code = code or KimiCodeWire()

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        if not isinstance(value, dict) or isinstance(value.get("event"), str):
            return _REFERENCE.feed(value)
        role, kind, inner = value.get("role"), value.get("type"), value.get("message")
        if isinstance(role, str):
            return self._print.feed(role, value)
        if isinstance(kind, str):
            return Normalized((), kind) if "category" in value else self._code.feed(kind, value)
        if isinstance(inner, dict) and "payload" in inner:
            return self._wire.feed(value)
        return Normalized((), "session_index") if "sessionDir" in value else _REFERENCE.feed(value)

    def text(self, line: str) -> Normalized:
        """A line that is no JSON, such as an error of kimi-cli."""
        return self._print.text(line)

    def finish(self) -> Normalized:
        """What was begun and will not be ended."""
        return Normalized((*self._print.finish().drafts, *self._wire.finish(), *self._code.finish()))

    def agent(self, name: str) -> KimiNormalizer:
        """A normalizer for the file of a sub-agent of kimi-code."""
        return KimiNormalizer(KimiCodeWire(self._code.starts, name))


class Kimi:
    """The dialect of Kimi CLI and Kimi Code; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(
        main=r"/sessions/[^/]+/(?P<session>[^/]+)/(?:agents/main/)?wire\.jsonl$",
        agents=r"/sessions/[^/]+/(?P<session>[^/]+)/agents/(?P<agent>(?!main/)[^/]+)/wire\.jsonl$",
    )

    def normalizer(self) -> KimiNormalizer:
        """A normalizer for one stream or file."""
        return KimiNormalizer()

    def likeness(self, record: object) -> int:
        """Roles that begin with an underscore, wire messages and kinds with a dot are its alone."""
        if not isinstance(record, dict):
            return 0
        role, kind, inner = record.get("role"), record.get("type"), record.get("message")
        if isinstance(role, str) and "event" not in record:
            return 2 if role.startswith("_") or role == "meta" else int("content" in record or "tool_calls" in record)
        if isinstance(inner, dict) and "payload" in inner and "timestamp" in record:
            return 2
        if isinstance(kind, str) and not isinstance(record.get("event"), str):
            return _code_likeness(kind, record)
        return _REFERENCE.likeness(record)

    def record_id(self, record: object) -> None:
        """Nothing: an `id` in these records names a tool call, and two records share it."""

    def session_id(self, record: object) -> str | None:
        """The `session_id` of kimi-code's last line, and the folder that its index names."""
        if not isinstance(record, dict):
            return None
        folder = optional_text(record, "sessionDir")
        return _REFERENCE.session_id(record) or (None if folder is None else folder.rstrip("/").rpartition("/")[2])

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("-S", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work, of the program that names sessions so; interactive without a prompt.

        The id is part of its flag: apart from it, one that begins with a dash is taken for a flag of its own.
        """
        printing = () if session_id.startswith("session_") else ("--print",)
        asked = () if prompt is None else (*printing, "--output-format", "stream-json", "-p", prompt)
        return ("kimi", *asked, f"--session={session_id}")


_CODE_KINDS = ("context.", "turn.", "usage.record", "llm.", "step.", "profile.", "permission.", "runtime.", "subagent.")


def _code_likeness(kind: str, record: dict[str, Any]) -> int:
    if kind.startswith(_CODE_KINDS) or (kind == "metadata" and "protocol_version" in record):
        return 2
    return int("." in kind and "time" in record)
