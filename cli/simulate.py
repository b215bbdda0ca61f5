"""`incarnate simulate`: scenarios under many seeds."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.numbers import whole
from incarnate.cli.options import json_option
from incarnate.cli.scenarios import scenario_of
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.errors import SimulationFailedError
from incarnate.domain.wording import counted
from incarnate.simulation import SCENARIOS, Explored, Scenario, Simulation, explore
from incarnate.simulation.kept import is_kept

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

__all__ = ["simulate"]

_TRACE_LINES = 40
_MEMORY = "memory://"


@click.command()
@click.option(
    "--scenario",
    "names",
    metavar="NAME",
    multiple=True,
    help="One that comes with incarnate, MODULE:FUNCTION or FILE.py:FUNCTION; all that come with it unless given.",
)
@click.option("--seeds", type=whole(1), default=200, show_default=True, help="How many seeds to run.")
@click.option("--first", type=whole(0), default=0, show_default=True, help="The first of them.")
@click.option("--seed", type=whole(0), help="Run this one alone.")
@click.option(
    "--store",
    metavar="URL",
    default=_MEMORY,
    show_default=True,
    help="Where the processes write; {folder} in it is a new folder for each run.",
)
@click.option("--trace", "whole", is_flag=True, help="Print all of a failure's trace, not its end.")
@json_option
def simulate(
    names: tuple[str, ...], seeds: int, first: int, seed: int | None, store: str, *, whole: bool, as_json: bool
) -> None:
    """Run scenarios as seeds decide, and check what came of them.

    Processes crash, stop and race as a seed says. One thread and virtual time: the same seed is the same run. The first
    seed that breaks a promise is made as small as it can be and printed, with the command that repeats it, and the exit
    code is 1. Needs the extra `simulation`.
    """
    _check(store, seed)
    scenarios = {name: scenario_of(name) for name in names or SCENARIOS}
    console = make_console()
    tried: list[_Tried] = []
    for name, scenario in scenarios.items():
        tried.append(_try(name, scenario, [seed] if seed is not None else range(first, first + seeds), store))
        if tried[-1].failure is not None:
            break
        if not as_json:
            _print_clean(console, tried[-1])
    if as_json:
        write_json({"store": store, "scenarios": [one.fields() for one in tried]})
    failure = tried[-1].failure
    if failure is not None:
        if not as_json:
            _print_trace(console, failure, whole=whole)
        raise Failure(f"{tried[-1].name}: seed {failure.seed}: {failure.reason}", failure.command)


def _check(store: str, seed: int | None) -> None:
    if is_kept(store):
        raise UsageFailure(
            f"{store} would hold what an earlier run wrote", "put {folder} into the URL: a new folder for each run"
        )
    given = click.get_current_context().get_parameter_source
    many = [name for name in ("seeds", "first") if given(name) is not ParameterSource.DEFAULT]
    if seed is not None and many:
        raise UsageFailure(f"--seed runs one seed alone, and --{many[0]} says how to run more", "leave one of them out")


class _Tried(NamedTuple):
    """What came of the seeds of one scenario. `digest` is the SHA-256 of all their traces."""

    name: str
    explored: Explored
    digest: str
    failure: SimulationFailedError | None

    def fields(self) -> dict[str, object]:
        """As JSON."""
        return {
            "scenario": self.name,
            **self.explored._asdict(),
            "digest": self.digest,
            "failure": None if self.failure is None else _fields(self.failure),
        }


def _try(name: str, scenario: Scenario, seeds: Iterable[int], store: str) -> _Tried:
    traces = hashlib.sha256()

    def add(sim: Simulation) -> None:
        traces.update(sim.trace.encode())

    try:
        explored = explore(scenario, seeds, store=store, each=add, name=name)
    except SimulationFailedError as error:
        return _Tried(name, Explored(), "", error)
    return _Tried(name, explored, traces.hexdigest(), None)


def _fields(failure: SimulationFailedError) -> dict[str, object]:
    return {
        "seed": failure.seed,
        "check": failure.kind,
        "reason": failure.reason,
        "choices": list(failure.choices),
        "trace": failure.trace.splitlines(),
        "command": failure.command,
    }


def _print_clean(console: Console, tried: _Tried) -> None:
    explored = tried.explored
    what = f"{counted(explored.steps, 'step')}, {counted(explored.commits, 'commit')}"
    how = f"crashes {explored.crashes}, pauses {explored.pauses}, faults {explored.faults}"
    say(console, (tried.name, "bold"), f": {counted(explored.seeds, 'seed')}, nothing broken; {what}; {how}")


def _print_trace(console: Console, failure: SimulationFailedError, *, whole: bool) -> None:
    lines = failure.trace.splitlines()
    hidden = 0 if whole else max(0, len(lines) - _TRACE_LINES)
    if hidden:
        say(console, f"({hidden} lines before these: --trace prints them)")
    for line in lines[hidden:]:
        say(console, line)
    unusual = "what did not go the usual way:" if failure.choices else "all went the usual way, whatever the seed chose"
    say(console, unusual)
    for choice in failure.choices:
        say(console, f"  {choice}")
