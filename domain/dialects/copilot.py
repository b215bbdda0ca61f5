"""`@github/copilot`: the record shapes of the reference's SDK adapter.

The envelopes that the command line itself prints (`{type, data, id, ...}`) are not read yet: they are counted by kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import count, either, require, text_of
from incarnate.domain.dialects.stateless import StatelessDialect
from incarnate.domain.events import SystemMessage, TurnEnd, TurnStart, UserMessage

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["Copilot"]

_NAME = "@github/copilot"


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


class Copilot(StatelessDialect):
    """The dialect of GitHub Copilot; sessions resume through its SDK."""

    name = _NAME
    makers = _MAKERS

    def resume(self, session_id: str) -> ResumeInvocation:
        """A call of the SDK's `resumeSession`."""
        return ResumeInvocation(transport="sdk", session_id=session_id, call="resumeSession", args=(session_id,))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The command line's own way to the same session."""
        asked = () if prompt is None else ("-p", prompt, "--output-format", "json")
        return ("copilot", *asked, f"--resume={session_id}")
