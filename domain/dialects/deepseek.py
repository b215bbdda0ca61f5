"""`deepseek`: the record shapes of the reference's SDK adapter, told apart by their `kind`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import either, require, text_of
from incarnate.domain.dialects.stateless import StatelessDialect

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["DeepSeek"]

_NAME = "deepseek"


def _message(record: dict[str, Any]) -> SessionEvent | None:
    return message(record.get("role"), text_of(_NAME, either(record, "content", "text")))


def _reasoning(record: dict[str, Any]) -> SessionEvent:
    return reasoning(either(record, "content", "text"), record.get("continuation"))


def _call(record: dict[str, Any]) -> SessionEvent:
    call_id, name = [require(_NAME, record, field, "tool") for field in ("id", "name")]
    return tool_call(call_id, name, record.get("arguments"))


def _result(record: dict[str, Any]) -> SessionEvent:
    call_id = require(_NAME, record, "id", "tool_result")
    return tool_result(call_id, record.get("output"), ok=record.get("ok") is not False)


def _usage(record: dict[str, Any]) -> SessionEvent:
    spent = either(record, "inputTokens", "input"), either(record, "outputTokens", "output")
    return usage(*spent, record.get("model"))


_MAKERS: dict[str, Maker] = {
    "message": _message,
    "reasoning": _reasoning,
    "tool": _call,
    "tool_result": _result,
    "usage": _usage,
}


class DeepSeek(StatelessDialect):
    """The dialect of DeepSeek; sessions resume through its SDK alone."""

    name = _NAME
    kind_field = "kind"
    makers = _MAKERS

    def resume(self, session_id: str) -> ResumeInvocation:
        """A call of the SDK's `restore`."""
        return ResumeInvocation(transport="sdk", session_id=session_id, call="restore", args=(session_id,))

    def resume_command(self, session_id: str, prompt: str | None = None) -> None:
        """There is no command line."""
