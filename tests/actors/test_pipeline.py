"""Appends in flight: order kept, nothing after a failure, and back-pressure."""

import os
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AppendedEvent,
    AppendMany,
    AssistantMessage,
    ClosedError,
    FaultyStore,
    ForkedError,
    OutcomeUnknownError,
    SessionSystem,
    StaleIncarnationError,
    ToolCall,
    UnencodableEventError,
    open_store,
)
from tests.support.waiting import soon

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def ids(system: SessionSystem) -> list[str]:
    return [appended.event.id for appended in system.replay(KEY)]


def failure(future: Future[AppendedEvent]) -> type[BaseException]:
    error = future.exception(timeout=10)
    assert error is not None
    return type(error)


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(open_store("memory://"))


def test_events_in_flight_keep_their_order(system: SessionSystem) -> None:
    session = system.claim(KEY)
    futures = [session.emit_soon(said(str(number))) for number in range(500)]

    assert list(range(500)) == [future.result(timeout=10).offset for future in futures]
    assert list(map(str, range(500))) == ids(system)
    assert session.next_offset == 500


def test_a_blocking_call_comes_after_what_is_in_flight(system: SessionSystem) -> None:
    session = system.claim(KEY)
    for number in range(50):
        session.emit_soon(said(str(number)))

    assert session.emit(said("last")).offset == 50
    session.emit_soon(said("more"))
    assert session.checkpoint("sha").offset == 52
    session.emit_soon(said("lost"))
    assert session.restore().discards == 1


def test_events_that_wait_together_share_a_commit(store: FaultyStore) -> None:
    go = threading.Event()
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        held = store.delay(go)
        futures = [session.emit_soon(said("first"))]
        held.reached.wait(10)
        futures += [session.emit_soon(said(str(number))) for number in range(200)]
        go.set()

        assert list(range(201)) == [future.result(timeout=10).offset for future in futures]
        assert store.calls["write"] == 3, "the claim, the first event, and all that came meanwhile"


def test_what_cannot_be_stored_fails_with_all_after_it_and_none_before(system: SessionSystem) -> None:
    session = system.claim(KEY)
    good = [session.emit_soon(said(str(number))) for number in range(3)]
    bad = [session.emit_soon(said(text)) for text in ("\ud800", "after")]

    assert [0, 1, 2] == [future.result(timeout=10).offset for future in good]
    assert [UnencodableEventError] * 2 == [failure(future) for future in bad]
    assert failure(session.emit_soon(said("still"))) is UnencodableEventError
    assert ["0", "1", "2"] == ids(system)


def test_a_failure_is_raised_once_by_the_next_blocking_call(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_soon(said("\ud800"))
    with pytest.raises(UnencodableEventError):
        session.emit(said("a"))

    assert session.emit(said("b")).offset == 0
    assert session.emit_soon(said("c")).result(timeout=10).offset == 1


def test_restore_makes_a_new_beginning(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.checkpoint("sha")
    session.emit_soon(said("\ud800"))
    session.restore()

    assert session.emit_soon(said("a")).result(timeout=10).offset == 0


def test_a_zombie_finds_out(system: SessionSystem) -> None:
    zombie = system.claim(KEY)
    system.claim(KEY)
    futures = [zombie.emit_soon(said(str(number))) for number in range(10)]

    assert [StaleIncarnationError] * 10 == [failure(future) for future in futures]
    assert [] == ids(system)


def test_after_an_unknown_outcome_the_log_is_gap_free_and_the_events_may_be_sent_again(
    store: FaultyStore,
) -> None:
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        store.fail(error=RuntimeError("the answer was lost"))
        lost = [session.emit_soon(said(text)) for text in "ab"]
        assert {OutcomeUnknownError} == {failure(future) for future in lost}
        with pytest.raises(OutcomeUnknownError):
            session.emit_many([said("a"), said("b")])
        session.emit_many([said("a"), said("b")])

        assert ["a", "b"] == ids(system)


def test_a_producer_that_is_too_fast_waits(store: FaultyStore) -> None:
    go = threading.Event()
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        store.delay(go, times=None)
        sent: list[int] = []

        def produce() -> None:
            for number in range(6000):
                session.emit_soon(said(str(number)))
                sent.append(number)

        producer = threading.Thread(target=produce)
        producer.start()
        producer.join(0.5)

        assert producer.is_alive()
        assert len(sent) < 6000 - 512
        go.set()
        producer.join(20)
        session.emit(said("last"))
        assert len(ids(system)) == 6001


def test_closing_the_system_sends_what_is_in_flight(url: str) -> None:
    system = SessionSystem.open(url)
    session = system.claim(KEY)
    futures = [session.emit_soon(said(str(number))) for number in range(100)]
    system.close()

    assert list(range(100)) == [future.result(timeout=0).offset for future in futures]
    with pytest.raises(ClosedError):
        session.emit_soon(said("late"))


def test_sessions_of_many_threads_each_keep_their_order(system: SessionSystem) -> None:
    failures: list[Any] = []

    def write(number: int) -> None:
        key = ActivationKey("pik", str(number))
        session = system.claim(key)
        for index in range(100):
            session.emit_soon(said(str(index)))
        session.emit(said("last"))
        if [*map(str, range(100)), "last"] != [one.event.id for one in system.replay(key)]:
            failures.append(key)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert [] == failures
    with pytest.raises(StaleIncarnationError):
        system.activation(ActivationKey("pik", "0")).ask(AppendMany(0, 0, (said("x"),)))


def test_what_a_sender_does_to_an_event_afterwards_does_not_change_it(store: FaultyStore) -> None:
    go_on = threading.Event()
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        store.delay(go_on, kind="append")
        args = {"command": "ls"}
        future = session.emit_soon(ToolCall(id="c", parent_id=None, call_id="c", name="bash", args=args))
        args["command"] = "rm"
        go_on.set()
        future.result(timeout=10)

        assert [{"command": "ls"}] == [vars_of(appended) for appended in system.replay(KEY)]


def vars_of(appended: AppendedEvent) -> Any:
    assert isinstance(appended.event, ToolCall)
    return appended.event.args


def test_a_sender_of_large_events_waits_before_they_fill_the_memory(store: FaultyStore) -> None:
    go_on = threading.Event()
    large = AssistantMessage(id="large", parent_id=None, text="x" * (9 * 1024 * 1024))
    added: list[Future[AppendedEvent]] = []
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        held = store.delay(go_on, kind="append")
        session.emit_soon(large)
        sender = threading.Thread(target=lambda: added.extend(session.emit_soon(large) for _ in range(20)), daemon=True)
        try:
            assert held.reached.wait(10)
            sender.start()
            pipeline: Any = vars(session)["_pipeline"]
            assert soon(lambda: len(pipeline._backlog.waiting) == 8, 20)  # noqa: SLF001 - how many wait is told nowhere
            assert not soon(lambda: len(pipeline._backlog.waiting) > 8, 0.1)  # noqa: SLF001
        finally:
            go_on.set()
        sender.join(30)

        assert list(range(1, 21)) == [future.result(timeout=10).offset for future in added]


def test_a_callback_that_raises_whatever_it_is_keeps_nobody_from_his_answer(store: FaultyStore) -> None:
    go_on = threading.Event()

    def raises(_: object) -> None:
        raise SystemExit

    with SessionSystem(store) as system:
        session = system.claim(KEY)
        held = store.delay(go_on, kind="append")
        futures = [session.emit_soon(said("first"))]
        assert held.reached.wait(10)
        futures += [session.emit_soon(said(str(number))) for number in range(5)]
        futures[2].add_done_callback(raises)
        go_on.set()

        assert list(range(6)) == [future.result(timeout=10).offset for future in futures]


def stuck(system: SessionSystem, store: FaultyStore, go: threading.Event) -> list[Future[AppendedEvent]]:
    """As many events of as many sessions as are sent at once, each of them in the store until `go`."""
    sessions = [system.claim(ActivationKey("stuck", str(number))) for number in range(8)]
    held = [store.delay(go, key=session.key) for session in sessions]
    futures = [session.emit_soon(said("first")) for session in sessions]
    assert all(one.reached.wait(10) for one in held)
    return futures


def test_one_event_that_comes_too_late_takes_none_of_those_that_are_on_their_way(store: FaultyStore) -> None:
    go = threading.Event()
    system = SessionSystem(store)
    session = system.claim(KEY)
    held = store.delay(go)
    futures = [session.emit_soon(said("first"))]
    assert held.reached.wait(10)
    futures += [session.emit_soon(said(str(number))) for number in range(5)]
    closing = threading.Thread(target=system.close)
    closing.start()
    assert soon(lambda: vars(vars(vars(session)["_runtime"])["_lingerer"])["_closed"])
    with pytest.raises(ClosedError):
        session.emit_soon(said("late"))
    go.set()
    closing.join(10)

    assert list(range(6)) == [future.result(timeout=0).offset for future in futures]


def test_who_waits_while_the_system_is_closed_gets_what_was_sent_before(store: FaultyStore) -> None:
    go = threading.Event()
    system = SessionSystem(store)
    session = system.claim(KEY)
    others = stuck(system, store, go)
    future = session.emit_soon(said("queued"))
    closing = threading.Thread(target=system.close)
    closing.start()
    assert soon(lambda: vars(vars(vars(session)["_runtime"])["_submitted"])["_closed"])
    threading.Timer(0.05, go.set).start()

    assert 0 == future.result().offset
    closing.join(10)
    assert [0] * 8 == [other.result(timeout=0).offset for other in others]


def test_what_waits_for_a_thread_is_submitted_once(store: FaultyStore) -> None:
    go = threading.Event()
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        stuck(system, store, go)
        crew: Any = vars(vars(session)["_runtime"])["_submitted"]
        futures = [session.emit_soon(said(str(number))) for number in range(400)]
        assert soon(lambda: len(vars(crew)["_waiting"]) == 1)
        assert not soon(lambda: len(vars(crew)["_waiting"]) > 1, 0.05)
        go.set()

        assert list(range(400)) == [future.result(timeout=10).offset for future in futures]


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), MemoryError()])
def test_whatever_ends_the_thread_that_sends_those_whose_events_it_had_are_answered(
    system: SessionSystem, error: BaseException
) -> None:
    session = system.claim(KEY)
    session.emit_soon(said("first")).result(timeout=10)
    pipeline: Any = vars(session)["_pipeline"]

    def ended(_events: object) -> Any:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_send", ended)
        futures = [session.emit_soon(said(str(number))) for number in range(3)]
        told = {failure(future) for future in futures}
    with pytest.raises(tuple(told)):
        session.settle()

    assert told <= {OutcomeUnknownError, MemoryError}
    assert 1 == session.emit_soon(said("after")).result(timeout=10).offset


def test_a_forked_child_that_waits_for_an_event_of_its_parent_is_told(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_soon(said("first")).result(timeout=10)  # so that a thread is idle, of which the child has none
    vars(session)["_runtime"].linger = lambda _work: None
    future = session.emit_soon(said("parent"))
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            future.result()
        except ForkedError:
            os._exit(7)
        finally:
            os._exit(1)

    assert 7 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 1 == future.result(timeout=10).offset


def test_sessions_that_never_stop_sending_keep_no_other_from_it(system: SessionSystem) -> None:
    """There are eight threads for all of them."""
    end = threading.Event()

    def produce(number: int) -> None:
        session = system.claim(ActivationKey("busy", str(number)))
        while not end.is_set():
            session.emit_soon(said("more"))

    producers = [threading.Thread(target=produce, args=(number,), daemon=True) for number in range(9)]
    for producer in producers:
        producer.start()
    try:
        assert soon(lambda: system.metrics().events > 20_000, 30)
        assert 0 == system.claim(KEY).emit_soon(said("mine")).result(timeout=15).offset
    finally:
        end.set()
    for producer in producers:
        producer.join(20)


def test_an_emit_does_not_wait_for_what_others_go_on_to_send(store: FaultyStore) -> None:
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        store.delay(lambda: threading.Event().wait(0.003), times=None)
        end = threading.Event()

        def produce() -> None:
            while not end.wait(0.0003):
                session.emit_soon(said("more"))

        def emit() -> int:
            return max(session.emit(said("mine")).offset for _ in range(5))

        producer = threading.Thread(target=produce, daemon=True)
        producer.start()
        with ThreadPoolExecutor(1) as pool:
            try:
                elsewhere = pool.submit(emit)
                assert 0 < emit()
                assert 0 < elsewhere.result(timeout=10)
                assert producer.is_alive()
            finally:
                end.set()
        producer.join(10)
