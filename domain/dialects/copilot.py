"""`@github/copilot`: the record shapes of the reference's SDK adapter.

The envelopes that the command line itself prints (`{type, data, id, ...}`) are not read yet: they are counted by kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from incarnate.domain.dialects.base import Capabilities, Normalized, ResumeInvocation
from incarnate.domain.dialects.fields import as_record, count, require, text_of
from incarnate.domain.events import (
    AssistantMessage,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Copilot"]

_NAME = "@github/copilot"


class Copilot:
    """The dialect of GitHub Copilot; sessions resume through its SDK."""

    name = _NAME
    capabilities = Capabilities(streaming=True, resume_by_id=True)

    def normalizer(self) -> CopilotNormalizer:
        """A normalizer for one stream."""
        return CopilotNormalizer()

    def record_id(self, record: object) -> str | None:  # noqa: ARG002
        """Nothing: an `id` in these records names a tool call, and two records share it."""
        return None

    def session_id(self, record: object) -> str | None:
        """The `sessionId` of a record that has one."""
        found = record.get("sessionId") if isinstance(record, dict) else None
        return found if isinstance(found, str) else None

    def resume(self, session_id: str) -> ResumeInvocation:
        """A call of the SDK's `resumeSession`."""
        return ResumeInvocation(transport="sdk", session_id=session_id, call="resumeSession", args=(session_id,))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The command line's own way to the same session."""
        asked = () if prompt is None else ("-p", prompt, "--output-format", "json")
        return ("copilot", *asked, f"--resume={session_id}")


class CopilotNormalizer:
    """Record to draft, one to at most one; nothing is held between records."""

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or lacks what its type must have.
        """
        record = as_record(_NAME, value)
        make = _MAKERS.get(record["type"])
        draft = None if make is None else make(record)
        return Normalized((), record["type"]) if draft is None else Normalized((draft,))


def _text(record: dict[str, Any]) -> str:
    return text_of(_NAME, record.get("text", record.get("content")))


def _system(record: dict[str, Any]) -> SessionEvent:
    return SystemMessage(id="", parent_id=None, text=_text(record))


def _user(record: dict[str, Any]) -> SessionEvent:
    return UserMessage(id="", parent_id=None, text=_text(record))


def _assistant(record: dict[str, Any]) -> SessionEvent | None:
    text = _text(record)
    return AssistantMessage(id="", parent_id=None, text=text) if text else None


def _reasoning(record: dict[str, Any]) -> SessionEvent:
    text, blob = record.get("text"), record.get("providerContinuation", record.get("reasoningOpaque"))
    return Reasoning(
        id="",
        parent_id=None,
        text=text if isinstance(text, str) else UNSET,
        provider_continuation=blob if isinstance(blob, str) else UNSET,
    )


def _call(record: dict[str, Any]) -> SessionEvent:
    call_id = require(_NAME, record, "id")
    name = require(_NAME, record, "name")
    args = record.get("arguments", record.get("args"))
    return ToolCall(id=f"call:{call_id}", parent_id=None, call_id=call_id, name=name, args=args)


def _result(record: dict[str, Any]) -> SessionEvent:
    call_id = require(_NAME, record, "id")
    error = record.get("error")
    values = (record.get("result"), record.get("output"), error)
    return ToolResult(
        id=f"result:{call_id}",
        parent_id=None,
        call_id=call_id,
        ok=record.get("isError") is not True and error is None,
        result=next((value for value in values if value is not None), None),
        error=error if isinstance(error, str) else UNSET,
    )


def _usage(record: dict[str, Any]) -> SessionEvent:
    model = record.get("model")
    return Usage(
        id="",
        parent_id=None,
        input_tokens=count(record.get("inputTokens", record.get("input_tokens"))),
        output_tokens=count(record.get("outputTokens", record.get("output_tokens"))),
        model=model if isinstance(model, str) else UNSET,
    )


def _start(record: dict[str, Any]) -> SessionEvent:
    return TurnStart(id="", parent_id=None, turn=count(record.get("turn")))


def _end(record: dict[str, Any]) -> SessionEvent:
    return TurnEnd(id="", parent_id=None, turn=count(record.get("turn")))


_MAKERS: dict[str, Callable[[dict[str, Any]], SessionEvent | None]] = {
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
