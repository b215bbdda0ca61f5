"""The system: opening, closing, and what it survives."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    Append,
    Appended,
    AppendMany,
    Claim,
    ClosedError,
    FaultyStore,
    FenceMoved,
    GetHead,
    Head,
    Lease,
    OutcomeUnknownError,
    ReadOnlyError,
    SessionSystem,
    StaleIncarnationError,
    StoreFileError,
    Subscribe,
    UnknownCommandError,
    Unsubscribe,
    UserMessage,
    open_store,
)
from incarnate.actors.dispatchers import DispatcherName
from incarnate.storage.memory import MemoryStore
from incarnate.storage.port import Swept

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> UserMessage:
    return UserMessage(id=text, parent_id=None, text=text)


class Recorder:
    """A subscriber that keeps what it was told."""

    def __init__(self) -> None:
        self.notices: list[Any] = []

    def tell(self, message: Any) -> None:
        self.notices.append(message)


def failing(failure: BaseException, *, after: bool = False) -> FaultyStore:
    """A store that raises `failure` at the next write, before or after it is done."""
    store = FaultyStore(open_store("memory://"))
    arm = store.lose if after else store.fail
    arm(error=failure)
    return store


def test_several_systems_in_one_process_share_nothing(dispatcher: DispatcherName) -> None:
    one, other = (SessionSystem.open("memory://", dispatcher=dispatcher) for _ in range(2))
    with one, other:
        one.claim(KEY).emit(said("a"))

        assert [] == list(other.activations())


def test_what_was_closed_is_refused_and_closing_twice_is_no_error(url: str, dispatcher: DispatcherName) -> None:
    system = SessionSystem.open(url, dispatcher=dispatcher)
    session = system.claim(KEY)
    ref = system.activation(KEY)
    system.close()
    system.close()
    refused: list[Callable[[], object]] = [
        lambda: session.emit(said("a")),
        session.restore,
        lambda: ref.ask(GetHead()),
        lambda: ref.tell(GetHead()),
        lambda: system.claim(KEY),
        lambda: system.replay(KEY),
        lambda: list(system.activations()),
    ]
    for call in refused:
        with pytest.raises(ClosedError):
            call()


def test_a_read_only_system_reads_and_never_takes_a_lease(tmp_path: Path, dispatcher: DispatcherName) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionSystem.open(url) as system:
        system.claim(KEY).emit(said("a"))
    with SessionSystem.open(url, read_only=True, dispatcher=dispatcher) as system:
        assert ["a"] == [one.event.id for one in system.replay(KEY)]
        assert system.activation(KEY).ask(GetHead()).next_offset == 1
        with pytest.raises(ReadOnlyError):
            system.claim(KEY)
        with pytest.raises(ReadOnlyError):
            system.activation(KEY).ask(Append(1, 1, said("b")))


def test_a_read_only_system_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreFileError, match="does not exist"):
        SessionSystem.open(f"sqlite:///{tmp_path}/none.db", read_only=True)

    assert [] == list(tmp_path.iterdir())


def test_the_reference_to_an_activation_is_one(system: SessionSystem) -> None:
    assert system.activation(KEY) is system.activation(ActivationKey("pik-1", "implement-task"))


def test_messages_may_be_sent_by_hand(system: SessionSystem) -> None:
    ref = system.activation(KEY)

    assert Head(1, 0, 0, 0) == ref.ask(Claim())
    assert ref.ask(Append(1, 0, said("a"))).offset == 0
    assert ref.ask(GetHead(), block=False).get(timeout=5).next_offset == 1
    assert ref.ask(GetHead(), timeout=5).next_offset == 1


def test_the_checkpoints_of_a_log_are_those_that_no_rewind_pruned(system: SessionSystem) -> None:
    session = system.claim(KEY)
    made = []
    for text in "abc":
        session.emit(said(text))
        made.append(session.checkpoint(text))
    heir = system.claim(KEY)
    heir.restore(made[1].id)
    heir.emit(said("d"))

    assert made[:2] == system.checkpoints(KEY)


def test_a_fork_without_a_place_holds_all_that_there_is(system: SessionSystem) -> None:
    system.claim(KEY).emit_many([said("a"), said("b")])

    assert Head(1, 2, 0, 0) == system.fork(KEY, ActivationKey("pik-1", "fork"))
    assert Head(None, 0, 0, 0) == system.fork(ActivationKey("a", "nothing"), ActivationKey("a", "fork"))


class Secretive(MemoryStore):
    """A back end of somebody's own, whose URL tells the password."""

    url = "their://me:hunter2@host/db"


def test_a_system_shows_its_store_and_no_password(tmp_path: Path) -> None:
    with SessionSystem.open(f"sqlite:///{tmp_path}/s.db") as system, SessionSystem(Secretive()) as secretive:
        assert f"<SessionSystem sqlite:///{tmp_path}/s.db>" == repr(system)
        assert "<SessionSystem their://me:...@host/db>" == repr(secretive)


def test_a_tell_is_handled_before_a_later_ask(system: SessionSystem) -> None:
    ref = system.activation(KEY)
    ref.ask(Claim())
    for offset in range(50):
        ref.tell(Append(1, offset, said(str(offset))))

    assert ref.ask(GetHead()).next_offset == 50


def test_a_refused_tell_harms_nobody(system: SessionSystem) -> None:
    ref = system.activation(KEY)
    ref.ask(Lease(5))
    ref.tell(Lease(4))
    ref.tell("nonsense")

    assert ref.ask(GetHead()).fence == 5


def test_a_message_that_is_no_command_is_refused(system: SessionSystem) -> None:
    with pytest.raises(UnknownCommandError, match="str is no command"):
        system.activation(KEY).ask("nonsense")


@pytest.mark.parametrize("failure", [RuntimeError("boom"), MemoryError(), SystemExit(3), asyncio.CancelledError()])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whatever_a_store_raises_is_answered_and_the_next_message_is_served(
    dispatcher: DispatcherName, failure: BaseException, *, after: bool
) -> None:
    with SessionSystem(failing(failure, after=after), dispatcher=dispatcher) as system:
        ref = system.activation(KEY)
        with pytest.raises(OutcomeUnknownError) as told:
            ref.ask(Claim())

        assert told.value.__cause__ is failure
        assert ref.ask(Claim()).fence == (2 if after else 1)


def test_a_failing_tell_harms_nobody(dispatcher: DispatcherName) -> None:
    with SessionSystem(failing(SystemExit(3)), dispatcher=dispatcher) as system:
        ref = system.activation(KEY)
        ref.tell(Claim())

        assert ref.ask(Claim()).fence == 1


def test_an_emit_whose_outcome_was_unknown_is_repeated_without_doubling(dispatcher: DispatcherName) -> None:
    store = FaultyStore(open_store("memory://"))
    with SessionSystem(store, dispatcher=dispatcher) as system:
        session = system.claim(KEY)
        store.lose(error=RuntimeError("the answer was lost"))
        with pytest.raises(OutcomeUnknownError):
            session.emit(said("a"))
        session.emit(said("a"))
        session.emit(said("b"))

        assert ["a", "b"] == [one.event.id for one in system.replay(KEY)]


def test_an_interrupt_belongs_to_the_asking_thread_and_the_next_message_is_served() -> None:
    with SessionSystem(failing(KeyboardInterrupt())) as system:
        with pytest.raises(KeyboardInterrupt):
            system.claim(KEY)

        assert system.claim(KEY).incarnation == 1


def test_subscribers_are_told_what_changed(system: SessionSystem) -> None:
    recorder = Recorder()
    ref = system.activation(KEY)
    assert Head(None, 0, 0, 0) == ref.ask(Subscribe(recorder))
    ref.ask(Claim())
    stored = ref.ask(AppendMany(1, 0, (said("a"), said("b"))))
    (again,) = ref.ask(AppendMany(1, 1, (said("c"),)))
    with pytest.raises(StaleIncarnationError):
        ref.ask(Append(0, 2, said("zombie")))

    assert [
        FenceMoved(Head(1, 0, 0, 0)),
        Appended(Head(1, 2, 0, 0), None, stored),
        Appended(Head(1, 2, 1, 0), 1, (again,)),
    ] == recorder.notices


def test_a_subscriber_is_told_once_a_notice_and_nothing_after_it_left(system: SessionSystem) -> None:
    recorder = Recorder()
    ref = system.activation(KEY)
    ref.ask(Subscribe(recorder))
    ref.ask(Subscribe(recorder))
    ref.ask(Claim())
    ref.ask(Unsubscribe(recorder))
    ref.ask(Claim())

    assert [FenceMoved(Head(1, 0, 0, 0))] == recorder.notices


@pytest.mark.parametrize(
    "failure", [RuntimeError(), SystemExit(3), asyncio.CancelledError(), GeneratorExit()], ids=repr
)
def test_a_subscriber_that_cannot_be_told_harms_nobody(system: SessionSystem, failure: BaseException) -> None:
    class Broken:
        def tell(self, _message: Any) -> None:
            raise failure

    recorder = Recorder()
    ref = system.activation(KEY)
    ref.ask(Subscribe(Broken()))
    ref.ask(Subscribe(recorder))

    assert ref.ask(Claim()).fence == 1
    assert len(recorder.notices) == 1


def test_subscribers_outlive_a_failed_actor(dispatcher: DispatcherName) -> None:
    with SessionSystem(failing(RuntimeError("boom")), dispatcher=dispatcher) as system:
        recorder = Recorder()
        ref = system.activation(KEY)
        ref.ask(Subscribe(recorder))
        with pytest.raises(OutcomeUnknownError):
            ref.ask(Claim())
        ref.ask(Claim())

        assert len(recorder.notices) == 1


def test_a_caller_with_a_deadline_is_told_when_it_passes(dispatcher: DispatcherName) -> None:
    release, store = threading.Event(), FaultyStore(open_store("memory://"))
    held = store.delay(release)
    with SessionSystem(store, dispatcher=dispatcher) as system:
        ref = system.activation(KEY)
        with pytest.raises(OutcomeUnknownError, match=r"did not answer Claim in 0\.05 seconds"):
            ref.ask(Claim(), timeout=0.05)
        assert held.reached.is_set()
        release.set()

        assert ref.ask(GetHead()).fence == 1


def test_close_answers_every_waiting_caller(url: str, dispatcher: DispatcherName) -> None:
    system = SessionSystem.open(url, dispatcher=dispatcher)
    started = threading.Barrier(9)
    ends: list[BaseException] = []

    def write(number: int) -> None:
        session = system.claim(ActivationKey("pik", str(number % 2)))
        ref = system.activation(session.key)
        started.wait()
        try:
            while True:
                ref.ask(Claim())
        except ClosedError as error:
            ends.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    started.wait()
    system.close()
    for thread in threads:
        thread.join(10)

    assert [False] * 8 == [thread.is_alive() for thread in threads]
    assert len(ends) == 8


def test_an_unknown_dispatcher_is_refused() -> None:
    with pytest.raises(ValueError, match="use 'calling' or 'thread'"):
        SessionSystem.open("memory://", dispatcher="green")  # type: ignore[arg-type]


class WithoutKeys(MemoryStore):
    """As a back end that was written before a sweep could be one of some keys."""

    def sweep(self, before_ms: int) -> Swept:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        return super().sweep(before_ms)


def test_a_back_end_that_knows_of_no_keys_is_swept_whole() -> None:
    with SessionSystem(WithoutKeys()) as system:
        system.retire(KEY)

        assert Swept(1, 0, 0) == system.sweep(timedelta(seconds=-1))
