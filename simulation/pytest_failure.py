"""What a failed test of the pytest plugin's fixtures shows: the command that repeats it, and the end of its trace."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from incarnate.domain.errors import SimulationFailedError
from incarnate.simulation.kit import Simulation
from incarnate.storage.plugins import without_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["SIMULATION", "again", "shown", "simulation_of", "trace_of"]

SIMULATION = pytest.StashKey[Simulation]()
"""Where a test's item holds what the fixture `simulation` gave."""

_TRACE_LINES = 40
_TO_FILL_IN = " (with the password in place of ...)"


def again(test: pytest.Function, stores: Mapping[str, str], chosen: Iterable[str]) -> str:
    """The command that runs this case of `test` again, from where pytest was started.

    `stores` has the URLs of the options that are names, `chosen` the URLs that were asked for.
    """
    callspec = getattr(test, "callspec", None)
    given: Mapping[str, object] = {} if callspec is None else callspec.params
    seed = ["--incarnate-seed", str(given["_incarnate_seed"])] if "_incarnate_seed" in given else []
    # All of its scheme and in their order: pytest numbers them, and the number is in the id.
    alike = [url for url in chosen if _scheme(url) == _scheme(str(given.get("_incarnate_store", "")))]
    names = {url: name for name, url in stores.items()}
    store = [word for url in alike for word in ("--incarnate-store", names.get(url, shown(url)))]
    hidden = any(shown(url) != url for url in alike)
    return shlex.join(["pytest", _node_id(test), *store, *seed]) + (_TO_FILL_IN if hidden else "")


def _node_id(test: pytest.Function) -> str:
    path = os.path.relpath(test.path, test.config.invocation_params.dir)
    names = [node.name for node in test.listchain() if isinstance(node, (pytest.Class, pytest.Function))]
    return "::".join([path, *names])


def _scheme(url: str) -> str:
    """What a test's id says of its store."""
    return url.partition("://")[0]


def shown(url: str) -> str:
    """`url` without its password."""
    return re.sub(r"(?<=[?&])((?:ssl)?password=)[^&]*", r"\1...", without_password(url))


def simulation_of(test: pytest.Item) -> Simulation | None:
    """The simulation of a test, however it came by it: as an argument, through another fixture or by `request`."""
    given = getattr(test, "funcargs", {}).get("simulation")  # one of the user's own may have that name
    return given if isinstance(given, Simulation) else test.stash.get(SIMULATION, None)


def trace_of(test: pytest.Item, error: BaseException, *, whole: bool) -> tuple[str, str] | None:
    """A title, and the trace of the run that failed or its end; None where there is none, or a command prints it."""
    sim = simulation_of(test)
    if sim is not None:
        return _section(sim.seed, sim.trace, whole=whole)
    if isinstance(error, SimulationFailedError) and error.trace and not error.command.startswith("incarnate simulate"):
        return _section(error.seed, error.trace, whole=whole)
    return None


def _section(seed: int | None, trace: str, *, whole: bool) -> tuple[str, str]:
    lines = trace.splitlines()
    hidden = 0 if whole else max(0, len(lines) - _TRACE_LINES)
    told = [f"({hidden} lines before these: --incarnate-trace shows them)"] if hidden else []
    return f"the simulation's trace, seed {seed}", "\n".join([*told, *lines[hidden:]])
