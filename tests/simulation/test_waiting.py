"""Locks, events, conditions, futures and the end of a system, among tasks of a simulation."""

from collections.abc import Callable

import pytest

from incarnate.actors.pipeline import Pipeline
from incarnate.actors.runtime import Runtime
from incarnate.domain.errors import ClosedError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.log import LogEvents
from incarnate.simulation import Process, Simulation, explore, persist

KEY = ActivationKey("p", "e")


def in_flight(runtime: Runtime) -> Pipeline:
    """What a future is made for."""
    return Pipeline(lambda _events: (), runtime)


def test_a_lock_keeps_others_out_in_every_order() -> None:
    def supervise(process: Process) -> None:
        lock = process.runtime.lock()
        inside: list[str] = []

        def enter(name: str) -> None:
            with lock:
                assert lock.locked()
                assert not inside
                inside.append(name)
                process.sleep(process.choose([0.001, 0.002]))
                inside.remove(name)

        for name in "abc":
            process.spawn(enter, name)

    assert 50 == explore(lambda sim: sim.process("a", supervise), 50).seeds


def test_an_rlock_lets_its_owner_in_again() -> None:
    def supervise(process: Process) -> None:
        lock = process.runtime.rlock()
        order: list[str] = []

        def enter(name: str) -> None:
            with lock:
                with lock:
                    order.append(name)
                    process.sleep(0.01)
                assert lock._is_owned()  # noqa: SLF001 - as `threading.Condition` asks
                order.append(name)
            assert not lock._is_owned()  # noqa: SLF001 - likewise
            assert order[::2] == order[1::2]

        process.spawn(enter, "a")
        process.spawn(enter, "b")

    assert 50 == explore(lambda sim: sim.process("a", supervise), 50).seeds


def test_waits_end_with_their_time_or_with_what_they_wait_for() -> None:
    with Simulation(plan={}) as sim:
        process = sim.process("a", lambda process: process.sleep(1))
        runtime = process.runtime
        event, condition, future = runtime.event(), runtime.condition(), runtime.future(in_flight(runtime))

        def settle() -> None:
            sim.sleep(0.2)
            event.set()
            with condition:
                condition.notify_all()
            future.set_result("result")

        assert not event.wait(0.1)
        with condition:
            assert not condition.wait(0.1)
            assert not condition.wait_for(lambda: False, 0.1)
        with pytest.raises(TimeoutError):
            future.result(0.1)
        before = sim.now
        sim.spawn(settle)
        with condition:
            assert condition.wait_for(event.is_set, 5)
        assert event.wait()
        assert "result" == future.result()
        assert future.exception() is None
        assert 0.2 <= sim.now - before < 0.3
        event.clear()
        assert not event.is_set()


def test_a_future_raises_what_it_failed_with() -> None:
    with Simulation(plan={}) as sim:
        runtime = sim.process("a", lambda process: process.sleep(1)).runtime
        future = runtime.future(in_flight(runtime))
        sim.spawn(future.set_exception, KeyError("lost"))

        with pytest.raises(KeyError):
            future.result()


def test_a_system_that_is_closed_under_load_answers_everybody() -> None:
    """Each emit is answered or refused, and nobody waits for ever: else nothing could go on."""

    def supervise(process: Process) -> None:
        system = process.system
        ended: list[object] = []
        session = persist(process, system.claim, KEY)
        view = persist(process, system.view, KEY, LogEvents())

        def work(call: Callable[[], object]) -> None:
            try:
                while True:
                    persist(process, call)
            except ClosedError:
                ended.append(call)

        def emit_soon() -> None:
            session.emit_soon(AssistantMessage(id=process.new_id(), parent_id=None, text="")).result()

        process.spawn(work, emit_soon)
        process.spawn(work, view.get)
        process.spawn(work, lambda: list(view.changes()))
        process.spawn(work, lambda: view.get(at_least=(7, 0)))
        process.sleep(process.choose([0.001, 0.005, 0.02]))
        system.close()
        process.sleep(1)
        assert 4 == len(ended)

    assert 100 == explore(lambda sim: sim.process("a", supervise), 100).seeds
