"""The drafts that the records of most harnesses come to, whatever these call their fields."""

from __future__ import annotations

from msgspec import UNSET

from incarnate.domain.dialects.fields import count
from incarnate.domain.events import (
    AssistantMessage,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

__all__ = ["message", "reasoning", "tool_call", "tool_result", "usage"]


def message(role: object, text: str) -> SessionEvent | None:
    """What the system, the user or else the assistant said; None where that is nothing."""
    if not text:
        return None
    if role == "system":
        return SystemMessage(id="", parent_id=None, text=text)
    if role == "user":
        return UserMessage(id="", parent_id=None, text=text)
    return AssistantMessage(id="", parent_id=None, text=text)


def reasoning(text: object, continuation: object) -> SessionEvent:
    """A thought; what is no text of it is left out."""
    return Reasoning(
        id="",
        parent_id=None,
        text=text if isinstance(text, str) else UNSET,
        provider_continuation=continuation if isinstance(continuation, str) else UNSET,
    )


def tool_call(call_id: str, name: str, args: object) -> SessionEvent:
    """A call, named after its id."""
    return ToolCall(id=f"call:{call_id}", parent_id=None, call_id=call_id, name=name, args=args)


def tool_result(call_id: str, result: object, error: object = None, *, ok: bool) -> SessionEvent:
    """The answer to a call, named after its id; why it failed is told where `error`, or else the result, is a text."""
    if error is None and not ok:
        error = result
    return ToolResult(
        id=f"result:{call_id}",
        parent_id=None,
        call_id=call_id,
        ok=ok,
        result=result,
        error=error if isinstance(error, str) else UNSET,
    )


def usage(input_tokens: object, output_tokens: object, model: object) -> SessionEvent:
    """Tokens spent; a count that makes no sense is 0."""
    return Usage(
        id="",
        parent_id=None,
        input_tokens=count(input_tokens),
        output_tokens=count(output_tokens),
        model=model if isinstance(model, str) else UNSET,
    )
