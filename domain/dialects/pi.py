"""`pi`: the record shapes of the reference's adapter, JSON-RPC notifications such as `session/message`.

What the command line prints (`--mode json`: records with a `type`) is not read yet: it is counted by kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.base import ResumeInvocation
from incarnate.domain.dialects.drafts import message, reasoning, tool_call, tool_result, usage
from incarnate.domain.dialects.fields import optional_text, require, text_of
from incarnate.domain.dialects.stateless import StatelessDialect

if TYPE_CHECKING:
    from incarnate.domain.dialects.stateless import Maker
    from incarnate.domain.events import SessionEvent

__all__ = ["Pi"]

_NAME = "pi"


def _message(params: dict[str, Any]) -> SessionEvent | None:
    return message(params.get("role"), text_of(_NAME, params.get("text")))


def _reasoning(params: dict[str, Any]) -> SessionEvent:
    return reasoning(params.get("text"), params.get("continuation"))


def _call(params: dict[str, Any]) -> SessionEvent:
    call_id, name = [require(_NAME, params, field, "session/toolCall") for field in ("id", "name")]
    return tool_call(call_id, name, params.get("args"))


def _result(params: dict[str, Any]) -> SessionEvent:
    call_id = require(_NAME, params, "id", "session/toolResult")
    return tool_result(call_id, params.get("result"), ok=params.get("ok") is not False)


def _usage(params: dict[str, Any]) -> SessionEvent:
    return usage(params.get("inputTokens"), params.get("outputTokens"), params.get("model"))


def _of_params(make: Maker) -> Maker:
    """Makes the draft of what a notification carries; one that carries nothing says nothing."""

    def made(record: dict[str, Any]) -> SessionEvent | None:
        params = record.get("params")
        return make(params) if isinstance(params, dict) else None

    return made


_MAKERS: dict[str, Maker] = {
    "session/message": _of_params(_message),
    "session/reasoning": _of_params(_reasoning),
    "session/toolCall": _of_params(_call),
    "session/toolResult": _of_params(_result),
    "session/usage": _of_params(_usage),
}


class Pi(StatelessDialect):
    """The dialect of pi; sessions resume by their id on the command line."""

    name = _NAME
    kind_field = "method"
    makers = _MAKERS

    def foreign_kind(self, record: dict[str, Any]) -> str:
        """The `type` of what the command line prints, else a `response` of the protocol."""
        answered = not record.keys().isdisjoint(("result", "error"))
        return optional_text(record, "type") or ("response" if answered else super().foreign_kind(record))

    def resume(self, session_id: str) -> ResumeInvocation:
        """The arguments that name the session."""
        return ResumeInvocation(transport="cli", session_id=session_id, args=("--session-id", session_id))

    def resume_command(self, session_id: str, prompt: str | None = None) -> tuple[str, ...]:
        """The flags that were recorded to work; interactive without a prompt.

        pi takes whatever stands behind its flag for the id, and would not know a flag with the id in it.
        """
        named = ("--session", session_id)
        return ("pi", *named) if prompt is None else ("pi", "--mode", "json", *named, prompt)
