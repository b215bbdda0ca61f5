"""From the name of a scenario to the function."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.cli.errors import UsageFailure
from incarnate.simulation import SCENARIOS, Scenario

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["scenario_of"]


def scenario_of(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        UsageFailure: there is none.
    """
    known = SCENARIOS.get(name)
    if known is not None:
        return known
    place, separator, function = name.rpartition(":")
    if not (separator and place):
        raise UsageFailure(
            f"no scenario {name!r} comes with incarnate", f"write one of {', '.join(SCENARIOS)}, or MODULE:FUNCTION"
        )
    found = getattr(_module(place), function, None)
    if not callable(found):
        raise UsageFailure(f"{place} has no function {function!r}", "name a function that takes a Simulation")
    scenario: Scenario = found
    return scenario


def _module(place: str) -> ModuleType:
    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it
        try:
            return import_module(place)
        except ModuleNotFoundError as error:
            raise UsageFailure(
                f"no module {error.name!r} is found", "name an installed module, one below here, or a FILE.py"
            ) from error
        finally:
            sys.path.pop(0)
    spec = spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None or not Path(place).is_file():
        raise UsageFailure(f"there is no file {place}", "name a Python file")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
