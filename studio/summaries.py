"""One event in a few words, for a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.projections.model_messages import json_text
from incarnate.studio.masking import mask_text

if TYPE_CHECKING:
    from incarnate.domain.events import Opaque, SessionEvent

__all__ = ["summary_of"]

_CHARACTERS = 160
_LOOKED_AT = 4 * _CHARACTERS


def summary_of(event: SessionEvent | Opaque, *, mask: bool) -> str:
    """The beginning of what it says, as one line."""
    text = _text(event)[:_LOOKED_AT]
    words = " ".join(
        (mask_text(text) if mask else text).split()
    )  # masked before it is cut: half a secret looks like none
    return words if len(words) <= _CHARACTERS else words[: _CHARACTERS - 1] + "…"


def _text(event: SessionEvent | Opaque) -> str:
    match event:
        case UserMessage() | AssistantMessage() | SystemMessage():
            return event.text
        case Reasoning():
            return "" if event.text is UNSET else event.text
        case ToolCall():
            return f"{event.name} {_short(event.args)}"
        case ToolResult():
            return event.error if event.error is not UNSET and not event.ok else _short(event.result)
        case Compaction():
            return event.reason if event.summary is UNSET else event.summary
        case Usage():
            return f"{event.input_tokens} in, {event.output_tokens} out"
        case _:
            return _mark(event)


def _mark(event: TurnStart | TurnEnd | Opaque) -> str:
    if isinstance(event, TurnStart):
        return f"turn {event.turn}"
    return f"turn {event.turn} {_outcome(event)}" if isinstance(event, TurnEnd) else event.type


def _short(value: object) -> str:
    return value[:_LOOKED_AT] if isinstance(value, str) else json_text(value)


def _outcome(event: TurnEnd) -> str:
    if event.outcome is UNSET:
        return "completed"
    return f"failed: {event.outcome.error.kind}" if isinstance(event.outcome, FailedOutcome) else event.outcome
