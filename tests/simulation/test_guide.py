"""What docs/simulation.md shows is run as it stands, with the seeds and in the time that it promises."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from incarnate import SimulationFailedError
from incarnate.simulation import CHECKS, SCENARIOS, explore

GUIDE = Path(__file__).parent.parent.parent / "docs" / "simulation.md"
TEXT = GUIDE.read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def test_a_supervisor_in_under_60_lines_is_tested_with_1000_seeds_in_under_30_seconds() -> None:
    program = PROGRAMS[0]
    began = time.process_time()
    namespace: dict[str, Any] = {}
    exec(compile(program, str(GUIDE), "exec"), namespace)

    assert len(program.splitlines()) < 60
    assert "seeds=1000" in program
    assert 1000 == namespace["explored"].seeds
    assert time.process_time() - began < 30


def test_the_supervisor_that_fails_is_told_as_it_is_shown() -> None:
    namespace: dict[str, Any] = {"__name__": "my_tests"}
    exec(compile("\n".join(PROGRAMS).replace("seeds=1000", "seeds=1"), str(GUIDE), "exec"), namespace)
    with pytest.raises(SimulationFailedError) as failed:
        explore(namespace["careless"])
    error = failed.value
    shown = re.findall(r"^    (.+)$", TEXT.partition("`explore(careless)` raises")[2].partition("## ")[0], re.MULTILINE)
    told = f"{error}\nTry: {error.hint}".splitlines()

    assert told == shown[: len(told)]
    assert "\n".join(shown[len(told) :]) in "\n".join(line.strip() for line in error.trace.splitlines())


def test_every_check_and_every_scenario_is_named() -> None:
    names = [*(getattr(check, "__name__", "") for check in CHECKS), *SCENARIOS]

    assert [] == [name for name in names if f"`{name}`" not in TEXT]
