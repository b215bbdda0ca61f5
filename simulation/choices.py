# ruff: noqa: D102 - the protocol says what each does
"""What may go one way or another, and who says which: a seed, or the plan of an earlier run.

A choice is known by its place: the name of whoever comes to it, and how many that one came to before. So a run can be
repeated from the choices that did not go the usual way alone, and without one of them all others still mean the same.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Choices", "Chosen", "Place", "Plan", "Planned", "Seeded", "Site", "World", "milliseconds"]

Place = tuple[str, int]
"""Whose choice, and the how many-th of its own."""


class Chosen(NamedTuple):
    """What a choice came to: `what` happens, to `whom`, for `micros` of virtual time."""

    what: str
    whom: str = ""
    micros: int = 0

    def __str__(self) -> str:
        if self.what == "number":
            return f"takes number {self.micros}"
        whom = f" {self.whom}" if self.whom else ""
        return f"{self.what}{whom}{f' for {milliseconds(self.micros)}' if self.micros else ''}"


Plan = dict[Place, Chosen]
"""Every choice of a run that did not go the usual way."""


def milliseconds(micros: int) -> str:
    """`12.040 ms`, from integers alone: the same text on every machine."""
    return f"{micros // 1000}.{micros % 1000:03d} ms"


class Site:
    """Somebody who comes to choices: a task, a process."""

    __slots__ = ("count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0


class Choices(Protocol):
    """Decides at every choice. None, or the first of several, is the usual way."""

    made: Plan
    """What did not go the usual way so far."""

    def at_point(self, site: Site, weight: int, world: World) -> Chosen | None:
        """What happens at a point where something else may: another task runs, a process dies or stops."""
        ...

    def fault(self, site: Site, kinds: Sequence[str]) -> Chosen | None:
        """Which of these faults an operation meets."""
        ...

    def among(self, site: Site, names: Sequence[str]) -> int:
        """Which of several goes first."""
        ...

    def number(self, site: Site, stop: int) -> int:
        """A number from 0 up to, not including, `stop`; 0 is the usual one."""
        ...


class World(Protocol):
    """What there is to choose from at a point."""

    def others(self) -> Sequence[str]:
        """The tasks that could run now, beside the running one."""
        ...

    def victims(self) -> Sequence[str]:
        """The processes that may be killed or stopped."""
        ...

    def has_timers(self) -> bool:
        """Whether the next timer could go off early."""
        ...


_PREEMPTION_GAPS = (2, 5, 12, 30)
"""Mean weight between two points at which something happens. Seeds that rarely switch find what those that always do
never reach, and the other way round: each seed draws its own manners (swarm testing)."""

_FAULT_ODDS = (0.0, 0.03, 0.08, 0.2)
_END_ODDS = (0.0, 0.02, 0.06)
_MOST_ENDS = 3
"""Crashes and pauses a run, each: a run must come to its end."""

_MOST_FAULTS = 8
_TIMED = frozenset({"delay", "duplicate"})
_KIND_ODDS = 0.5
_LONG_ODDS = 0.3
_SHORT, _LONG = 2_000, 400_000
"""Microseconds: within a commit's time, and beyond every poll and wait of the library."""


class Seeded(Choices):
    """The choices of a seed.

    Drawn with `random()` alone, which gives the same numbers on every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self.made: Plan = {}
        self._random = Random(seed).random
        self._gap = _PREEMPTION_GAPS[self._below(len(_PREEMPTION_GAPS))]
        self._fault_odds = self._odds_of(_FAULT_ODDS)
        self._odds = {what: self._odds_of(_END_ODDS) for what in ("crash", "pause")}
        self._tick_odds = self._odds_of(_FAULT_ODDS)
        self._kinds: dict[str, bool] = {}
        self._ends_left = dict.fromkeys(self._odds, _MOST_ENDS)
        self._faults_left = _MOST_FAULTS
        self._weight_left = 1 + self._below(2 * self._gap)

    def _below(self, stop: int) -> int:
        return int(self._random() * stop)

    def _odds_of(self, options: Sequence[float]) -> float:
        return options[self._below(len(options))]

    def _keep(self, site: Site, chosen: Chosen) -> Chosen:
        self.made[site.name, site.count] = chosen
        return chosen

    def at_point(self, site: Site, weight: int, world: World) -> Chosen | None:
        site.count += 1
        self._weight_left -= weight
        if self._weight_left > 0:
            return None
        self._weight_left = 1 + self._below(2 * self._gap)
        chosen = self._end(world) or self._tick(world) or self._preemption(world)
        return None if chosen is None else self._keep(site, chosen)

    def _end(self, world: World) -> Chosen | None:
        for what, odds in self._odds.items():
            if self._ends_left[what] and self._random() < odds:
                victims = world.victims()
                if victims:
                    self._ends_left[what] -= 1
                    victim = victims[self._below(len(victims))]
                    return Chosen(what, victim, 0 if what == "crash" else self._time())
        return None

    def _tick(self, world: World) -> Chosen | None:
        return Chosen("tick") if self._random() < self._tick_odds and world.has_timers() else None

    def _preemption(self, world: World) -> Chosen | None:
        others = world.others()
        return Chosen("run", others[self._below(len(others))]) if others else None

    def fault(self, site: Site, kinds: Sequence[str]) -> Chosen | None:
        site.count += 1
        if not self._faults_left or self._random() >= self._fault_odds:
            return None
        kind = kinds[self._below(len(kinds))]
        if not self._has(kind):
            return None
        self._faults_left -= 1
        return self._keep(site, Chosen(kind, "", self._time() if kind in _TIMED else 0))

    def _has(self, kind: str) -> bool:
        """Whether this seed knows that kind of fault at all: half of them each."""
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = self._random() < _KIND_ODDS
        return known

    def _time(self) -> int:
        return 1 + self._below(_LONG if self._random() < _LONG_ODDS else _SHORT)

    def among(self, site: Site, names: Sequence[str]) -> int:
        site.count += 1
        index = self._below(len(names))
        if index:
            self._keep(site, Chosen("run", names[index]))
        return index

    def number(self, site: Site, stop: int) -> int:
        site.count += 1
        number = self._below(stop)
        if number:
            self._keep(site, Chosen("number", "", number))
        return number


class Planned(Choices):
    """The choices of an earlier run, or some of them; everything else goes the usual way."""

    def __init__(self, plan: Mapping[Place, Chosen]) -> None:
        self.made: Plan = {}
        self._plan = dict(plan)

    def _next(self, site: Site) -> Chosen | None:
        site.count += 1
        return self._plan.get((site.name, site.count))

    def _kept(self, site: Site, chosen: Chosen) -> Chosen:
        self.made[site.name, site.count] = chosen
        return chosen

    def at_point(self, site: Site, weight: int, world: World) -> Chosen | None:  # noqa: ARG002 - a plan has no manners
        chosen = self._next(site)
        return self._kept(site, chosen) if chosen is not None and _possible(chosen, world) else None

    def fault(self, site: Site, kinds: Sequence[str]) -> Chosen | None:
        chosen = self._next(site)
        return self._kept(site, chosen) if chosen is not None and chosen.what in kinds else None

    def among(self, site: Site, names: Sequence[str]) -> int:
        chosen = self._next(site)
        if chosen is None or chosen.whom not in names:
            return 0
        self._kept(site, chosen)
        return names.index(chosen.whom)

    def number(self, site: Site, stop: int) -> int:
        chosen = self._next(site)
        if chosen is None or not 0 <= chosen.micros < stop:
            return 0
        return self._kept(site, chosen).micros


def _possible(chosen: Chosen, world: World) -> bool:
    match chosen.what:
        case "run":
            return chosen.whom in world.others()
        case "crash" | "pause":
            return chosen.whom in world.victims()
        case _:
            return chosen.what == "tick" and world.has_timers()
