"""Drafts that carry the harness's own time and the call inside which they happened."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import UNNUMBERED
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.events import (
    AssistantMessage,
    FailedOutcome,
    Reasoning,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnOutcome,
    TurnStart,
    UserMessage,
)

__all__ = ["OpenTurn", "answered", "called", "failure", "prompted", "said", "thought"]


def prompted(text: str, stamp: Stamp) -> SessionEvent:
    """What the user asked."""
    return UserMessage(**stamp.fields(), text=text)


def said(text: str, stamp: Stamp) -> SessionEvent:
    """What the model said."""
    return AssistantMessage(**stamp.fields(), text=text)


def thought(text: object, blob: object, stamp: Stamp) -> SessionEvent:
    """What the model thought; an empty blob continues nothing and is left out."""
    return Reasoning(
        **stamp.fields(),
        text=text if isinstance(text, str) else UNSET,
        provider_continuation=blob if isinstance(blob, str) and blob else UNSET,
    )


def called(call_id: str, name: str, args: Any, stamp: Stamp) -> SessionEvent:
    """A call, named after its id."""
    return ToolCall(**stamp.fields(f"call:{call_id}"), call_id=call_id, name=name, args=args)


def answered(call_id: str, result: Any, stamp: Stamp, *, ok: bool = True, error: object = None) -> SessionEvent:
    """The answer to a call, named after its id; why it failed is told where `error`, or else the result, is a text."""
    reason = result if error is None else error
    return ToolResult(
        **stamp.fields(f"result:{call_id}"),
        call_id=call_id,
        ok=ok,
        result=result,
        error=reason if isinstance(reason, str) and not ok else UNSET,
    )


def failure(kind: str, message: str) -> FailedOutcome:
    """The outcome of a turn that ended in an error."""
    return FailedOutcome(TurnError(kind, message))


class OpenTurn:
    """The turn that is open, if one is."""

    def __init__(self) -> None:
        self.is_open = False

    def begin(self, stamp: Stamp, outcome: TurnOutcome | UnsetType = "interrupted") -> list[SessionEvent]:
        """A turn begins; one that was open ended there with `outcome`."""
        ended = self.end(outcome, stamp)
        self.is_open = True
        return [*ended, TurnStart(id="", parent_id=None, occurred_at=stamp.occurred_at, turn=UNNUMBERED)]

    def end(self, outcome: TurnOutcome | UnsetType, stamp: Stamp) -> list[SessionEvent]:
        """The open turn ends, if one is open; without an outcome where nothing tells it."""
        if not self.is_open:
            return []
        self.is_open = False
        return [TurnEnd(id="", parent_id=None, occurred_at=stamp.occurred_at, turn=UNNUMBERED, outcome=outcome)]
