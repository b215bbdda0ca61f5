"""Eight processes of four sessions each on one store, and a checker that shares no code with the library."""

import json
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from incarnate.storage.locate import open_store
from tests.support.faults import LONG, agent, chance
from tests.support.faults_checker import Stored, check, read_acknowledgements, read_journals, read_sqlite
from tests.support.stores import jsonl_url, sqlite_url

PROCESSES = 8
KEYS = 4
SECONDS = 60 if LONG else 6

Url = Callable[[Path], str]
Read = Callable[[Path], dict[str, Stored]]

CROWDED: dict[str, tuple[Url, Read]] = {
    "sqlite": (sqlite_url, lambda folder: read_sqlite(folder / "sessions.db")),
    "sqlite-process": (
        lambda folder: sqlite_url(folder, "?durability=process"),
        lambda folder: read_sqlite(folder / "sessions.db"),
    ),
    "jsonl": (
        lambda folder: jsonl_url(folder, "?segment=100000"),
        lambda folder: read_journals(folder / "journals"),
    ),
}


class Done(NamedTuple):
    """What a crowd has done, whose speed is the machine's affair."""

    kinds: Counter[str]
    rewinds: int
    lengths: list[int]

    @property
    def is_something(self) -> bool:
        """Whether there is something of each kind to be damaged."""
        return self.rewinds > 0 and self.kinds["turn"] > 0 and len(self.lengths) == KEYS and min(self.lengths) > 1

    @property
    def is_much(self) -> bool:
        kinds = self.kinds
        return min(10 * self.rewinds, *(kinds[one] for one in ("events", "claim", "refused", "checkpoint"))) > 20


def done(url: str, folder: Path) -> Done:
    """So far: the last line of a file may be half of one."""
    lines = [line for file in folder.glob("*.said") for line in file.read_text().split("\n")[:-1]]
    with open_store(url, read_only=True) as store:
        heads = [info.head for info in store.activations()]
    rewinds = sum(head.generation for head in heads)
    return Done(Counter(json.loads(line)["said"] for line in lines), rewinds, [head.next_offset for head in heads])


def crowd(
    url: str, folder: Path, seconds: float, seed: int, is_enough: Callable[[Done], bool], processes: int = PROCESSES
) -> None:
    """Have them at it for so many seconds at least, and until they have done enough."""
    with ExitStack() as stack:
        children = [
            stack.enter_context(agent("crowd", url, folder, f"process-{number}", seed)) for number in range(processes)
        ]
        for child in children:
            child.expect("ready")
        for child in children:
            child.go_on()
        pause = threading.Event()
        pause.wait(seconds)
        while not is_enough(done(url, folder)):
            pause.wait(0.5)
        for child in children:
            child.go_on()
        for child in children:
            assert child.read().startswith("done ")
            assert [] == child.end()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("url", "read"), CROWDED.values(), ids=CROWDED)
def test_i6_all_that_many_sessions_were_acknowledged_is_in_its_place_and_nothing_else(
    tmp_path: Path, url: Url, read: Read
) -> None:
    crowd(url(tmp_path), tmp_path, SECONDS, chance().randrange(2**32), lambda done: done.is_much)
    said = read_acknowledgements(tmp_path.glob("*.said"))
    found = read(tmp_path)
    kinds = Counter(line["said"] for line in said)
    events = sum(len(line["ids"]) for line in said if line["said"] == "events")
    rewinds = sum(len(stored.rewinds) for stored in found.values())
    print(f"{events} events acknowledged, {rewinds} rewinds, {dict(kinds)}")  # noqa: T201 - for docs/reliability.md

    assert [] == check(said, found)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowded")
    crowd(sqlite_url(folder), folder, 1, random.randrange(2**32), lambda done: done.is_something, 2)
    return folder


DAMAGE = {
    "lost": "DELETE FROM event WHERE offset = (SELECT max(offset) FROM event WHERE activation = 1) AND activation = 1",
    "moved": "UPDATE event SET payload = (SELECT payload FROM event WHERE activation = 1 AND offset = 0)"
    " WHERE activation = 1 AND offset = 1",
    "stale": "UPDATE event SET incarnation = 9999 WHERE activation = 1 AND offset = 0",
    "turn": "UPDATE activation SET next_turn = 0 WHERE next_turn > 0",
    "fence": "UPDATE activation SET fence = 0",
    "archive": "DELETE FROM superseded",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_the_checker_finds_what_is_wrong(crowded: Path, tmp_path: Path, statement: str) -> None:
    said = read_acknowledgements(crowded.glob("*.said"))
    with (
        closing(sqlite3.connect(crowded / "sessions.db")) as db,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        db.backup(copy)
        assert [] == check(said, read_sqlite(tmp_path / "copy.db"))
        copy.execute(statement)
        copy.commit()

    assert [] != check(said, read_sqlite(tmp_path / "copy.db"))
