"""`qwen-code`: the stream of `qwen -o stream-json`, the chats that it saves, and the events of Qwen Code's core.

The records themselves tell the form: the stream's carry `session_id`, a chat's `sessionId`, and records with neither
are the events of the core, which is what the reference's adapter reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import Capabilities, Normalized, ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import either, optional_text, require, text_of
from incarnate.domain.dialects.layouts import Layout
from incarnate.domain.dialects.qwen_chats import QwenChats
from incarnate.domain.dialects.qwen_stream import NAME, QwenStream
from incarnate.domain.dialects.stateless import StatelessDialect

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["QwenCode"]


def _content(record: dict[str, Any]) -> SessionEvent | None:
    return message(record.get("role"), text_of(NAME, record.get("text")))


def _thought(record: dict[str, Any]) -> SessionEvent:
    """Subject and description as one text, as they are shown."""
    parts = [optional_text(record, name) for name in ("subject", "description")]
    text = ": ".join([part for part in parts if part is not None])
    return reasoning(text or None, record.get("thoughtSignature"))


def _call(record: dict[str, Any]) -> SessionEvent:
    return tool_call(require(NAME, record, "callId"), require(NAME, record, "name"), record.get("args"))


def _result(record: dict[str, Any]) -> SessionEvent:
    call_id, error = require(NAME, record, "callId"), record.get("error")
    return tool_result(call_id, either(record, "responseParts", "error"), error, ok=error is None)


def _usage(record: dict[str, Any]) -> SessionEvent:
    return usage(record.get("promptTokenCount"), record.get("candidatesTokenCount"), record.get("model"))


_MAKERS: dict[str, Maker] = {
    "content": _content,
    "thought": _thought,
    "tool_call_request": _call,
    "tool_call_response": _result,
    "usage_metadata": _usage,
}


class _Core(StatelessDialect):
    """The events of the core; each is understood alone."""

    name = NAME
    makers = _MAKERS

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("-r", session_id))


_CORE = _Core()


class QwenNormalizer:
    """One stream or chat."""

    def __init__(self) -> None:
        self._stream = QwenStream()
        self._chats = QwenChats()

    def feed(self, value: object) -> Normalized:
        """What this record means; a whole list of them is what `-o json` prints.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        if isinstance(value, list) and value and all(_is_of_stream(record) for record in value):
            found = [self._stream.feed(record["type"], record) for record in value]
            return Normalized(tuple([draft for one in found for draft in one.drafts]), "json")
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            if "session_id" in value:
                return self._stream.feed(value["type"], value)
            if "sessionId" in value:
                return self._chats.feed(value["type"], value)
        return _CORE.feed(value)

    def finish(self) -> Normalized:
        """The part of an answer that came before the stream was cut, and the end of a turn that failed."""
        return Normalized((*self._stream.finish().drafts, *self._chats.finish()))


def _is_of_stream(record: object) -> bool:
    return isinstance(record, dict) and isinstance(record.get("type"), str) and "session_id" in record


class QwenCode:
    """The dialect of Qwen Code; sessions resume by their id on the command line."""

    name = NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(
        main=r"/chats/(?P<session>[^/]+)\.jsonl$",
        agents=r"/subagents/(?P<session>[^/]+)/agent-(?P<agent>[^/]+)\.jsonl$",
    )

    def normalizer(self) -> QwenNormalizer:
        """A normalizer for one stream or chat."""
        return QwenNormalizer()

    def likeness(self, record: object) -> int:
        """Its version on the first line, saved parts beside a session, and an empty signature are its alone."""
        if isinstance(record, list):
            return self.likeness(record[0]) if record else 0
        if not isinstance(record, dict):
            return 0
        told = record.get("message")
        saved = isinstance(told, dict) and "parts" in told and "sessionId" in record
        if "qwen_code_version" in record or "provenance" in record or saved or "systemPayload" in record:
            return 2
        if "session_id" in record:
            return _stream_likeness(record, told)
        return _CORE.likeness(record)

    def record_id(self, record: object) -> str | None:
        """The `uuid` of a record, but of the first line of a process, whose `uuid` is the session's id."""
        if not isinstance(record, dict) or record.get("subtype") == "init":
            return None
        return optional_text(record, "uuid")

    def session_id(self, record: object) -> str | None:
        """The `session_id` of the stream, the `sessionId` of a chat."""
        return _CORE.session_id(record[0] if isinstance(record, list) and record else record)

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return _CORE.resume(session_id)

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt.

        The id is part of its flag: apart from it, one that begins with a dash is taken for a flag of its own.
        """
        asked = () if prompt is None else ("-o", "stream-json", "-p", prompt)
        return ("qwen", *asked, f"--resume={session_id}")


def _stream_likeness(record: dict[str, Any], told: object) -> int:
    """Claude writes the same records; its answers share one id, and Qwen Code's are each named as their line is."""
    own = isinstance(told, dict) and told.get("id") is not None and told.get("id") == record.get("uuid")
    known = record.get("type") in ("system", "assistant", "user", "result", "stream_event")
    return 2 if own else int(known and "uuid" in record)
