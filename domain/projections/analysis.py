"""What a log amounts to: counts, calls without results, results without calls, outcomes, the audit of its turn ids."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    FailedOutcome,
    Opaque,
    Reasoning,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from incarnate.domain.projections.base import Reducer
from incarnate.domain.projections.vector import Vector
from incarnate.domain.turns import next_turn_after, turn_id, turn_number

__all__ = ["Analysis", "DanglingCall", "NonMonotonicTurn", "ReplayAnalysis", "TurnIds"]


class DanglingCall(msgspec.Struct, frozen=True, gc=False):
    """A call id without any result; `name` is the tool of its latest call."""

    id: str
    name: str


class NonMonotonicTurn(msgspec.Struct, frozen=True, gc=False):
    """A turn id, at `index` of all ids, whose number is not above that of the well-formed id before it."""

    index: int
    previous: str
    current: str


class TurnIds(msgspec.Struct, frozen=True, rename="camel"):
    """The ids of the turns that began, in order, and what is wrong with them.

    `duplicates` holds an id once for each time it came again; `malformed` those that hold no turn number of ours.
    """

    ids: Vector[str] = Vector()
    non_monotonic: Vector[NonMonotonicTurn] = Vector()
    duplicates: Vector[str] = Vector()
    malformed: Vector[str] = Vector()


class Analysis(msgspec.Struct, frozen=True, rename="camel"):
    """The analysis of a log as it stands; `as_json` is the reference's form, with `nextTurn`.

    `tool_calls` and `tool_results` count call ids, not events, as the reference does. `dangling_turns` is how many
    more turns began than ended. `next_turn` is one above the largest turn number in this log; the stored head's may
    be higher, because it also knows what was superseded (I8).
    """

    turn_starts: int
    turn_ends: int
    dangling_turns: int
    tool_calls: int
    tool_results: int
    dangling_tool_calls: tuple[DanglingCall, ...]
    orphan_tool_results: tuple[str, ...]
    sub_calls: int
    sub_call_parents: Vector[str]
    thinking_events: int
    user_messages: int
    assistant_messages: int
    outcomes: dict[str, int]
    turn_ids: TurnIds
    next_turn: int

    def as_json(self) -> dict[str, Any]:
        """The analysis as plain JSON values."""
        plain: dict[str, Any] = msgspec.to_builtins(self, enc_hook=list)
        return plain


class _Turns(msgspec.Struct, frozen=True):
    """All that turn marks changed so far. Each mark makes a new one, and its undo is the one before."""

    starts: int = 0
    ends: int = 0
    outcomes: tuple[tuple[str, int], ...] = ()
    ids: TurnIds = TurnIds()
    previous: str | None = None  # the latest well-formed id
    next_turn: int = 0


class _Call(NamedTuple):
    """A call id: where it came first, and the tool of its latest call."""

    offset: int
    name: str


class _CallUndo(NamedTuple):
    id: str
    before: _Call | None
    parents: Vector[str] | None  # as they were before a sub-call


_Undo = _Turns | _CallUndo | type | str | None


class ReplayAnalysis(Reducer):
    """The analysis of a log, kept up to date event by event.

    Words and turn marks of a sub-agent (`parent_call_id`) are its own and not counted; their turn numbers are never
    used again all the same (I8). Reading the value costs as much as there are calls without results and results
    without calls, whatever the length of the log.
    """

    def __init__(self) -> None:
        super().__init__()
        self._turns = _Turns()
        self._messages: dict[type, int] = {UserMessage: 0, AssistantMessage: 0, Reasoning: 0}
        self._sub_calls = 0
        self._parents: Vector[str] = Vector()
        self._calls: dict[str, _Call] = {}
        self._answers: dict[str, int] = {}  # result ids, and where each came first
        self._dangling: set[str] = set()
        self._orphans: set[str] = set()
        self._turn_ids: set[str] = set()
        self._known_parents: set[str] = set()
        self._undo: list[_Undo] = []

    @property
    def value(self) -> Analysis:
        """The analysis as it stands: a snapshot that later events do not touch."""
        turns, calls = self._turns, self._calls
        dangling = sorted(self._dangling, key=lambda id: calls[id].offset)
        return Analysis(
            turn_starts=turns.starts,
            turn_ends=turns.ends,
            dangling_turns=max(0, turns.starts - turns.ends),
            tool_calls=len(calls),
            tool_results=len(self._answers),
            dangling_tool_calls=tuple([DanglingCall(id, calls[id].name) for id in dangling]),
            orphan_tool_results=tuple(sorted(self._orphans, key=self._answers.__getitem__)),
            sub_calls=self._sub_calls,
            sub_call_parents=self._parents,
            thinking_events=self._messages[Reasoning],
            user_messages=self._messages[UserMessage],
            assistant_messages=self._messages[AssistantMessage],
            outcomes=dict(turns.outcomes),
            turn_ids=turns.ids,
            next_turn=turns.next_turn,
        )

    def apply(self, appended: AppendedEvent) -> None:
        """Take the next event in.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._expect(appended.offset)
        self._undo.append(self._take(appended.event))
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        """Forget the events from `offset` on.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        while self.next_offset > offset:
            self._untake(self._undo.pop())
            self.next_offset -= 1
        self.generation += 1

    def _take(self, event: SessionEvent | Opaque) -> _Undo:
        match event:
            case ToolCall():
                return self._call(event)
            case ToolResult():
                return self._answer(event.call_id)
            case TurnStart() | TurnEnd():
                return self._mark(event)
            case UserMessage() | AssistantMessage() | Reasoning() if event.parent_call_id is UNSET:
                self._messages[type(event)] += 1
                return type(event)
            case _:
                return None

    def _untake(self, undo: _Undo) -> None:
        match undo:
            case _CallUndo():
                self._uncall(undo)
            case str():
                self._unanswer(undo)
            case _Turns():
                self._unmark(undo)
            case type():
                self._messages[undo] -= 1
            case None:
                pass

    def _call(self, event: ToolCall) -> _CallUndo:
        id, before = event.call_id, self._calls.get(event.call_id)
        self._calls[id] = _Call(self.next_offset if before is None else before.offset, event.name)
        if id in self._answers:
            self._orphans.discard(id)
        else:
            self._dangling.add(id)
        parent = event.parent_call_id
        if parent is UNSET:
            return _CallUndo(id, before, None)
        parents = self._parents
        self._sub_calls += 1
        if parent not in self._known_parents:
            self._known_parents.add(parent)
            self._parents = parents.append(parent)
        return _CallUndo(id, before, parents)

    def _uncall(self, undo: _CallUndo) -> None:
        if undo.before is not None:
            self._calls[undo.id] = undo.before
        else:
            del self._calls[undo.id]
            self._dangling.discard(undo.id)
            if undo.id in self._answers:
                self._orphans.add(undo.id)
        if undo.parents is not None:
            self._sub_calls -= 1
            self._known_parents.difference_update(self._parents[len(undo.parents) :])
            self._parents = undo.parents

    def _answer(self, id: str) -> str | None:
        if id in self._answers:
            return None
        self._answers[id] = self.next_offset
        if id in self._calls:
            self._dangling.discard(id)
        else:
            self._orphans.add(id)
        return id

    def _unanswer(self, id: str) -> None:
        del self._answers[id]
        self._orphans.discard(id)
        if id in self._calls:
            self._dangling.add(id)

    def _mark(self, event: TurnStart | TurnEnd) -> _Turns:
        before = self._turns
        next_turn = next_turn_after((event,), before.next_turn)
        if event.parent_call_id is not UNSET:
            self._turns = msgspec.structs.replace(before, next_turn=next_turn)
        elif isinstance(event, TurnEnd):
            outcomes = _with_outcome(before.outcomes, event)
            self._turns = msgspec.structs.replace(before, next_turn=next_turn, ends=before.ends + 1, outcomes=outcomes)
        else:
            id = turn_id(event.turn) if event.label is UNSET else event.label
            is_malformed = turn_number(id) is None
            self._turns = msgspec.structs.replace(
                before,
                next_turn=next_turn,
                starts=before.starts + 1,
                ids=_audited(before, id, again=id in self._turn_ids, is_malformed=is_malformed),
                previous=before.previous if is_malformed else id,
            )
            self._turn_ids.add(id)
        return before

    def _unmark(self, before: _Turns) -> None:
        ids = self._turns.ids
        if len(ids.ids) > len(before.ids.ids) and len(ids.duplicates) == len(before.ids.duplicates):
            self._turn_ids.remove(ids.ids[-1])
        self._turns = before


def _with_outcome(outcomes: tuple[tuple[str, int], ...], event: TurnEnd) -> tuple[tuple[str, int], ...]:
    name = "completed" if event.outcome is UNSET else event.outcome
    counts = dict(outcomes)
    key = "error" if isinstance(name, FailedOutcome) else name
    counts[key] = counts.get(key, 0) + 1
    return tuple(counts.items())


def _audited(before: _Turns, id: str, *, again: bool, is_malformed: bool) -> TurnIds:
    audit = before.ids
    non_monotonic, previous = audit.non_monotonic, before.previous
    if not is_malformed and previous is not None and _number(id) <= _number(previous):
        non_monotonic = non_monotonic.append(NonMonotonicTurn(len(audit.ids), previous, id))
    return TurnIds(
        ids=audit.ids.append(id),
        non_monotonic=non_monotonic,
        duplicates=audit.duplicates.append(id) if again else audit.duplicates,
        malformed=audit.malformed.append(id) if is_malformed else audit.malformed,
    )


def _number(id: str) -> int:
    number = turn_number(id)
    assert number is not None, f"{id!r} was checked to hold a number"
    return number
