"""What docs/simulation.md shows is run as it stands, with the seeds and in the time that it promises."""

import re
import time
from pathlib import Path
from typing import Any

from incarnate.simulation import CHECKS, SCENARIOS

GUIDE = Path(__file__).parent.parent.parent / "docs" / "simulation.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def test_a_supervisor_in_under_60_lines_is_tested_with_1000_seeds_in_under_30_seconds() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    began = time.process_time()
    namespace: dict[str, Any] = {}
    exec(compile(program, str(GUIDE), "exec"), namespace)

    assert len(program.splitlines()) < 60
    assert "seeds=1000" in program
    assert 1000 == namespace["explored"].seeds
    assert time.process_time() - began < 30


def test_every_check_and_every_scenario_is_named() -> None:
    names = [*(getattr(check, "__name__", "") for check in CHECKS), *SCENARIOS]

    assert [] == [name for name in names if f"`{name}`" not in TEXT]
