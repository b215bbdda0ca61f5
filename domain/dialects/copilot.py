"""`@github/copilot`: what `copilot --output-format json` prints, what it keeps, and the reference's SDK adapter.

The first two are envelopes, `{type, data, id, timestamp, parentId}`; the adapter's records have no `data`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import Capabilities, Normalized, ResumeInvocation
from incarnate.domain.dialects.copilot_blocks import NAME as _NAME
from incarnate.domain.dialects.copilot_session import SessionNormalizer
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import as_object, count, either, optional_text, require, text_of
from incarnate.domain.dialects.layouts import Layout
from incarnate.domain.events import SystemMessage, TurnEnd, TurnStart, UserMessage

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["Copilot"]


def _text(record: dict[str, Any]) -> str:
    return text_of(_NAME, either(record, "text", "content"))


def _system(record: dict[str, Any]) -> SessionEvent:
    return SystemMessage(id="", parent_id=None, text=_text(record))


def _user(record: dict[str, Any]) -> SessionEvent:
    return UserMessage(id="", parent_id=None, text=_text(record))


def _assistant(record: dict[str, Any]) -> SessionEvent | None:
    return message("assistant", _text(record))


def _reasoning(record: dict[str, Any]) -> SessionEvent:
    return reasoning(record.get("text"), either(record, "providerContinuation", "reasoningOpaque"))


def _call(record: dict[str, Any]) -> SessionEvent:
    call_id, name = require(_NAME, record, "id"), require(_NAME, record, "name")
    return tool_call(call_id, name, either(record, "arguments", "args"))


def _result(record: dict[str, Any]) -> SessionEvent:
    error = record.get("error")
    ok = record.get("isError") is not True and error is None
    return tool_result(require(_NAME, record, "id"), either(record, "result", "output", "error"), error, ok=ok)


def _usage(record: dict[str, Any]) -> SessionEvent:
    spent = either(record, "inputTokens", "input_tokens"), either(record, "outputTokens", "output_tokens")
    return usage(*spent, record.get("model"))


def _start(record: dict[str, Any]) -> SessionEvent:
    return TurnStart(id="", parent_id=None, turn=count(record.get("turn")))


def _end(record: dict[str, Any]) -> SessionEvent:
    return TurnEnd(id="", parent_id=None, turn=count(record.get("turn")))


_MAKERS: dict[str, Maker] = {
    "system": _system,
    "system_message": _system,
    "user": _user,
    "user_message": _user,
    "assistant": _assistant,
    "assistant_message": _assistant,
    "reasoning": _reasoning,
    "tool_call": _call,
    "tool_result": _result,
    "usage": _usage,
    "turn_started": _start,
    "turn_ended": _end,
    "turn_completed": _end,
}


class CopilotNormalizer:
    """One stream or file; each record tells which form it is of."""

    def __init__(self) -> None:
        self._session = SessionNormalizer()

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its kind must have.
        """
        record = as_object(_NAME, value)
        kind = require(_NAME, record, "type", "a record")
        data = record.get("data")
        if isinstance(data, dict):
            return self._session.feed(kind, record, data)
        if kind == "result":
            return self._session.result(record)
        make = _MAKERS.get(kind)
        draft = None if make is None else make(record)
        return Normalized((), kind) if draft is None else Normalized((draft,))

    def finish(self) -> Normalized:
        """The message that a killed process was writing."""
        return self._session.finish()


class Copilot:
    """The dialect of GitHub Copilot; sessions resume through its SDK, and by their id on the command line."""

    name = _NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)
    layout = Layout(main=r"/session-state/(?P<session>[^/]+)/events\.jsonl$")

    def normalizer(self) -> CopilotNormalizer:
        """A normalizer for one stream or file."""
        return CopilotNormalizer()

    def likeness(self, record: object) -> int:
        """An envelope has `data` and a kind of two words; the adapter's records could be anybody's."""
        if not isinstance(record, dict) or not isinstance(kind := record.get("type"), str):
            return 0
        if isinstance(record.get("data"), dict) and "parentId" in record and isinstance(record.get("id"), str):
            return 2
        if kind == "result" and "exitCode" in record and "sessionId" in record:
            return 2
        return int(kind in _MAKERS and "message" not in record and "session_id" not in record)

    def record_id(self, record: object) -> str | None:
        """The id of an envelope; in the adapter's records an `id` names a tool call, and two records share it."""
        if not isinstance(record, dict) or not isinstance(record.get("data"), dict):
            return None
        return optional_text(record, "id")

    def session_id(self, record: object) -> str | None:
        """The `sessionId` of the first event on disk, and of the last line that is printed."""
        if not isinstance(record, dict):
            return None
        data = record.get("data")
        if record.get("type") == "session.start" and isinstance(data, dict):
            return optional_text(data, "sessionId")
        return None if isinstance(data, dict) else optional_text(record, "sessionId", "session_id")

    def resume(self, session_id: str) -> ResumeInvocation:
        """A call of the SDK's `resumeSession`."""
        return ResumeInvocation(transport="sdk", session_id=session_id, call="resumeSession", args=(session_id,))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The command line's own way to the same session."""
        asked = () if prompt is None else ("-p", prompt, "--output-format", "json")
        return ("copilot", *asked, f"--resume={session_id}")
