"""`incarnate run` as a process over the fake harness, and whoever is killed: nothing lives on, nothing is lost."""

import random
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from incarnate.domain.events import ToolCall, ToolResult, TurnEnd, TurnStart
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import CallBlock
from tests.support.supervised import Place, kill, until

MANY = ("--max-restarts", "1000")
VICTIMS = ("harness", "tool", "outer", "inner", "supervisor")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place
        place.expect_nobody()


def pids(place: Place, victim: str) -> list[int]:
    keepers = place.keepers()
    parents = {pid: parent_of(pid) for pid in keepers}
    match victim:
        case "harness":
            return place.harnesses()
        case "tool":
            return place.tools()
        case "outer":
            return [pid for pid in keepers if parents[pid] not in keepers]
        case "inner":
            return [pid for pid in keepers if parents[pid] in keepers]
        case _:
            return [record["pid"] for record in place.records()]


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def check(place: Place, steps: int | None = None) -> None:
    """Gap-free, each id once, each turn begun and ended once, each call answered once, each step done."""
    appended = place.events()
    events = [one.event for one in appended]

    assert list(range(len(appended))) == [one.offset for one in appended]
    assert all(before.incarnation <= after.incarnation for before, after in pairwise(appended))
    assert len({event.id for event in events}) == len(events)
    turns = [event.turn for event in events if isinstance(event, TurnStart)]
    assert sorted(set(turns)) == turns
    assert turns == [event.turn for event in events if isinstance(event, TurnEnd)]
    calls = [event.call_id for event in events if isinstance(event, ToolCall)]
    assert calls == [call for call in calls if calls.count(call) == 1]
    assert sorted(calls) == sorted(event.call_id for event in events if isinstance(event, ToolResult))
    done = sorted_results(events)
    assert [f"did {step}" for step in range(len(done) if steps is None else steps)] == done
    history = ModelHistory()
    for one in appended:
        history.apply(one)
    asked = [block.content.id for message in history.value for block in message.content if isinstance(block, CallBlock)]
    assert asked == [message.tool_call_id for message in history.value if message.role == "tool"]


def sorted_results(events: Sequence[object]) -> list[str]:
    told = {event.result for event in events if isinstance(event, ToolResult) and event.ok}
    return sorted((str(one) for one in told), key=lambda one: int(one.split()[1]))


def test_a_harness_that_lives_is_passed_on_and_recorded(place: Place) -> None:
    run = place.run("steps", "3")

    assert 0 == run.wait()
    check(place, 3)
    assert [] == place.records()


MATRIX = [
    *(((victim,), ()) for victim in VICTIMS),
    (("harness",), ("--wrapped",)),
    (("supervisor",), ("--wrapped",)),
    (("harness", "supervisor"), ()),
    (("outer", "inner"), ("--wrapped",)),
    (("supervisor", "outer"), ()),
    (("supervisor", "inner"), ()),
    (("supervisor", "outer", "inner"), ("--wrapped",)),
    (("supervisor", "outer", "inner", "harness"), ()),
]


@pytest.mark.parametrize(("victims", "wrapped"), MATRIX, ids=["-".join([*one, *how]) for one, how in MATRIX])
def test_whoever_is_killed_in_a_tool_the_session_goes_on_and_nothing_outlives_it(
    place: Place, victims: tuple[str, ...], wrapped: tuple[str, ...]
) -> None:
    run = place.run("steps", "4", "--tool", "700", *wrapped, options=MANY)
    until(lambda: len([one for one in place.events() if isinstance(one.event, ToolResult)]) >= 1, "a first result")
    until(place.tools, "a tool")
    before = place.events()

    for pid in [pid for victim in victims for pid in pids(place, victim)]:
        kill(pid)

    if "supervisor" in victims:
        assert -signal.SIGKILL == run.wait()
        run = place.run("steps", "4", options=(*MANY, "--resume"))
    assert 0 == run.wait()
    assert before == place.events()[: len(before)]
    check(place, 4)


@pytest.mark.parametrize("seed", range(5))
def test_of_twenty_random_kills_nothing_is_left_and_nothing_lost(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    harness = ("steps", "1", "--tool", "40", "--until", "enough", *chance.choice([(), ("--wrapped",)]))
    run = place.run(*harness, options=MANY)
    before = place.events()
    rounds = 0
    while rounds < 20:
        until(place.harnesses, "a harness")
        time.sleep(chance.random() / 4)
        victims = chance.sample(VICTIMS, chance.choice([1, 1, 1, 2, 3]))
        found = [pid for victim in victims for pid in pids(place, victim)]
        rounds += bool(found)
        known = place.events()
        for pid in found:
            kill(pid)
        assert before == known[: len(before)]
        before = known
        if run.pid in found:
            assert -signal.SIGKILL == run.wait()
            run = place.run(*harness, options=(*MANY, "--resume"))
    (place.home / "enough").touch()

    assert 0 == run.wait()
    assert before == place.events()[: len(before)]
    check(place)
