"""A process is killed at every system call that changes a file, one after the other, in a script of all commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from incarnate.domain.commands import Claim
from incarnate.domain.errors import RetiredError
from incarnate.storage.jsonl import JsonlStore
from incarnate.storage.memory import MemoryStore
from incarnate.storage.port import Store
from tests.support.kill_points import FORK, STEPS, run
from tests.support.stores import KEY, Log, note, perform

KILL_POINTS = Path(__file__).parents[1] / "support" / "kill_points.py"
ROOT = Path(__file__).parents[2]
ALL = 1 << 40

State = tuple[object, ...]


def state(store: Store) -> State:
    """All that a reader can see."""
    seen: list[object] = [list(store.activations())]
    for key in (KEY, FORK):
        seen.append(Log(store, key).everything())
        with store.snapshot(key) as log:
            seen.append(log.rewinds())
            seen.append([list(log.superseded(rewind.generation, 0, ALL, ALL)) for rewind in log.rewinds()])
            seen.append([log.checkpoint(name) for name in log.checkpoint_ids()])
    return tuple(seen)


def expected_states() -> list[State]:
    """What is there before the script and after each of its steps."""
    with MemoryStore() as store:
        states = [state(store)]
        run(store, lambda _: states.append(state(store)))
        return states


def go_on(store: Store) -> None:
    """The next incarnation takes over and writes."""
    log = Log(store)
    fence = log.head.fence
    try:
        after = perform(store, KEY, Claim())
    except RetiredError:
        assert log.head.retired
        return
    assert after.fence == (1 if fence is None else fence + 1)
    log.append(after.next_offset, [note("next")], after.fence)
    assert list(range(after.next_offset + 1)) == log.offsets


@pytest.mark.timeout(240)
@pytest.mark.parametrize("durability", ["commit", "process"])
def test_i6_a_kill_at_any_write_leaves_what_was_acknowledged_and_no_part_of_more(
    tmp_path: Path, durability: str
) -> None:
    line = [sys.executable, str(KILL_POINTS), str(tmp_path), durability]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(line, capture_output=True, check=False, env=environment)
    assert 0 == ended.returncode, ended.stderr.decode()
    points, states, done = int(ended.stdout), expected_states(), 0

    for at in range(1, points + 1):
        done = (tmp_path / str(at) / "done").read_bytes().count(b"\n")
        with JsonlStore(str(tmp_path / str(at) / "journals")) as store:
            found = state(store)
            assert found in states[done : done + 2], f"killed at point {at}, in {list(STEPS)[done : done + 1]}"
            go_on(store)
    assert len(STEPS) == done
    assert points > 150
