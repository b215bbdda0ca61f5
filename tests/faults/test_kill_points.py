"""A scripted run is killed at every call that changes the disk, one call later each time, and read again.

The script is the same each time, so what is found must be the state after all the steps that were acknowledged, or
after one more: the one that was under way.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from incarnate.domain.keys import ActivationKey
from incarnate.storage.locate import open_store
from incarnate.storage.memory import MemoryStore
from tests.support.faults import LONG, State, agent, goes_on, states_of
from tests.support.faults_agent import CALLS, KEY, script
from tests.support.processes import Child
from tests.support.stores import jsonl_url, sqlite_url

States = dict[ActivationKey, State]
Url = Callable[[Path], str]

KILLED: dict[str, tuple[Url, int]] = {
    "sqlite": (sqlite_url, 1),
    "sqlite-process": (lambda folder: sqlite_url(folder, "?durability=process"), 1 if LONG else 5),
    "jsonl": (lambda folder: jsonl_url(folder, "?segment=4000"), 1),
}
"""Each store with the step from one call to the next that it is killed at."""
CALL = re.compile(r"^\d+ +(\w+)\(", re.MULTILINE)
PARTS = (0.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def strace() -> str:
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed: `apt-get install strace`")
    tried = subprocess.run([found, "-o", "/dev/null", "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"strace may not trace here: {tried.stderr.decode()}")
    return found


@pytest.fixture(scope="module")
def states() -> list[States]:
    """What a store shows before the script and after each of its steps."""
    found: list[States] = []
    with MemoryStore() as store:
        found.append(states_of(store))
        for step in script()[:-1]:
            step(store)
            found.append(states_of(store))
    return [*found, found[-1]]


class Place:
    """Where one run of the script writes."""

    def __init__(self, folder: Path, url: Url) -> None:
        folder.mkdir()
        self._said = folder / "acknowledged"
        self.url = url(folder)

    def run(self, nursery: Child, call: str, count: int, part: float = 0.0) -> str:
        """How the run ended."""
        nursery.send(f"{self.url} {self._said} {call} {count} {part}")
        return nursery.read()

    @property
    def acknowledged(self) -> int:
        """How many steps were."""
        return self._said.read_text().count("\n") if self._said.exists() else 0

    def check(self, states: list[States]) -> None:
        with open_store(self.url) as store:
            found = states_of(store)
            retired = store.head(KEY).retired
        assert found in states[self.acknowledged : self.acknowledged + 2], self.acknowledged
        if not retired:
            goes_on(self.url, KEY)


def calls_of(strace: str, folder: Path, url: Url, states: list[States]) -> Counter[str]:
    """How often the script makes each call that changes the disk."""
    trace = folder / "trace"
    under = (strace, "-f", "-e", f"trace={','.join(CALLS)}", "-e", "signal=none", "-o", str(trace))
    place = Place(folder / "whole", url)
    with agent("nursery", under=under) as nursery:
        assert "0" == place.run(nursery, "fsync", 0)
        assert [] == nursery.end()
    assert len(script()) == place.acknowledged
    place.check(states)
    return Counter(CALL.findall(trace.read_text()))


@pytest.fixture(params=KILLED)
def killed(request: pytest.FixtureRequest) -> tuple[Url, int]:
    return KILLED[request.param]


@pytest.mark.timeout(300)
def test_i6_a_kill_at_any_call_that_changes_the_disk_loses_nothing_acknowledged(
    strace: str, tmp_path: Path, killed: tuple[Url, int], states: list[States]
) -> None:
    url, stride = killed
    calls = calls_of(strace, tmp_path, url, states)
    number = max(calls.values()) + 1
    inject = [word for call in calls for word in ("-e", f"inject={call}:signal=SIGKILL:when={number}")]
    under = (strace, "-f", "-qq", "-e", f"trace={','.join(calls)}", *inject, "-o", "/dev/null")
    steps: set[int] = set()
    with agent("nursery", under=under) as nursery:
        for call, count in calls.items():
            for kill in range(1, count + 1, stride):
                place = Place(tmp_path / f"{call}-{kill}", url)
                assert "-9" == place.run(nursery, call, number - kill), (call, kill)
                place.check(states)
                steps.add(place.acknowledged)
                shutil.rmtree(tmp_path / f"{call}-{kill}")
    print(f"killed at one in {stride} of {calls.total()} calls: {dict(calls)}")  # noqa: T201 - for docs/reliability.md

    assert {"fdatasync"} < set(calls)
    assert stride > 1 or len(steps) > 30


def test_i6_a_write_that_is_torn_by_a_kill_is_as_if_it_had_never_been(
    tmp_path: Path, states: list[States], torn: Iterator[tuple[int, float]]
) -> None:
    killed = 0
    with agent("nursery") as nursery:
        for write, part in torn:
            place = Place(tmp_path / f"{write}-{part}", KILLED["jsonl"][0])
            ended = place.run(nursery, "tear", write, part)
            place.check(states)
            if ended == "0":
                break
            assert "-9" == ended
            killed += 1
    print(f"torn {killed} times")  # noqa: T201 - the figure of docs/reliability.md

    assert killed > 100


@pytest.fixture
def torn() -> Iterator[tuple[int, float]]:
    """Which write is torn, and how much of it is written: its first byte, a half, all but its last byte."""
    return ((write, part) for write in range(1, 1000) for part in PARTS)
