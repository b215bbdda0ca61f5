"""Transcript rows to session events and back.

Row to event to row gives the same bytes for every row that the codec accepts. The other way loses what the format has
no place for; `to_rows` counts it. Never in a transcript are event ids, the chain of parents and the harness's times,
so these are not counted: the ids and the chain are arguments on the way back.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, assert_never

from msgspec import UNSET

from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Opaque,
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
from incarnate.domain.transcripts.rows import (
    AssistantMessageRow,
    Row,
    ThinkingDeltaRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserMessageRow,
)
from incarnate.domain.turns import turn_id, turn_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from msgspec import UnsetType

__all__ = ["Translated", "left_out", "to_event", "to_events", "to_row", "to_rows"]


class Translated(NamedTuple):
    """Rows, and how often what could not become one was left out, by kind (see `left_out`)."""

    rows: list[Row]
    left_out: dict[str, int]


def to_events(rows: Iterable[Row], new_id: Callable[[], str], parent_id: str | None = None) -> list[SessionEvent]:
    """The events of `rows`, each following the one before it, the first following `parent_id`."""
    events: list[SessionEvent] = []
    for row in rows:
        event = to_event(row, new_id(), parent_id)
        events.append(event)
        parent_id = event.id
    return events


def to_event(row: Row, id: str, parent_id: str | None) -> SessionEvent:
    """The event of a row, by the name `id`, following the event `parent_id`."""
    match row:
        case UserMessageRow():
            return UserMessage(id=id, parent_id=parent_id, text=row.text)
        case AssistantMessageRow():
            return AssistantMessage(id=id, parent_id=parent_id, text=row.text)
        case ThinkingDeltaRow():
            return Reasoning(id=id, parent_id=parent_id, text=row.text)
        case ToolCallRow() | ToolResultRow():
            return _tool_event(row, id, parent_id)
        case TurnStartRow():
            number, label = _turn(row.id)
            return TurnStart(id=id, parent_id=parent_id, turn=number, label=label)
        case TurnEndRow():
            number, label = _turn(row.id)
            return TurnEnd(id=id, parent_id=parent_id, turn=number, label=label, outcome=row.outcome)
        case _:
            assert_never(row)


def _tool_event(row: ToolCallRow | ToolResultRow, id: str, parent_id: str | None) -> SessionEvent:
    inside = UNSET if row.parent_id is None else row.parent_id
    if isinstance(row, ToolCallRow):
        return ToolCall(id=id, parent_id=parent_id, parent_call_id=inside, call_id=row.id, name=row.name, args=row.args)
    return ToolResult(
        id=id,
        parent_id=parent_id,
        parent_call_id=inside,
        call_id=row.id,
        ok=row.error is None,
        result=row.value,
        error=UNSET if row.error is None else row.error,
    )


def _turn(text: str) -> tuple[int, str | UnsetType]:
    """The number and the label of a turn id: `turn-007` has the number 7 and keeps its label."""
    number = turn_number(text)
    if number is None:
        return 0, text
    return number, UNSET if text == turn_id(number) else text


def to_rows(events: Iterable[SessionEvent | Opaque]) -> Translated:
    """The rows of `events`, and what was left out, counted."""
    rows: list[Row] = []
    counts: Counter[str] = Counter()
    for event in events:
        row = to_row(event)
        if row is not None:
            rows.append(row)
        if (kind := left_out(event)) is not None:
            counts[kind] += 1
    return Translated(rows, dict(counts))


def to_row(event: SessionEvent | Opaque) -> Row | None:
    """The row of an event; None where the format has none for it.

    A message, a thought or a turn inside a call has none: only tool rows can name their call, and without it a
    sub-agent's words would pass for the session's own.
    """
    match event:
        case ToolCall() | ToolResult():
            return _tool_row(event)
        case SystemMessage() | Compaction() | Usage() | Opaque():
            return None
        case _ if event.parent_call_id is not UNSET:
            return None
        case UserMessage():
            return UserMessageRow(event.text)
        case AssistantMessage():
            return AssistantMessageRow(event.text)
        case Reasoning():
            return None if event.text is UNSET else ThinkingDeltaRow(event.text)
        case TurnStart():
            return TurnStartRow(_turn_text(event))
        case TurnEnd():
            return TurnEndRow(_turn_text(event), "completed" if event.outcome is UNSET else event.outcome)
        case _:
            assert_never(event)


def _tool_row(event: ToolCall | ToolResult) -> Row:
    inside = None if event.parent_call_id is UNSET else event.parent_call_id
    if isinstance(event, ToolCall):
        return ToolCallRow(event.call_id, event.name, event.args, inside)
    # A row's result failed where it has an error: "" for a failure without words, whose value then tells the model.
    failure = "" if event.error is UNSET else event.error
    return ToolResultRow(event.call_id, event.result, None if event.ok else failure, inside)


def _turn_text(event: TurnStart | TurnEnd) -> str:
    return turn_id(event.turn) if event.label is UNSET else event.label


def left_out(event: SessionEvent | Opaque) -> str | None:
    """The kind of what `to_row` leaves out of an event; None where it leaves out nothing.

    An event without a row is counted by its type (`usage`), or as `assistant in a call`; a part of an event that has
    one, by type and field (`reasoning.providerContinuation`).
    """
    if isinstance(event, Opaque):
        return event.type
    kind = str(type(event).__struct_config__.tag)
    if to_row(event) is None:
        return kind if event.parent_call_id is UNSET else f"{kind} in a call"
    if isinstance(event, Reasoning) and event.provider_continuation is not UNSET:
        return f"{kind}.providerContinuation"
    if isinstance(event, ToolResult) and event.ok and event.error is not UNSET:
        return f"{kind}.error"
    return None
