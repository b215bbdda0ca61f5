"""What a session's timeline shows: its turns, calls, words, tokens and writers, each with its place and time."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    FailedOutcome,
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
from incarnate.domain.projections.base import Reducer
from incarnate.studio.timeline_pairs import Pair, Pairs

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Call", "Lane", "SessionTimeline", "Spent", "Timeline", "Turn", "Word", "Writer"]

_MOST_LETTERS = 120
_LETTERS_LOOKED_AT = 4096  # a secret that begins in a shown text is whole in what the mask sees
_TELLING_ARGS = ("description", "command", "cmd", "file_path", "path", "pattern", "query", "url", "prompt")


class Turn(NamedTuple):
    """A turn; `stop` and `outcome` are None where its end is missing, `name` is its number or foreign id.

    `outcome` is `completed`, `cancelled`, `step_limit`, `interrupted` or `error`, and `error` what a failure said.
    `has_start` is false for an end whose start is missing: it then lies at its end.
    """

    start: int
    stop: int | None
    lane: int
    name: str
    outcome: str | None
    error: str | None
    has_start: bool


class Call(NamedTuple):
    """A tool call; `stop` and `ok` are None where it was never answered; `hint` is what its arguments are about.

    A result without a call has no tool (`name` is None) and lies at its result.
    """

    start: int
    stop: int | None
    lane: int
    id: str
    name: str | None
    hint: str
    ok: bool | None
    error: str | None


class Word(NamedTuple):
    """Where somebody said something: `user`, `assistant`, `reasoning`, `system` or `compaction`."""

    offset: int
    lane: int
    kind: str


class Spent(NamedTuple):
    """The tokens of one `Usage`: fresh input, that written to the cache included, from the cache, and output."""

    offset: int
    fresh: int
    cached: int
    output: int
    is_running: bool  # a harness's running total, not what one step spent


class Writer(NamedTuple):
    """An incarnation, and the first event that it wrote."""

    offset: int
    incarnation: int


class Lane(NamedTuple):
    """Where something happened: in the session itself (`call_id` None) or inside a call; and its first event."""

    call_id: str | None
    offset: int


class Timeline(msgspec.Struct, frozen=True):
    """A session as it stands: `moments` are the milliseconds, UTC, of its events; all else refers to their offsets.

    Lane 0 is the session's own, the others are of what happened inside calls, in the order in which they begin.
    """

    moments: tuple[int, ...]
    lanes: tuple[Lane, ...]
    turns: tuple[Turn, ...]
    calls: tuple[Call, ...]
    words: tuple[Word, ...]
    tokens: tuple[Spent, ...]
    writers: tuple[Writer, ...]


class _Name(NamedTuple):
    lane: int
    turn: int
    label: str | UnsetType


class _Asked(NamedTuple):
    lane: int
    id: str
    name: str
    hint: str


class _Answered(NamedTuple):
    lane: int
    id: str
    ok: bool
    error: str | None


class _Begun(NamedTuple):
    lane: int
    name: str


class _Over(NamedTuple):
    lane: int
    name: str
    outcome: str
    error: str | None


def _as_it_is(text: str) -> str:
    return text


class SessionTimeline(Reducer):
    """The timeline of a log, kept up to date event by event.

    `mask` takes secrets out of what is shown of arguments and errors; it sees them before they are shortened.
    An event's moment is the harness's own time where it told one, else as long after the event before it as the log
    says, or, where a turn begins, as long before the next one that has a time: what was ingested days later still lies
    where it happened.
    """

    def __init__(self, mask: Callable[[str], str] = _as_it_is) -> None:
        super().__init__()
        self._mask = mask
        self._moments = array("q")
        self._at = array("q")
        self._told = array("q")  # the events with a time of their harness
        self._begun = array("q")  # the starts of turns without one
        self._lanes: list[Lane] = [Lane(None, 0)]
        self._lane_of: dict[str, int] = {}
        self._turns: Pairs[_Begun, _Over] = Pairs()
        self._calls: Pairs[_Asked, _Answered] = Pairs()
        self._words: list[Word] = []
        self._tokens: list[Spent] = []
        self._writers: list[Writer] = []

    @property
    def name(self) -> str:
        """What it computes, its mask included."""
        return f"{super().name}({self._mask.__module__}.{self._mask.__qualname__})"

    def fresh(self) -> SessionTimeline:
        """An empty one with the same mask."""
        return type(self)(self._mask)

    @property
    def value(self) -> Timeline:
        """The timeline as it stands: a snapshot that later events do not touch, in proportion to its length."""
        return Timeline(
            tuple(self._placed()),
            tuple(self._lanes),
            tuple(map(_turn, self._turns)),
            tuple(map(_call, self._calls)),
            tuple(self._words),
            tuple(self._tokens),
            tuple(self._writers),
        )

    def apply(self, appended: AppendedEvent) -> None:
        """Take the next event in.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._expect(appended.offset)
        event = appended.event
        told, lane = None, 0
        if not isinstance(event, Opaque):
            told = None if event.occurred_at is UNSET else _milliseconds(event.occurred_at)
            lane = 0 if event.parent_call_id is UNSET else self._lane(event.parent_call_id)
        self._time(appended.at_ms, told)
        if told is None and isinstance(event, TurnStart):
            self._begun.append(appended.offset)
        if not self._writers or self._writers[-1].incarnation != appended.incarnation:
            self._writers.append(Writer(self.next_offset, appended.incarnation))
        self._take(event, lane)
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        """Forget the events from `offset` on.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        del self._moments[offset:], self._at[offset:]
        for offsets in (self._told, self._begun):
            del offsets[bisect_left(offsets, offset) :]
        while len(self._lanes) > 1 and self._lanes[-1].offset >= offset:
            call_id = self._lanes.pop().call_id
            assert call_id is not None, "only the first lane is the session's own"
            del self._lane_of[call_id]
        self._turns.rewind(offset)
        self._calls.rewind(offset)
        for placed in (self._words, self._tokens, self._writers):
            del placed[bisect_left(placed, offset, key=_offset) :]
        self.next_offset = offset
        self.generation += 1

    def _lane(self, call_id: str) -> int:
        lane = self._lane_of.get(call_id)
        if lane is None:
            lane = self._lane_of[call_id] = len(self._lanes)
            self._lanes.append(Lane(call_id, self.next_offset))
        return lane

    def _time(self, at_ms: int, told: int | None) -> None:
        if told is None:
            moments = self._moments
            moment = moments[-1] + max(0, at_ms - self._at[-1]) if moments else at_ms
            told = moment if -_FAR < moment < _FAR else 0
        else:
            self._told.append(self.next_offset)
        self._moments.append(told)
        self._at.append(max(-_FAR, min(_FAR, at_ms)))

    def _placed(self) -> array[int]:
        """The moments, with those before a time that is told worked out from it where they belong to what follows."""
        moments, at, told = self._moments[:], self._at, self._told
        done = 0
        for begin in (0, *self._begun):
            found = bisect_left(told, begin)
            if begin < done or found == len(told):
                continue
            done = told[found]
            for offset in range(begin, done):
                before = moments[done] - (at[done] - at[offset])
                moments[offset] = before if begin == 0 else max(moments[offset], before)
        return moments

    def _take(self, event: SessionEvent | Opaque, lane: int) -> None:
        offset = self.next_offset
        match event:
            case ToolCall():
                asked = _Asked(lane, event.call_id, self._shown(event.name), self._hint(event.args))
                self._calls.begin(offset, event.call_id, asked)
            case ToolResult():
                error = None if event.ok or event.error is UNSET else self._shown(event.error)
                self._calls.end(offset, event.call_id, _Answered(lane, event.call_id, event.ok, error))
            case TurnStart():
                name = _Name(lane, event.turn, event.label)
                self._turns.begin(offset, name, _Begun(lane, self._name_of(event)))
            case TurnEnd():
                self._turns.end(offset, _Name(lane, event.turn, event.label), self._over(event, lane))
            case Usage():
                self._tokens.append(_spent(offset, event))
            case UserMessage() | AssistantMessage() | Reasoning() | SystemMessage() | Compaction():
                self._words.append(Word(offset, lane, str(type(event).__struct_config__.tag)))
            case Opaque():
                pass

    def _over(self, event: TurnEnd, lane: int) -> _Over:
        name = self._name_of(event)
        match event.outcome:
            case FailedOutcome(error):
                return _Over(lane, name, "error", self._shown(f"{error.kind}: {error.message}"))
            case str(outcome):
                return _Over(lane, name, outcome, None)
            case _:
                return _Over(lane, name, "completed", None)

    def _name_of(self, event: TurnStart | TurnEnd) -> str:
        return str(event.turn) if event.label is UNSET else self._shown(event.label)

    def _hint(self, args: Any) -> str:
        if isinstance(args, dict):
            for name in _TELLING_ARGS:
                found = args.get(name)
                if isinstance(found, str) and found:
                    return self._shown(found)
        return ""

    def _shown(self, text: str) -> str:
        """`text` as one short line without its secrets."""
        if len(text) > _LETTERS_LOOKED_AT:
            text = text[:_LETTERS_LOOKED_AT]
        line = " ".join(self._mask(text).split())
        return line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 1]}…"


_FAR = 2**61  # what another program stored as a time may be anything: sums of these still fit 64 bits


def _milliseconds(text: str) -> int | None:
    try:
        when = datetime.fromisoformat(text)
        return int((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _offset(placed: Word | Spent | Writer) -> int:
    return placed.offset


def _spent(offset: int, event: Usage) -> Spent:
    written = 0 if event.cache_write_tokens is UNSET else event.cache_write_tokens
    cached = 0 if event.cache_read_tokens is UNSET else event.cache_read_tokens
    return Spent(offset, event.input_tokens + written, cached, event.output_tokens, event.scope is not UNSET)


def _turn(pair: Pair[_Begun, _Over]) -> Turn:
    start, begun, stop, over = pair
    known = begun or over
    assert known is not None, "a pair has a beginning or an end"
    outcome, error = (None, None) if over is None else (over.outcome, over.error)
    return Turn(start, stop, known.lane, known.name, outcome, error, begun is not None)


def _call(pair: Pair[_Asked, _Answered]) -> Call:
    start, asked, stop, answer = pair
    ok, error = (None, None) if answer is None else (answer.ok, answer.error)
    if asked is not None:
        return Call(start, stop, asked.lane, asked.id, asked.name, asked.hint, ok, error)
    assert answer is not None, "a pair has a beginning or an end"
    return Call(start, stop, answer.lane, answer.id, None, "", ok, error)
