"""What the simulation found in the library, each as the shortest way that leads there."""

from pathlib import Path

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.errors import StaleIncarnationError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.log import LogEvents
from incarnate.simulation import Simulation
from incarnate.storage.faulty import FaultyStore

KEY = ActivationKey("order-7", "implement-task")


def event(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text="")


@pytest.mark.parametrize("url", ["sqlite:///{}/s.db", "jsonl:///{}/s"])
def test_i2_a_writer_that_has_read_of_a_take_over_is_stale_all_the_same(tmp_path: Path, url: str) -> None:
    with SessionSystem.open(url.format(tmp_path)) as one, SessionSystem.open(url.format(tmp_path)) as other:
        session = one.claim(KEY)
        session.emit(event("e0"))
        other.claim(KEY)
        read = [appended.event.id for appended in one.replay(KEY)]

        with pytest.raises(StaleIncarnationError):
            session.emit(event("e1"))

    assert ["e0"] == read


def test_a_take_over_is_told_though_the_store_was_busy_when_the_watch_looked() -> None:
    told: list[int] = []
    with Simulation(plan={}, wrap=FaultyStore) as sim:
        system, faulty = sim.system(), sim.store()
        session = system.claim(KEY)
        session.on_fenced(lambda: told.append(session.incarnation))
        sim.sleep(1)
        assert isinstance(faulty, FaultyStore)
        faulty.fail(kind="head")
        system.claim(KEY)
        sim.sleep(1)

    assert [1] == told


def test_a_follower_gets_what_the_store_was_too_busy_to_give_at_first() -> None:
    with Simulation(plan={}, wrap=FaultyStore) as sim:
        session = sim.system().claim(KEY)
        faulty = sim.store("reader")
        changes = sim.system("reader").view(KEY, LogEvents()).changes()
        changes.next()
        sim.sleep(1)
        assert isinstance(faulty, FaultyStore)
        faulty.fail(kind="snapshot")
        session.emit(event("e0"))
        change = changes.next(timeout=10)

    assert change is not None
    assert ["e0"] == [item.event.id for item in change.items]


def test_a_checkpoint_that_a_newer_incarnation_has_pruned_says_so() -> None:
    """Between the put and the look whether it is what was put, another process may restore and go on."""
    with Simulation(plan={}, wrap=FaultyStore) as sim:
        faulty = sim.store()
        session = sim.system().claim(KEY)
        first = session.checkpoint("sha-0")
        session.emit(event("e0"))

        def take_over() -> None:
            other = sim.system("other").claim(KEY)
            other.restore(first.id)
            other.emit(event("e1"))

        assert isinstance(faulty, FaultyStore)
        faulty.delay(take_over, kind="snapshot")
        with pytest.raises(StaleIncarnationError):
            session.checkpoint("sha-1")
