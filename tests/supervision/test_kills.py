"""`incarnate run` as a process over the fake harness, and whoever is killed: nothing lives on, nothing is lost."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from incarnate.domain.events import ToolResult
from tests.support.supervised import Place, check, kill, until

MANY = ("--max-restarts", "1000")
VICTIMS = ("harness", "tool", "outer", "inner", "supervisor")


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
    run = place.run("steps", "4", "--tool", "700", "--until", "enough", *wrapped, options=MANY)
    until(lambda: len([one for one in place.events() if isinstance(one.event, ToolResult)]) >= 1, "a first result")
    until(place.tools, "a tool")
    before = place.events()

    for pid in [pid for victim in victims for pid in pids(place, victim)]:
        kill(pid)
    (place.home / "enough").touch()

    if "supervisor" in victims:
        assert -signal.SIGKILL == run.wait()
        run = place.run("steps", "4", options=(*MANY, "--resume"))
    assert 0 == run.wait()
    assert before == place.events()[: len(before)]
    check(place)


@pytest.mark.parametrize("stopped", ["outer", "inner"])
def test_a_keeper_that_is_stopped_outlives_no_supervisor(place: Place, stopped: str) -> None:
    run = place.run("steps", "4", "--tool", "60000")
    until(place.tools, "a tool")
    for pid in pids(place, stopped):
        os.kill(pid, signal.SIGSTOP)

    run.kill()

    place.expect_nobody()


@pytest.mark.timeout(
    300
)  # twenty rounds of starts: 7 seconds on a quiet machine, 60 where ten others want the processor
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
