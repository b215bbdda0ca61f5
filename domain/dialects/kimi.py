"""`kimi`: the record shapes of the reference's adapter, told apart by their `event`.

What the command line prints (`--output-format stream-json`: messages with a `role`) is not read yet: it is counted by
kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import either, optional_text, require, text_of
from incarnate.domain.dialects.stateless import StatelessDialect
from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["Kimi"]

_NAME = "kimi"


def _text(record: dict[str, Any]) -> SessionEvent | None:
    return message(record.get("role"), text_of(_NAME, record.get("text")))


def _reasoning(record: dict[str, Any]) -> SessionEvent:
    return reasoning(record.get("text"), record.get("continuation"))


def _tool(record: dict[str, Any]) -> SessionEvent:
    """A call or its result, as the phase says; without one it is a call."""
    phase, call_id = record.get("phase", "call"), require(_NAME, record, "id", "tool")
    if phase == "call":
        return tool_call(call_id, require(_NAME, record, "name", "tool"), either(record, "arguments", "args"))
    if phase == "result":
        return tool_result(call_id, record.get("output"), ok=record.get("ok") is not False)
    raise DialectError(_NAME, f"tool is in the phase call or result, not {phase!r:.40}")


def _usage(record: dict[str, Any]) -> SessionEvent:
    return usage(record.get("prompt_tokens"), record.get("completion_tokens"), record.get("model"))


_MAKERS: dict[str, Maker] = {"text": _text, "reasoning": _reasoning, "tool": _tool, "usage": _usage}


class Kimi(StatelessDialect):
    """The dialect of Kimi CLI; sessions resume by their id on the command line."""

    name = _NAME
    kind_field = "event"
    makers = _MAKERS

    def foreign_kind(self, record: dict[str, Any]) -> str:
        """The `role` or `type` of what the command line writes."""
        return optional_text(record, "role", "type") or super().foreign_kind(record)

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("-S", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt.

        The id is part of its flag: apart from it, one that begins with a dash is taken for a flag of its own.
        """
        asked = () if prompt is None else ("--print", "--output-format", "stream-json", "-p", prompt)
        return ("kimi", *asked, f"--session={session_id}")
