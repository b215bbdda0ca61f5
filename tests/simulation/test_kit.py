"""What a simulation does to those who take part in it."""

import gc
import logging
import time
import weakref
from pathlib import Path
from typing import Any

import pykka
import pytest

from incarnate.domain.commands import Claim, GetHead
from incarnate.domain.errors import (
    ClosedError,
    MissingExtraError,
    OutcomeUnknownError,
    SimulationFailedError,
    StaleIncarnationError,
    StoreBusyError,
    StoreFileError,
)
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.log import LogEvents
from incarnate.simulation import Process, Simulation, explore, persist, scheduler

KEY = ActivationKey("order-7", "implement-task")


def event(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text="")


def ids(sim: Simulation) -> list[str]:
    return [appended.event.id for appended in sim.system().replay(KEY)]


def test_a_store_that_cannot_be_opened_leaves_the_log_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StoreFileError):
        Simulation(store=f"sqlite:///{tmp_path}/no/folder.db")

    logging.getLogger("incarnate").warning("after it")

    assert ["after it"] == caplog.messages


def test_time_is_virtual() -> None:
    began = time.monotonic()
    with Simulation() as sim:
        sim.process("a", lambda process: process.sleep(86_400))
        sim.run()

        assert sim.now >= 86_400
    assert time.monotonic() - began < 5


def test_a_killed_process_leaves_no_trace_in_the_store_and_is_started_again() -> None:
    lives: list[int] = []

    def supervise(process: Process) -> None:
        lives.append(process.starts)
        session = process.system.claim(KEY)
        try:
            session.emit(event(f"work-{process.starts}"))
            process.sleep(1)
        finally:
            session.emit(event(f"finally-{process.starts}"))

    with Simulation(plan={}) as sim:
        sim.process("a", supervise)
        sim.sleep(0.5)
        sim.crash("a")
        sim.run()
        sim.check()

        assert [1, 2] == lives
        assert ["work-1", "work-2", "finally-2"] == ids(sim)


def test_a_process_that_was_stopped_writes_on_as_a_zombie_and_is_refused() -> None:
    refused: list[int] = []

    def zombie(process: Process) -> None:
        session = process.system.claim(KEY)
        process.sleep(0.5)
        try:
            session.emit(event("late"))
        except StaleIncarnationError as error:
            refused.append(error.incarnation)
            raise

    def heir(process: Process) -> None:
        process.sleep(1)
        process.system.claim(KEY).emit(event("heir"))

    with Simulation(plan={}) as sim:
        sim.process("a", zombie)
        sim.process("b", heir)
        sim.sleep(0.1)
        sim.pause("a", 5)
        sim.run()
        sim.check()

        assert [1] == refused
        assert ["heir"] == ids(sim)
        assert sim.now > 5


def test_what_a_supervisor_ends_with_fails_the_run() -> None:
    def supervise(_process: Process) -> None:
        raise ZeroDivisionError

    with Simulation() as sim:
        sim.process("a", supervise)
        with pytest.raises(ZeroDivisionError):
            sim.run()


def test_what_it_may_end_with_does_not() -> None:
    def supervise(_process: Process) -> None:
        raise KeyError

    with Simulation() as sim:
        sim.process("a", supervise, may_end_with=(KeyError,))
        sim.run()


class AsksBack(pykka.ThreadingActor):
    """Asks whom it is sent, who may be waiting for it."""

    def on_receive(self, message: Any) -> Any:
        return message.ask(self.actor_ref)


def test_a_run_in_which_nothing_can_go_on_says_who_waits() -> None:
    def supervise(process: Process) -> None:
        one, other = process.start(AsksBack), process.start(AsksBack)
        one.ask(other)

    with Simulation() as sim:
        sim.process("a", supervise)
        with pytest.raises(SimulationFailedError, match=r"nothing can go on: .*a/main waits for an answer"):
            sim.run()


def test_a_run_that_does_not_end_is_told() -> None:
    def supervise(process: Process) -> None:
        while True:
            process.sleep(0.01)

    with Simulation(max_steps=500) as sim:
        sim.process("a", supervise)
        with pytest.raises(SimulationFailedError, match="has not ended after 500 steps"):
            sim.run()


class Scribe(pykka.ThreadingActor):
    """A user's own actor: it emits what it is told and answers how many there are."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.session = persist(process, process.system.claim, KEY)

    def on_receive(self, message: Any) -> int:
        return persist(self.process, self.session.emit, event(message)).offset


def test_a_supervisor_may_be_an_actor() -> None:
    def supervise(process: Process) -> None:
        scribe = process.start(Scribe, process)
        done = persist(process, lambda: list(process.system.replay(KEY)))
        for number in range(len(done), 4):
            scribe.ask(f"e{number}")

    def scenario(sim: Simulation) -> None:
        sim.process("a", supervise)
        sim.run()

        assert ["e0", "e1", "e2", "e3"] == ids(sim)

    assert 100 == explore(scenario, 100).seeds


def told_as_it_is_put_to_rest(sim: Simulation) -> None:
    ref = sim.system().activation(KEY)
    ref.ask(GetHead())
    ref.stop(block=False)
    for _ in range(3):
        ref.tell(Claim(), wait=None)
    sim.sleep(1)

    assert 3 == ref.ask(GetHead(), wait=1).fence


def test_what_an_activation_is_told_as_it_is_put_to_rest_is_handled_as_by_real_threads() -> None:
    assert 20 == explore(told_as_it_is_put_to_rest, seeds=20).seeds


def test_seeds_meet_every_fault_there_is() -> None:
    met: set[str] = set()

    def scenario(sim: Simulation) -> None:
        for name in ("a", "b"):
            sim.process(name, supervise)

    def supervise(process: Process) -> None:
        session = persist(process, process.system.claim, KEY)
        view = persist(process, process.system.view, KEY, LogEvents())
        for number in range(4):
            persist(process, session.emit, event(f"{process.name}-{process.starts}-{number}"))
            persist(process, view.get)
            process.sleep(process.choose([0.01, 0.1]))

    explore(scenario, 100, each=lambda sim: met.update(chosen.what for chosen in sim.choices.values()))

    assert {"run", "tick", "crash", "pause", "fail", "tear", "lose", "delay", "duplicate", "busy read", "number"} == met


def test_the_faults_are_the_errors_that_a_supervisor_knows() -> None:
    met: set[type[Exception]] = set()

    def supervise(process: Process) -> None:
        session = persist(process, process.system.claim, KEY)
        for number in range(4):
            try:
                session.emit(event(f"{process.starts}-{number}"))
            except (StoreBusyError, OutcomeUnknownError) as error:
                met.add(type(error))
                return

    explore(lambda sim: sim.process("a", supervise), 100)

    assert {StoreBusyError, OutcomeUnknownError} == met


def test_without_greenlet_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "greenlet", None)
    with pytest.raises(MissingExtraError) as missing:
        Simulation()

    assert 'pip install "incarnate[simulation]"' == missing.value.hint


def test_a_run_that_is_over_is_forgotten() -> None:
    runs: list[weakref.ref[Simulation]] = []
    explore(
        lambda sim: sim.process("a", lambda process: process.sleep(1)),
        20,
        each=lambda sim: runs.append(weakref.ref(sim)),
    )
    gc.collect()

    assert [] == [run() for run in runs if run() is not None]


@pytest.mark.parametrize("seed", [None, -7, 1.5, "7"])
def test_a_seed_that_would_not_name_one_run_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="a seed is a whole number from 0 on"):
        Simulation(seed)


def test_a_process_without_a_supervisor_can_be_killed_and_is_not_waited_for() -> None:
    with Simulation() as sim:
        sim.system("b").claim(KEY).emit(event("a"))
        sim.system("b").view(KEY, LogEvents()).get()
        sim.crash("b")
        sim.run()
        sim.check()

        assert ["a"] == ids(sim)


def test_what_is_called_after_the_end_of_a_simulation_says_so() -> None:
    with Simulation() as sim:
        session = sim.system().claim(KEY)
    for call in (lambda: session.emit(event("a")), lambda: sim.sleep(1), sim.run, sim.check):
        with pytest.raises(ClosedError, match="the simulation is closed"):
            call()
