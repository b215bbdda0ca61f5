"""Two processes on one file: take-overs, writers with one incarnation, writers side by side."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from incarnate import ActivationKey, AssistantMessage, SessionSystem, StaleIncarnationError, open_store
from tests.support.agent import KEY
from tests.support.processes import Child
from tests.support.stores import Log, jsonl_url, sqlite_url

EVENTS_A_ROUND = 250
MOST_ROUNDS = 20
ENOUGH_TURNS = 20
"""How often the lock must have gone from one process to the other: usual is once in 3 to 30 events."""

Lines = list[str]


URLS: dict[str, Callable[[Path], str]] = {
    "sqlite": sqlite_url,
    "sqlite-process": lambda folder: sqlite_url(folder, "?durability=process"),
    "jsonl": jsonl_url,
    "jsonl-process": lambda folder: jsonl_url(folder, "?durability=process&segment=20000"),
}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param](tmp_path)


@pytest.fixture
def system(url: str) -> Iterator[SessionSystem]:
    with SessionSystem.open(url) as opened:
        yield opened


def note(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text="")


def test_i2_a_stale_process_is_refused_at_its_next_write(system: SessionSystem, url: str) -> None:
    with Child("until_fenced", url) as child:
        child.expect("claim 1")
        child.go_on()
        child.expect("event")
        system.lease(KEY, 7)
        child.go_on()

        assert [f"stale {KEY} 1 7"] == child.end()


def test_i2_this_process_is_refused_once_another_has_taken_over(system: SessionSystem, url: str) -> None:
    session = system.lease(KEY, 4)
    session.emit(note("a"))
    with Child("until_fenced", url) as child:
        child.expect("claim 5")
        with pytest.raises(StaleIncarnationError) as refusal:
            session.emit(note("b"))

    assert (KEY, 4, 5) == (refusal.value.key, refusal.value.incarnation, refusal.value.current)
    assert ["a"] == [appended.event.id for appended in system.replay(KEY)]


def test_on_fenced_fires_by_itself_after_a_take_over_by_another_process(system: SessionSystem, url: str) -> None:
    fenced = threading.Event()
    with Child("take_over", url) as child:
        child.expect("ready")
        system.claim(KEY).on_fenced(fenced.set)
        assert not fenced.is_set()
        child.go_on()
        child.expect("claim 2")

        assert fenced.wait(10)


def run_side_by_side(first: Child, second: Child, writers: Callable[[Lines, Lines], list[str]]) -> tuple[Lines, Lines]:
    """What two writers say until they have taken turns often enough, or have had every chance to."""

    def read(child: Child) -> Lines:
        return [child.read() for _ in range(EVENTS_A_ROUND)]

    for child in (first, second):
        child.expect("ready")
    for child in (first, second):
        child.go_on()
    one: Lines = []
    other: Lines = []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(MOST_ROUNDS):
            some, more = pool.map(read, (first, second))
            one += some
            other += more
            if turns(writers(one, other)) >= ENOUGH_TURNS:
                break
        some, more = pool.map(Child.end, (first, second))
    return one + some, other + more


def turns(writers: list[str]) -> int:
    """How often the writer changes."""
    return sum(one != other for one, other in pairwise(writers))


def by_offset(one: Lines, other: Lines) -> list[str]:
    """The writers of what was acknowledged, in the order of the log."""
    said = [line.split() for line in one + other]
    return [
        name.partition("-")[0] for _, name in sorted((int(words[2]), words[1]) for words in said if len(words) == 3)
    ]


def test_two_writers_with_one_incarnation_never_lose_each_others_events(url: str) -> None:
    with Child("share", url, "a") as first, Child("share", url, "b") as second:
        one, other = run_side_by_side(first, second, by_offset)
    said = [line.split() for line in one + other]
    acknowledged = [(int(words[2]), words[1]) for words in said if words[0] == "event"]
    moved = [int(words[1]) for words in said if words[0] == "moved"]
    with open_store(url) as store:
        log = Log(store, KEY)

        assert sorted(acknowledged) == [(appended.offset, appended.event.id) for appended in log.events]
        assert (list(range(len(acknowledged))), 0) == (log.offsets, log.head.generation)
    assert turns(by_offset(one, other)) >= ENOUGH_TURNS
    assert 2 == len(moved)
    assert sum(moved) >= ENOUGH_TURNS // 2


def by_time(one: Lines, other: Lines) -> list[str]:
    """The writers of what was acknowledged, in the order of the machine's clock."""
    moments = [(int(line.split()[1]), writer) for writer, lines in (("a", one), ("b", other)) for line in lines]
    return [writer for _, writer in sorted(moments)]


def test_two_processes_on_two_keys_both_make_progress(url: str) -> None:
    with Child("alone", url, "a") as first, Child("alone", url, "b") as second:
        one, other = run_side_by_side(first, second, by_time)
    with open_store(url) as store:
        written = [Log(store, ActivationKey("pik", name)).offsets for name in "ab"]

    assert [list(range(len(lines))) for lines in (one, other)] == written
    assert turns(by_time(one, other)) >= ENOUGH_TURNS
