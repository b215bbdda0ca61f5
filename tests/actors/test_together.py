"""Emits of many sessions in one transaction: what is free is written, and what is not is left as it was."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    FaultyStore,
    GetHead,
    OutcomeUnknownError,
    Session,
    SessionSystem,
    StaleIncarnationError,
    StoreBusyError,
    Subscribe,
    UnencodableEventError,
    WouldRewindError,
    open_store,
)
from incarnate.actors.calling import CallingAddress
from incarnate.actors.references import Reference
from incarnate.actors.together import Emit, emit_together
from incarnate.domain.projections.log import LogEvents
from incarnate.storage.memory import MemoryStore
from tests.support.waiting import soon


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def leased(system: SessionSystem, count: int) -> list[Session]:
    return [system.claim(ActivationKey("pik", str(number))) for number in range(count)]


def ids(system: SessionSystem, number: int) -> list[str]:
    return [appended.event.id for appended in system.replay(ActivationKey("pik", str(number)))]


def together(*emits: Emit) -> list[str]:
    """What came of each, done on a thread of its own, as it has to be."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(emit_together, emits).result(timeout=20)
    return ["written" if one.appended else type(one.error).__name__ if one.error else "left" for one in emits]


@contextmanager
def elsewhere(work: Callable[[threading.Event], object]) -> Any:
    """While `work` goes on on another thread, until the event that it is given."""
    end = threading.Event()
    thread = threading.Thread(target=work, args=(end,))
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_emits_of_many_sessions_are_one_commit(tmp_path: Path) -> None:
    with SessionSystem.open(f"sqlite:///{tmp_path}/log.db") as system:
        sessions = leased(system, 50)
        commits = system.metrics().group_sizes.count

        assert ["written"] * 50 == together(*[Emit(session, said("a")) for session in sessions])
        assert commits + 1 == system.metrics().group_sizes.count
        assert [["a"]] * 50 == [ids(system, number) for number in range(50)]
        assert [1] * 50 == [session.next_offset for session in sessions]


def test_each_is_answered_with_what_was_stored_of_it(system: SessionSystem) -> None:
    emits = [Emit(session, said(str(number))) for number, session in enumerate(leased(system, 5))]
    done = together(*emits)

    if "left" in done:  # each of these actors has a thread of its own
        assert ["left"] * 5 == done
    else:
        assert [(0, str(number)) for number in range(5)] == [
            (one.appended.offset, one.appended.event.id) for one in emits if one.appended
        ]


def test_one_that_is_refused_takes_nothing_from_the_others() -> None:
    with SessionSystem.open("memory://") as system:
        first, stale, last = leased(system, 3)
        system.claim(stale.key)
        unsound = system.claim(ActivationKey("pik", "unsound"))
        emits = [Emit(first, said("a")), Emit(stale, said("b")), Emit(unsound, said("\ud800")), Emit(last, said("d"))]

        assert ["written", "StaleIncarnationError", "UnencodableEventError", "written"] == together(*emits)
        with pytest.raises(StaleIncarnationError):
            stale.emit(said("again"))
        with pytest.raises(UnencodableEventError):
            unsound.emit(said("\ud800"))
        assert 0 == unsound.emit(said("sound")).offset


def test_of_two_of_one_session_only_the_first_is_written() -> None:
    with SessionSystem.open("memory://") as system:
        [session] = leased(system, 1)

        assert ["written", "left"] == together(Emit(session, said("a")), Emit(session, said("b")))
        assert 1 == session.emit(said("b")).offset


def test_a_session_that_is_in_use_is_left() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    store.commits_together = True
    with SessionSystem(store) as system, ThreadPoolExecutor(1) as pool:
        busy, free = leased(system, 2)
        held = store.delay(go)
        under_way = pool.submit(busy.emit, said("first"))
        assert held.reached.wait(10)

        assert ["left", "written"] == together(Emit(busy, said("second")), Emit(free, said("a")))
        go.set()
        assert 0 == under_way.result(timeout=10).offset


def test_an_actor_that_somebody_asks_is_left() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    store.commits_together = True
    with SessionSystem(store) as system, ThreadPoolExecutor(1) as pool:
        [session] = leased(system, 1)
        other = system.lease(session.key, 1)  # another handle on the same activation
        held = store.delay(go)
        under_way = pool.submit(other.emit, said("theirs"))
        assert held.reached.wait(10)

        assert ["left"] == together(Emit(session, said("mine")))
        go.set()
        under_way.result(timeout=10)


def test_a_session_with_events_in_flight_is_left() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    store.commits_together = True
    with SessionSystem(store) as system:
        [session] = leased(system, 1)
        held = store.delay(go)
        session.emit_soon(said("a"))
        assert held.reached.wait(10)

        assert ["left"] == together(Emit(session, said("b")))
        go.set()
        assert 1 == session.emit(said("b")).offset


def test_a_session_whose_events_in_flight_have_arrived_is_as_good_as_any_other() -> None:
    with SessionSystem.open("memory://") as system:
        sessions = leased(system, 3)
        for session in sessions[:2]:
            session.emit_soon(said("a"))
            session.settle()

        assert ["written"] * 3 == together(*[Emit(session, said("b")) for session in sessions])
        assert 2 == sessions[0].emit_soon(said("c")).result(timeout=10).offset
        assert [["a", "b", "c"], ["a", "b"], ["b"]] == [ids(system, number) for number in range(3)]


def test_a_session_whose_events_in_flight_failed_is_left_until_it_was_told() -> None:
    with SessionSystem.open("memory://") as system:
        [session] = leased(system, 1)
        assert session.emit_soon(said("\ud800")).exception(timeout=10)

        assert ["left"] == together(Emit(session, said("b")))
        with pytest.raises(UnencodableEventError):
            session.emit(said("b"))
        assert ["written"] == together(Emit(session, said("b")))


def test_a_session_that_would_erase_its_log_is_left() -> None:
    with SessionSystem.open("memory://") as system:
        [session] = leased(system, 1)
        session.emit(said("a"))
        session.restore()

        assert ["left"] == together(Emit(session, said("b")))
        with pytest.raises(WouldRewindError):
            session.emit(said("b"))


def test_a_closed_system_writes_nothing_more() -> None:
    with SessionSystem.open("memory://") as system:
        [session] = leased(system, 1)

    assert ["left"] == together(Emit(session, said("a")))


def test_none_at_all_is_nothing() -> None:
    assert [] == together()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreBusyError("busy"), "StoreBusyError"),
        (OutcomeUnknownError("lost"), "OutcomeUnknownError"),
        (SystemExit(), "OutcomeUnknownError"),
        (MemoryError(), "OutcomeUnknownError"),
    ],
)
def test_what_the_store_cannot_tell_is_told_to_each_who_asked(
    error: BaseException, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store("memory://")
    with SessionSystem(store) as system:
        sessions = leased(system, 3)
        with monkeypatch.context() as patch:

            def fails(_calls: object) -> Any:
                raise error

            patch.setattr(store, "transact_each", fails)
            assert [told] * 3 == together(*[Emit(session, said("a")) for session in sessions])

        assert ["written"] * 3 == together(*[Emit(session, said("a")) for session in sessions])
        assert [1] * 3 == [session.next_offset for session in sessions]


def test_an_actor_that_a_store_kills_is_replaced_and_the_others_live(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory://")
    with SessionSystem(store) as system:
        sessions = leased(system, 3)
        transact = store.transact

        def broken(key: ActivationKey, *rest: Any) -> Any:
            if key == sessions[1].key:
                raise ZeroDivisionError
            return transact(key, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(store, "transact", broken)
            done = together(*[Emit(session, said("a")) for session in sessions])

        assert ["written", "OutcomeUnknownError", "written"] == done
        assert 1 == sum(system.metrics().failures.values())
        assert ["written"] * 3 == together(*[Emit(session, said("b")) for session in sessions])


def test_what_a_store_does_one_after_the_other_is_left(tmp_path: Path) -> None:
    """Each of them would wait for all before it, and the threads that could do them at once do nothing."""
    with SessionSystem.open(f"jsonl:///{tmp_path}/logs") as system:
        sessions = leased(system, 3)

        assert ["left"] * 3 == together(*[Emit(session, said("a")) for session in sessions])
        assert [0] * 3 == [session.emit(said("a")).offset for session in sessions]


def test_whose_actors_have_threads_of_their_own_is_not_asked_to_lend_them() -> None:
    """Each emit would go to a thread, back to the loop, and to another thread."""
    with SessionSystem.open("memory://", dispatcher="thread") as system:
        assert [False] * 3 == [session.emits_together for session in leased(system, 3)]


def test_a_store_that_answers_too_few_leaves_nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory://")
    with SessionSystem(store) as system:
        sessions = leased(system, 3)
        each = store.transact_each
        with monkeypatch.context() as patch:
            patch.setattr(store, "transact_each", lambda calls: each(calls)[:-1])

            assert ["OutcomeUnknownError"] * 3 == together(*[Emit(session, said("a")) for session in sessions])

        assert [0] * 3 == [session.emit(said("a")).offset for session in sessions], "repeated, and not written twice"


BREAKABLE = (
    (Session, "begin_emit"),
    (Session, "_advance"),
    (Reference, "held"),
    (Reference, "answered"),
    (CallingAddress, "hold"),
    (CallingAddress, "answer"),
    (MemoryStore, "transact_each"),
    (Emit, "finish"),
)


@pytest.mark.parametrize(("owner", "name"), BREAKABLE)
@pytest.mark.parametrize("error", [MemoryError(), SystemExit()])
def test_wherever_it_breaks_off_nothing_stays_held(
    owner: Any, name: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionSystem.open("memory://") as system:
        sessions = leased(system, 3)
        emits = [Emit(session, said("a")) for session in sessions]
        sound, calls = getattr(owner, name), count()

        def breaks(*arguments: Any, **named: Any) -> Any:
            if next(calls) == (0 if name == "transact_each" else 1):
                raise error
            return sound(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, breaks)
            with suppress(MemoryError, SystemExit):
                together(*emits)
        with ThreadPoolExecutor(1) as pool:
            for session in sessions:
                session.restore(rewind=True)
                assert pool.submit(session.emit, said("b")).result(timeout=10).event.id == "b"
        after = [Emit(session, said("c")) for session in sessions]

        assert ["written"] * 3 == together(*after)


def test_a_subscriber_of_one_may_write_to_another() -> None:
    with SessionSystem.open("memory://") as system:
        first, second = leased(system, 2)
        written: list[int] = []

        class Forwards:
            def tell(self, message: Any) -> None:
                written.append(second.emit(said(message.events[0].event.id)).offset)

        system.activation(first.key).ask(Subscribe(Forwards()))
        emits = [Emit(first, said("a")), Emit(second, said("b"))]

        assert ["left", "written"] == together(*emits)
        first.emit(said("a"))
        assert [1] == written


def test_an_answer_ends_a_row_of_failures() -> None:
    store = FaultyStore(open_store("memory://"))
    store.commits_together = True
    with SessionSystem(store) as system:
        [session] = leased(system, 1)
        done: list[str] = []
        for number in range(4):
            store.fail(error=MemoryError("on purpose"))
            done += together(Emit(session, said(str(number))))
            done += together(Emit(session, said(str(number))))

    assert ["OutcomeUnknownError", "written"] * 4 == done


def test_those_that_are_held_are_put_to_rest_when_they_are_not_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request to stop that waits for them meanwhile would be one message too many for whoever asks next."""
    store = open_store("memory://")
    with SessionSystem(store, max_live=2, max_mailbox=1) as system:
        sessions = leased(system, 6)
        refs = [system.activation(session.key) for session in sessions]
        each, queued = store.transact_each, list[int]()

        def look(calls: Any) -> Any:
            queued.extend(ref.queued for ref in refs)
            return each(calls)

        monkeypatch.setattr(store, "transact_each", look)

        assert ["written"] * 6 == together(*[Emit(session, said("a")) for session in sessions])
        assert [0] * 6 == queued
        assert 2 == system.metrics().live_activations


def test_whoever_follows_is_told() -> None:
    with SessionSystem.open("memory://") as system:
        [session] = leased(system, 1)
        view = system.view(session.key, LogEvents())
        assert [] == list(view.get())
        together(Emit(session, said("a")))

        assert soon(lambda: ["a"] == [appended.event.id for appended in view.get()])


def test_writes_are_counted_as_others_are() -> None:
    with SessionSystem.open("memory://") as system:
        sessions = leased(system, 4)
        before = system.metrics()
        system.claim(sessions[3].key)
        together(*[Emit(session, said("a")) for session in sessions])
        after = system.metrics()

    assert (3, 1) == (after.events - before.events, after.fenced - before.fenced)


def test_who_asks_meanwhile_is_answered() -> None:
    """A wake-up that is lost, or a message that is handled twice, would show."""
    with SessionSystem.open("memory://") as system:
        sessions = leased(system, 4)
        refs = [system.activation(session.key) for session in sessions]
        asked: list[int] = []

        def ask(end: threading.Event) -> None:
            while not end.is_set():
                asked.extend(ref.ask(GetHead(), timeout=20).next_offset for ref in refs)

        with elsewhere(ask), elsewhere(ask), elsewhere(ask):
            written = 0
            while written < 2000:
                emits = [Emit(session, said("a")) for session in sessions]
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(emit_together, emits).result(timeout=20)
                written += sum(one.appended is not None for one in emits)
                assert not [one.error for one in emits if one.error]

        assert written == sum(session.next_offset for session in sessions)
        assert asked
