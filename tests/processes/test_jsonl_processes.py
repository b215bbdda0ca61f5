"""What processes do to one folder: make it at once, fork while it is open."""

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from incarnate.storage.jsonl import JsonlStore
from tests.support.journal_agent import KEY
from tests.support.processes import Child
from tests.support.stores import Log

AGENT = Path(__file__).parents[1] / "support" / "journal_agent.py"


def test_processes_that_make_one_folder_at_once_all_get_the_same_store(tmp_path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(Child("create", tmp_path, program=AGENT)) for _ in range(5)]
        for child in children:
            child.expect("ready")
        for number in range(12):
            for child in children:
                child.go_on()
            said = Counter(child.read() for child in children)

            assert Counter(f"claim {incarnation}" for incarnation in range(1, 6)) == said
            names = sorted(path.name for path in (tmp_path / str(number)).iterdir() if path.is_file())
            assert ["changed", "incarnate.json"] == names
        for child in children:
            assert [] == child.end()


@pytest.mark.parametrize(("leave", "last"), [("exit", []), ("go on", ["write ForkedError"])])
def test_a_forked_child_is_refused_and_its_end_harms_no_lock_of_its_parent(
    tmp_path: Path, leave: str, last: list[str]
) -> None:
    folder = tmp_path / "journals"
    with Child("fork", folder, leave, program=AGENT) as parent:
        child = [parent.read() for _ in range(6 + len(last))]
        parent.expect("child ended")
        locked = other(folder)
        parent.go_on()
        parent.expect("claim 2")
        parent.expect("event")
        free = other(folder)

        assert [] == parent.end()
    uses = ("emit", "restore", "replay", "activations", "version", "claim")
    assert [*(f"{use} ForkedError" for use in uses), *last] == child
    assert ("StoreBusyError\n", "claim 4\n") == (locked, free)
    with JsonlStore(str(folder)) as store:
        assert ["e0", "e1"] == [appended.event.id for appended in Log(store, KEY).events]


def other(folder: Path) -> str:
    """What another process gets at this moment."""
    return subprocess.run(
        [sys.executable, str(AGENT), "lock", str(folder)], capture_output=True, check=True, text=True
    ).stdout
