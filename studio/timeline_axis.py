"""Where each event of a log lies from left to right: its time, compressed where nothing happened for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Axis", "Break", "Tick", "duration", "make_axis"]

_SHARE_OF_ORDER = 0.3  # of the width goes to the events whatever their time: what came at once stays apart
_MOST_OF_THEM = 0.9  # of the pauses, and several times as long ones, are drawn to scale
_SEVERAL = 6
_OF_THE_MEDIAN = 200  # times it at most: where every other pause is a night, nights are not what is usual
_LEAST_BREAK_MS = 60_000
_LONG = 7  # times the longest pause that is drawn to scale: a break
_BREAK_WIDTH = 22.0
_ROOM_OF_A_BREAK = 90  # a drawing has one break for as many pixels at most
_TICK_ROOM = 84.0
_FINE_MS = 60_000  # a log that is no longer than this has milliseconds at its ticks


class Break(NamedTuple):
    """A pause before the event at `offset` that is left out, `ms` long, drawn from `left` to `right`."""

    offset: int
    ms: int
    left: float
    right: float


class Tick(NamedTuple):
    """The time of an event at `x`; `day` where it is another one than at the tick before."""

    offset: int
    x: float
    time: str
    day: str | None


class Axis(msgspec.Struct, frozen=True):
    """The place of each event in pixels, and one more for the head of the log."""

    xs: tuple[float, ...]
    breaks: tuple[Break, ...]
    ticks: tuple[Tick, ...]


def make_axis(moments: Sequence[int], left: float, right: float) -> Axis:
    """The places of events at `moments` between two edges.

    They are in the order of the log: a clock that was set back makes a pause of nothing. Pauses are drawn to scale up
    to several times the usual one, the more compressed the longer they are beyond it; the longest are breaks.
    """
    if not moments:
        return Axis((left,), (), ())
    pauses = [max(0, after - before) for before, after in pairwise(moments)]
    usual = _usual(pauses)
    broken = _broken(pauses, usual, int((right - left) / _ROOM_OF_A_BREAK))
    weights = [_weight(pause, usual) for pause in pauses]
    for index in broken:
        weights[index] = 0.0
    xs, breaks = _placed(weights, pauses, broken, (left, right))
    return Axis(tuple(xs), tuple(breaks), tuple(_ticks(moments, xs, right)))


def _usual(pauses: list[int]) -> float:
    """The longest pause that is drawn to scale."""
    positive = sorted([pause for pause in pauses if pause > 0])
    if not positive:
        return 1.0
    most, median = positive[int((len(positive) - 1) * _MOST_OF_THEM)], positive[(len(positive) - 1) // 2]
    return float(min(most * _SEVERAL, median * _OF_THE_MEDIAN))


def _broken(pauses: list[int], usual: float, most: int) -> set[int]:
    least = max(_LEAST_BREAK_MS, usual * _LONG)
    long = sorted([(pause, index) for index, pause in enumerate(pauses) if pause >= least], reverse=True)
    return {index for _, index in long[:most]}


def _weight(pause: int, usual: float) -> float:
    return float(pause) if pause <= usual else usual * (1.0 + log2(pause / usual) / 2)


def _placed(
    weights: list[float], pauses: list[int], broken: set[int], edges: tuple[float, float]
) -> tuple[list[float], list[Break]]:
    left, right = edges
    total = sum(weights)
    room = right - left - len(broken) * _BREAK_WIDTH
    steps = len(weights) + 1
    order = room * (_SHARE_OF_ORDER if total else 1.0) / steps
    scale = room * (1.0 - _SHARE_OF_ORDER) / total if total else 0.0
    x = left
    xs = [x]
    breaks: list[Break] = []
    for index, weight in enumerate(weights):
        x += order + weight * scale
        if index in broken:
            breaks.append(Break(index + 1, pauses[index], x, x + _BREAK_WIDTH))
            x += _BREAK_WIDTH
        xs.append(x)
    return [*xs, right], breaks


def _ticks(moments: Sequence[int], xs: list[float], right: float) -> list[Tick]:
    """The times of the first events after each stretch of a tick's room."""
    fine = moments[-1] - moments[0] <= _FINE_MS
    ticks: list[Tick] = []
    day = ""
    free = xs[0]
    for offset, moment in enumerate(moments):
        x = xs[offset]
        if x < free:
            continue
        if x > right - _TICK_ROOM and ticks:  # written to the left of its line, it would lie on the one before it
            break
        today, time = _clock(moment, fine=fine)
        told = today if ticks else f"{today} UTC"  # once: the drawing may be looked at alone
        ticks.append(Tick(offset, x, time, told if today != day else None))
        day = today
        free = x + _TICK_ROOM
    return ticks


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _clock(moment: int, *, fine: bool) -> tuple[str, str]:
    """The day and the time of a moment, UTC."""
    try:
        when = _EPOCH + timedelta(milliseconds=moment)
    except OverflowError:
        return "", "?"
    time = f"{when:%H:%M:%S}" + (f".{when.microsecond // 1000:03d}" if fine else "")
    return f"{when.year:04d}-{when:%m-%d}", time


_UNITS = ((86_400_000, "d", 3_600_000, "h"), (3_600_000, "h", 60_000, "min"), (60_000, "min", 1000, "s"))


def duration(ms: int) -> str:
    """A length of time in one or two units: `340 ms`, `12.5 s`, `2 min 3 s`, `3 d 4 h`."""
    if ms < 1000:  # noqa: PLR2004 - a second
        return f"{ms} ms"
    for unit, name, smaller, smaller_name in _UNITS:
        if ms >= unit:
            rest = ms % unit // smaller
            return f"{ms // unit} {name}" + (f" {rest} {smaller_name}" if rest else "")
    return f"{ms / 1000:.1f} s"
