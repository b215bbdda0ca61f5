"""One event in a few words, for a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
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
from incarnate.studio.cutting import fitted
from incarnate.studio.masking import mask_start

if TYPE_CHECKING:
    from incarnate.domain.events import SessionEvent

__all__ = ["summary_of"]

_CHARACTERS = 160
_LOOKED_AT = 4 * _CHARACTERS


def summary_of(event: SessionEvent | Opaque, *, mask: bool) -> str:
    """The beginning of what it says, as one line. It is masked before it is cut: half a secret looks like none."""
    words = " ".join(_text(event, mask=mask).split())
    return words if len(words) <= _CHARACTERS else words[: _CHARACTERS - 1] + "…"


def _text(event: SessionEvent | Opaque, *, mask: bool) -> str:
    match event:
        case ToolCall():
            return f"{_short(event.name, mask=mask)} {_short(event.args, mask=mask)}"
        case ToolResult():
            return _short(event.answer, mask=mask)
        case _:
            return _short(_said(event), mask=mask)


def _said(event: SessionEvent | Opaque) -> str:
    match event:
        case UserMessage() | AssistantMessage() | SystemMessage():
            return event.text
        case Reasoning():
            return "" if event.text is UNSET else event.text
        case Compaction():
            return event.reason if event.summary is UNSET else event.summary
        case Usage():
            return f"{event.input_tokens} in, {event.output_tokens} out"
        case TurnStart():
            return f"turn {event.turn}"
        case TurnEnd():
            return f"turn {event.turn} {_outcome(event)}"
        case Opaque():
            return event.type
        case _:
            return ""


def _short(value: Any, *, mask: bool) -> str:
    """The beginning of a text or of the JSON of a value, of which no more is read than is needed."""
    if isinstance(value, str):
        return mask_start(value, _LOOKED_AT) if mask else value[:_LOOKED_AT]
    return json_text(fitted(value, _LOOKED_AT, mask=mask)[0])


def _outcome(event: TurnEnd) -> str:
    if event.outcome is UNSET:
        return "completed"
    return f"failed: {event.outcome.error.kind}" if isinstance(event.outcome, FailedOutcome) else event.outcome
