"""`explore`: a scenario under many seeds, and the first that fails as small as it can be made."""

from __future__ import annotations

import os
import shlex
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.errors import SimulationFailedError
from incarnate.simulation.checks import CHECKS
from incarnate.simulation.kept import is_kept
from incarnate.simulation.kit import Simulation, StoreSource
from incarnate.simulation.plain import call_plain
from incarnate.simulation.scenarios import SCENARIOS
from incarnate.simulation.shrinking import shrunk
from incarnate.storage.plugins import without_password

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.simulation.checks import Check
    from incarnate.simulation.choices import Plan
    from incarnate.storage.port import Store

__all__ = ["Explored", "Scenario", "explore"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well

Scenario = Callable[[Simulation], object]
"""Adds processes to a simulation; it may run it and say what must hold then."""


class Explored(NamedTuple):
    """What runs without a failure came to: how many, their points, their commits, and their crashes and faults."""

    seeds: int = 0
    steps: int = 0
    commits: int = 0
    crashes: int = 0
    pauses: int = 0
    faults: int = 0

    def plus(self, sim: Simulation) -> Explored:
        """With one more run."""
        made = [chosen.what for chosen in sim.choices.values()]
        crashes, pauses = made.count("crash"), made.count("pause")
        faults = sum(what not in _ORDER for what in made) - crashes - pauses
        return Explored(
            self.seeds + 1,
            self.steps + sim.steps,
            self.commits + sim.history.commits,
            self.crashes + crashes,
            self.pauses + pauses,
            self.faults + faults,
        )


_MOST_STEPS = 400_000
"""Of all runs that make a failure smaller: some ten seconds, also where each runs until it is given up."""

_NOT_REPEATED = (
    "run again, this seed ended otherwise: something comes from time, random, threads or an earlier run, and not from "
    "the seed, so the command may not repeat it"
)

_ORDER = frozenset({"run", "tick", "number"})


class _Trial(NamedTuple):
    """How one run ended."""

    sim: Simulation
    error: BaseException | None

    @property
    def kind(self) -> tuple[object, str]:
        """What makes two failures the same."""
        return type(self.error), getattr(self.error, "kind", "")

    @property
    def cause(self) -> BaseException | None:
        """What was raised, unless the kit found it by itself: it would be told twice, with no line of the user's."""
        found_here = isinstance(self.error, SimulationFailedError) and all(
            frame.f_globals.get("__tracebackhide__") for frame, _ in walk_tb(self.error.__traceback__)
        )
        return None if found_here else self.error


def explore(
    scenario: Scenario,
    seeds: int | Iterable[int] = 200,
    *,
    store: StoreSource = "memory://",
    wrap: Callable[[Store], Store] | None = None,
    checks: Sequence[Check] = CHECKS,
    each: Callable[[Simulation], object] | None = None,
    name: str = "",
) -> Explored:
    """Run `scenario` once a seed and hold every check against each run.

    Args:
        scenario: adds processes to the simulation it is given. What it does not run itself is run after it.
        seeds: how many, from 0 on, or which.
        store: where the processes write, see `Simulation`.
        wrap: what each process puts around its store.
        checks: what must hold.
        each: called after each run that did not fail, before it is closed.
        name: what `incarnate simulate` knows the scenario by, where that cannot be told from it.

    Raises:
        SimulationFailedError: of the first seed that failed, with as few choices as still fail, and the command that
            repeats it. What the scenario itself raised is its `__cause__`.
        ValueError: `seeds` are none, or `store` would hold what an earlier run wrote.
    """
    if isinstance(store, str) and is_kept(store):  # a correct supervisor would fail on it, from the second run on
        raise ValueError(
            f"{without_password(store)} would hold what an earlier run wrote; put {{folder}} into the URL: a new folder"
            " for each run"
        )
    if isinstance(seeds, int):
        seeds = range(seeds)

    def trial(seed: int, plan: Plan | None = None) -> _Trial:
        return _run(scenario, Simulation(seed, store=store, wrap=wrap, plan=plan), checks, each)

    explored = Explored()
    for seed in seeds:
        tried = trial(seed)
        if tried.error is not None:
            failure = _failure(tried, trial, _command(scenario, name, store if wrap is None else None, seed))
            raise failure from tried.cause
        explored = explored.plus(tried.sim)
    if not explored.seeds:  # a slip, such as a range that ends before it begins, must not pass for a clean run
        raise ValueError("seeds are none: nothing was run")
    return explored


def _run(
    scenario: Scenario, sim: Simulation, checks: Sequence[Check], each: Callable[[Simulation], object] | None
) -> _Trial:
    with sim:
        try:
            call_plain(scenario, sim)
            sim.run()
            sim.check(checks)
            if each is not None:
                each(sim)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - also one that asks the program to end: a seed has failed
            return _Trial(sim, error)
        return _Trial(sim, None)


def _failure(first: _Trial, trial: Callable[[int, Plan | None], _Trial], command: str) -> SimulationFailedError:
    seed = first.sim.seed
    last = [first]
    steps_left = _MOST_STEPS

    def fails(plan: Plan | None) -> Plan | None:
        nonlocal steps_left
        if steps_left <= 0:
            return None
        tried = trial(seed, plan)
        steps_left -= tried.sim.steps
        if tried.error is None or tried.kind != first.kind:
            return None
        last[0] = tried
        return tried.sim.choices

    repeats = fails(None) is not None
    shrunk(first.sim.choices, fails)
    sim, error = last[0]
    assert error is not None
    reason = error.reason if isinstance(error, SimulationFailedError) else f"{type(error).__name__}: {error}"
    return SimulationFailedError(
        reason if repeats else f"{reason}\n{_NOT_REPEATED}",
        kind=getattr(error, "kind", ""),
        seed=seed,
        choices=tuple(f"{name}, point {count}: {chosen}" for (name, count), chosen in sim.choices.items()),
        trace=sim.trace,
        command=command,
    )


def _command(scenario: Scenario, name: str, store: StoreSource | None, seed: int) -> str:
    """What repeats the run, in a shell where the scenario has a name there, else in Python."""
    name = name or _name_of(scenario)
    if not (name and isinstance(store, str)):
        return f"explore({getattr(scenario, '__name__', 'scenario')}, seeds=[{seed}], ...)"
    where = "" if store == "memory://" else f" --store {shlex.quote(store)}"
    return f"incarnate simulate --scenario {shlex.quote(name)} --seed {seed}{where}"


def _name_of(scenario: Scenario) -> str:
    """The name that it comes with, or `module:function` or `file.py:function` where it can be found so."""
    for name, known in SCENARIOS.items():
        if known is scenario:
            return name
    module, function = getattr(scenario, "__module__", ""), getattr(scenario, "__qualname__", "")
    return f"{_place_of(module)}:{function}" if module not in {"", "__main__"} and function.isidentifier() else ""


def _place_of(module: str) -> str:
    """The name of a module, or its file where only this program finds the name: pytest adds folders of tests."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or not file.endswith(".py"):
        return module
    path = Path(file).absolute()
    named = path.parent if path.stem == "__init__" else path.with_suffix("")
    parts = tuple(module.split("."))
    if named.parts[-len(parts) :] == parts and str(named.parents[len(parts) - 1]) in _searched_everywhere():
        return module
    return os.path.relpath(path)


def _searched_everywhere() -> set[str]:
    """Where a program that is started from the current folder finds modules, whatever this one added for itself."""
    installed = [*sysconfig.get_paths().values(), site.getusersitepackages()]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {str(Path(folder).absolute()) for folder in ["", *installed, *given]}
