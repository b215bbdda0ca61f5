"""What must hold of every run, whatever the seed. Each check looks at one activation and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from incarnate.domain.events import AppendedEvent
from incarnate.simulation.linearizability import order_of
from incarnate.simulation.model import ModelLog

if TYPE_CHECKING:
    from incarnate.simulation.history import ActivationHistory

__all__ = [
    "CHECKS",
    "Check",
    "checkpoints_follow_rewinds",
    "gap_free",
    "linearizable",
    "no_acknowledged_event_lost",
    "no_event_twice",
    "no_stale_write",
    "views_equal_folds",
]


def gap_free(history: ActivationHistory) -> Iterator[str]:
    """I1: offsets go up by one from 0, in the store and in every commit."""
    stored = history.stored
    if stored is not None:
        offsets = [one.offset for one in stored.events]
        if offsets != list(range(stored.head.next_offset)):
            yield f"the store holds the offsets {offsets} and stands at {stored.head.next_offset}"
    for commit in history.commits:
        if commit.change.events and commit.change.offset > commit.before.next_offset:
            yield f"{commit.process} wrote at {commit.change.offset}, above the head at {commit.before.next_offset}"


def no_stale_write(history: ActivationHistory) -> Iterator[str]:
    """I2: nothing of a lower incarnation is written after a higher one was admitted, and the fence never falls."""
    fence = -1
    for commit in history.commits:
        change = commit.change
        writer = change.incarnation if change.events else None
        if change.checkpoint is not None:
            writer = change.checkpoint.checkpoint.incarnation
        if writer is not None and writer < fence:
            yield f"{commit.process} wrote as incarnation {writer} after incarnation {fence} had been admitted"
        if change.fence is not None and change.fence < fence:
            yield f"{commit.process} lowered the fence from {fence} to {change.fence}"
        fence = max(fence, -1 if change.fence is None else change.fence)
    stored = history.stored
    if stored is not None and history.whole and fence > (-1 if stored.head.fence is None else stored.head.fence):
        yield f"the fence was {fence} and is {stored.head.fence} now"


def no_acknowledged_event_lost(history: ActivationHistory) -> Iterator[str]:
    """I6: an event that was acknowledged was in the log by then, and is there until a rewind supersedes it."""
    spans = _spans(history)
    for call in history.calls:
        if call.ended is None or call.error is not None:
            continue
        for one in _events_of(call.reply) if hasattr(call.command, "expected_head") else ():
            held = spans.get((one.offset, one.incarnation, one.event.id), [])
            if not any(begin < call.ended and end > call.began for begin, end in held):
                yield f"event {one.event.id} of {call.process} was acknowledged at {one.offset}, and was not there"
    if history.stored is None or not history.whole:
        return
    there = {(one.offset, one.incarnation, one.event.id) for one in history.stored.events}
    for place, held in spans.items():
        if held[-1][1] == _EVER and place not in there:
            yield f"event {place[2]} was written at {place[0]} by incarnation {place[1]}, and is gone"


_EVER = 1 << 60


def _spans(history: ActivationHistory) -> dict[tuple[int, int, str], list[tuple[int, int]]]:
    """From when to when each event was in the log."""
    spans: dict[tuple[int, int, str], list[tuple[int, int]]] = {}
    log: list[tuple[int, int, str]] = []
    for commit in history.commits:
        change = commit.change
        if change.cut is not None:
            for place in log[change.cut :]:
                spans[place][-1] = (spans[place][-1][0], commit.at)
            del log[change.cut :]
        for offset, encoded in enumerate(change.events, change.offset):
            place = (offset, change.incarnation, encoded.event.id)
            spans.setdefault(place, []).append((commit.at, _EVER))
            log.append(place)
    return spans


def _events_of(reply: Any) -> tuple[AppendedEvent, ...]:
    if isinstance(reply, AppendedEvent):
        return (reply,)
    return tuple(one for one in reply if isinstance(one, AppendedEvent)) if isinstance(reply, tuple) else ()


def checkpoints_follow_rewinds(history: ActivationHistory) -> Iterator[str]:
    """I4, I5: a rewind prunes the checkpoints above its cut, and nothing else does."""
    stored = history.stored
    if stored is None or not history.whole:
        return
    kept = dict(_model(history).checkpoints())
    for name, offset in stored.checkpoints:
        if name not in kept:
            yield f"checkpoint {name} at {offset} is there, and a rewind below it should have pruned it"
        elif offset != kept[name]:
            yield f"checkpoint {name} is at {offset}, and was put at {kept[name]}"
    for name in kept.keys() - {name for name, _ in stored.checkpoints}:
        yield f"checkpoint {name} at {kept[name]} is gone, and no rewind pruned it"


def _model(history: ActivationHistory) -> ModelLog:
    log = ModelLog(history.key)
    for commit in history.commits:
        log = log.after(commit.change)
    return log


def views_equal_folds(history: ActivationHistory) -> Iterator[str]:
    """I7: what a view gave is the fold of the log as it was then, and covers what it was asked for."""
    logs = _logs(history)
    for read in history.views:
        generation, next_offset = read.got
        if read.got < read.asked:
            yield f"view {read.projection.name} of {read.process} gave {read.got}; {read.asked} was asked for"
            continue
        fold = read.projection.fresh()
        for one in logs.get(generation, [])[:next_offset]:
            fold.apply(one)
        if fold.next_offset != next_offset or fold.value != read.value:
            yield f"view {read.projection.name} of {read.process} is not the fold of the log at {read.got}"


def _logs(history: ActivationHistory) -> dict[int, list[AppendedEvent]]:
    """The log of each generation, as long as it became."""
    logs: dict[int, list[AppendedEvent]] = {0: []}
    generation = 0
    for commit in history.commits:
        change = commit.change
        if change.cut is not None:
            logs[generation + 1] = logs[generation][: change.cut]
            generation += 1
        logs[generation] += [
            AppendedEvent(offset, change.incarnation, change.at_ms, encoded.event)
            for offset, encoded in enumerate(change.events, change.offset)
        ]
    return logs


def no_event_twice(history: ActivationHistory) -> Iterator[str]:
    """An event's id is in the log once. A supervisor that gives one event to two writes breaks it too."""
    if history.stored is None:
        return
    ids = sorted(one.event.id for one in history.stored.events)
    yield from sorted({f"event {one} is in the log twice" for one, next_one in pairwise(ids) if one == next_one})


def linearizable(history: ActivationHistory) -> Iterator[str]:
    """The calls can have been handled one at a time, each between its begin and its end."""
    if not history.whole or history.stored is None:
        return
    failed = order_of(history)
    if failed is not None:
        call = failed.call
        where = (
            "" if call is None else f"{call!r} was answered {call.reply if call.error is None else call.error!r}, not "
        )
        yield f"no order of the calls explains their answers: {where}{failed.expected}"


Check = Callable[["ActivationHistory"], Iterator[str]]
"""Says what is wrong with the history of one activation, a sentence each."""

CHECKS: tuple[Check, ...] = (
    gap_free,
    no_stale_write,
    no_acknowledged_event_lost,
    no_event_twice,
    checkpoints_follow_rewinds,
    views_equal_folds,
    linearizable,
)
"""Every check, the plainest first."""
