"""Whether the calls of an activation can have been handled one at a time, each between its begin and its end.

Wing and Gong's search with Lowe's memory of what was tried: take any call that began before every other remaining one
ended, ask the model, go on if it answers as the store did. Calls are tried in the order in which the store acted on
them, so a right history is gone through once; only a wrong one is searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.actors.replay import end_of_range
from incarnate.domain.commands import (
    Append,
    AppendMany,
    GetCheckpoint,
    GetHead,
    LatestCheckpoint,
    PutCheckpoint,
    Replay,
)
from incarnate.domain.decisions import decide, encode_command
from incarnate.domain.errors import (
    ClosedError,
    ForkedError,
    ReadOnlyError,
    ReentrantCallError,
    RefusedError,
    StoreBusyError,
)
from incarnate.domain.events import AppendedEvent
from incarnate.simulation.model import ModelLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.decisions import Payload
    from incarnate.simulation.history import ActivationHistory, Call, Stored

__all__ = ["NoOrder", "order_of"]

_MOST_STATES = 20_000
_NEVER = 1 << 60
_QUERIES = frozenset({GetHead, LatestCheckpoint, GetCheckpoint, Replay})
_NOTHING_HAPPENED = (StoreBusyError, ClosedError, ForkedError, ReadOnlyError, ReentrantCallError)


class NoOrder(NamedTuple):
    """There is none: `call` could not be placed behind those that could, whichever were tried."""

    call: Call | None
    expected: str
    tried: int


class _Step(NamedTuple):
    """A call to place, with what the model needs of it."""

    call: Call
    payload: Payload
    ends: int
    certain: bool
    """Whether it was answered; else it may have been done or not."""


class _Search:
    def __init__(self, history: ActivationHistory, stored: Stored) -> None:
        calls = [call for call in history.calls if not _had_no_effect(call)]
        steps = [_step(call) for call in calls]
        self.steps = sorted(steps, key=lambda step: (step.call.acted or step.call.began, step.call.began))
        self.stored = stored
        self.tried: set[tuple[int, object]] = set()
        self.furthest = NoOrder(None, "", 0)

    def run(self, log: ModelLog) -> NoOrder | None:
        """None where there is an order, else how far it came. Without recursion: a history may be long."""
        stack: list[tuple[int, ModelLog, list[int]]] = [(0, log, self._ready(0))]
        while stack:
            placed, log, ready = stack[-1]
            if self._is_over(placed, log):
                return None
            if not ready or len(self.tried) > _MOST_STATES:
                stack.pop()
                continue
            index = ready.pop(0)
            after = self._after(placed, index, log)
            if after is not None:
                placed |= 1 << index
                seen = (placed, after.state())
                if seen not in self.tried:
                    self.tried.add(seen)
                    stack.append((placed, after, self._ready(placed)))
        return self.furthest._replace(tried=len(self.tried))

    def _ready(self, placed: int) -> list[int]:
        """The calls that may be next, the likeliest first: they began before any that is left had ended."""
        left = [index for index in range(len(self.steps)) if not placed >> index & 1]
        first_end = min((self.steps[index].ends for index in left), default=_NEVER)
        ready = [index for index in left if self.steps[index].call.began < first_end]
        done = [index for index in ready if self.steps[index].certain or self.steps[index].call.acted is not None]
        return done + [index for index in ready if index not in done]

    def _is_over(self, placed: int, log: ModelLog) -> bool:
        if any(step.certain and not placed >> index & 1 for index, step in enumerate(self.steps)):
            return False
        head, events, checkpoints = self.stored
        if log.head != head:
            self._note(placed, None, f"the store stands at {head}, the calls lead to {log.head}")
            return False
        same = _same_events(log.appended(0, head.next_offset), events)
        if not same or sorted(log.checkpoints()) != sorted(checkpoints):
            self._note(placed, None, "the store holds other events or checkpoints than the calls lead to")
            return False
        return True

    def _after(self, placed: int, index: int, log: ModelLog) -> ModelLog | None:
        """The log after the call, or None where the model answers otherwise."""
        step = self.steps[index]
        call = step.call
        if type(call.command) in _QUERIES:
            reply, error, after = *_look(log, call.command), log
        else:
            decision = decide(log, call.command, step.payload, call.at_ms)
            reply, error = decision.reply, decision.error
            after = log if decision.change is None else log.after(decision.change)
        if not step.certain or (_same_error(call.error, error) and (error is not None or _same(call.reply, reply))):
            return after
        self._note(placed, call, _text(reply, error))
        return None

    def _note(self, placed: int, call: Call | None, expected: str) -> None:
        if placed.bit_count() >= self.furthest.tried:
            self.furthest = NoOrder(call, expected, placed.bit_count())


def order_of(history: ActivationHistory) -> NoOrder | None:
    """None where the calls have an order that the model answers alike and that ends at what is stored."""
    assert history.stored is not None, "the run is over"
    return _Search(history, history.stored).run(ModelLog(history.key))


def _had_no_effect(call: Call) -> bool:
    if call.ended is not None and isinstance(call.error, _NOTHING_HAPPENED):
        return True
    # What never reached the store, or asked only, changes nothing that a later call could see.
    unanswered = call.ended is None or not _is_certain(call)
    return unanswered and (call.acted is None or type(call.command) in _QUERIES)


def _is_certain(call: Call) -> bool:
    return call.ended is not None and (call.error is None or isinstance(call.error, RefusedError))


def _step(call: Call) -> _Step:
    certain = _is_certain(call)
    payload = encode_command(call.command) if isinstance(call.command, Append | AppendMany | PutCheckpoint) else None
    return _Step(call, payload, call.ended if certain and call.ended is not None else _NEVER, certain)


def _look(log: ModelLog, query: Any) -> tuple[Any, RefusedError | None]:
    if isinstance(query, GetHead):
        return log.head, None
    if isinstance(query, LatestCheckpoint):
        return log.latest_checkpoint(), None
    if isinstance(query, GetCheckpoint):
        return log.checkpoint(query.id), None
    try:
        return tuple(log.appended(query.start, end_of_range(query.start, query.stop, log.head.next_offset))), None
    except RefusedError as error:
        return None, error


def _same_error(one: BaseException | None, other: BaseException | None) -> bool:
    return type(one) is type(other) and (one is None or other is None or one.args == other.args)


def _same(one: Any, other: Any) -> bool:
    """Whether two replies say the same; when something was written is no part of it."""
    if isinstance(one, AppendedEvent) and isinstance(other, AppendedEvent):
        return _same_event(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return _same_events(one, other)
    return bool(one == other)


def _same_events(some: Sequence[AppendedEvent], others: Sequence[AppendedEvent]) -> bool:
    return len(some) == len(others) and all(map(_same_event, some, others))


def _same_event(one: AppendedEvent, other: AppendedEvent) -> bool:
    return (one.offset, one.incarnation, one.event) == (other.offset, other.incarnation, other.event)


def _text(reply: Any, error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}" if error is not None else f"{reply!r}"
