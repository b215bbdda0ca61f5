"""Many threads, all ways to send, the hardest timing there is; and proof that it finds what it is there to find.

Each planted fault is one that a dispatcher has had or nearly had: a wake-up that is lost, a message that is handled
twice, two that are handled at once.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pykka
import pytest

from incarnate import ActivationKey, ClosedError, GetHead, ModelHistory, SessionSystem, UserMessage
from incarnate.actors.answers import Answer
from incarnate.actors.calling import CallingAddress, CallingMailbox
from incarnate.actors.crews import Crew
from incarnate.actors.dispatchers import DispatcherName, make_runtime
from incarnate.actors.runtime import Runtime
from incarnate.actors.threaded import ThreadMailbox
from tests.support.counters import Counter, actor_of, often_switched, stress, switched_anywhere, together, wake_ups


@pytest.fixture
def runtime(dispatcher: DispatcherName) -> Generator[Runtime]:
    made = make_runtime(dispatcher)
    yield made
    made.close()


def test_nothing_is_lost_nothing_is_doubled_and_nothing_overlaps(runtime: Runtime) -> None:
    with often_switched():
        for _ in range(10):
            assert [] == stress(runtime, senders=16, messages=120)


def test_neither_where_handlers_take_their_time(runtime: Runtime) -> None:
    with often_switched():
        assert [] == stress(runtime, senders=8, messages=100, work=lambda: time.sleep(0.0002))


def test_no_wake_up_is_lost(runtime: Runtime) -> None:
    with often_switched():
        assert [] == wake_ups(runtime, rounds=3000)


# -- planted faults -----------------------------------------------------------


def forgets_to_send(patch: pytest.MonkeyPatch) -> None:
    """Now and then nobody is sent for what was told."""
    handle_soon, count = CallingMailbox.handle_soon, [0]

    def forgetful(self: CallingMailbox) -> None:
        count[0] += 1
        if count[0] % 50:
            handle_soon(self)

    patch.setattr(CallingMailbox, "handle_soon", forgetful)


def clears_too_late(patch: pytest.MonkeyPatch) -> None:
    """That somebody was sent for is forgotten after the queue was looked at, not before."""

    def late(self: CallingMailbox) -> None:
        with self.lock:
            while self.queue:
                self._run(64, 0.0)
            time.sleep(0)  # as `switched_anywhere` does in the library's own lines
            self._errand = None

    patch.setattr(CallingMailbox, "_take_turn", late)


def serves_too_few(patch: pytest.MonkeyPatch) -> None:
    """What comes while a turn is taken is left to nobody."""

    def once(self: CallingMailbox) -> None:
        with self.lock:
            self._errand = None
            self._run(1, 0.0)

    patch.setattr(CallingMailbox, "_take_turn", once)


def takes_twice(patch: pytest.MonkeyPatch) -> None:
    """A message is looked at, and now and then not taken out."""

    class Sticky(deque[Any]):
        taken = 0

        def popleft(self) -> Any:
            self.taken += 1
            return self[0] if self.taken % 40 == 0 else super().popleft()

    def made(self: CallingMailbox) -> Any:
        if not isinstance(self.queue, Sticky):
            self.queue = Sticky()
        return self.queue

    patch.setattr(CallingMailbox, "_made", made)


def takes_no_lock(patch: pytest.MonkeyPatch) -> None:
    """A caller handles his own message although the actor may be busy."""

    def ask(self: CallingAddress, message: Any, *, block: bool = True, **options: Any) -> Any:
        if not block or options:
            return super(CallingAddress, self).ask(message, block=block, **options)
        return self.actor_inbox.actor.answer(message)

    patch.setattr(CallingAddress, "ask", ask)


def settles_in_silence(patch: pytest.MonkeyPatch) -> None:
    """Now and then an answer is given to nobody."""
    settle, count = Answer._settle, [0]  # noqa: SLF001

    def silent(self: Answer) -> None:
        count[0] += 1
        if count[0] % 50:
            settle(self)

    patch.setattr(Answer, "_settle", silent)


def loses_work(patch: pytest.MonkeyPatch) -> None:
    """A crew hands work to a thread that has gone."""
    submit, count = Crew.submit, [0]

    def lossy(self: Crew, work: Callable[[], object]) -> None:
        count[0] += 1
        if count[0] % 50:
            submit(self, work)

    patch.setattr(Crew, "submit", lossy)


def drops_a_message(patch: pytest.MonkeyPatch) -> None:
    get, count = ThreadMailbox.get, [0]

    def lossy(self: ThreadMailbox) -> Any:
        count[0] += 1
        if count[0] % 100 == 0:
            get(self)
        return get(self)

    patch.setattr(ThreadMailbox, "get", lossy)


def hands_out_twice(patch: pytest.MonkeyPatch) -> None:
    get, count = ThreadMailbox.get, [0]
    last: list[Any] = []

    def doubled(self: ThreadMailbox) -> Any:
        count[0] += 1
        if not last or count[0] % 100:
            last[:] = [get(self)]
        return last[0]

    patch.setattr(ThreadMailbox, "get", doubled)


FAULTS: list[tuple[DispatcherName, Callable[[pytest.MonkeyPatch], None]]] = [
    ("calling", forgets_to_send),
    ("calling", clears_too_late),
    ("calling", serves_too_few),
    ("calling", takes_twice),
    ("calling", takes_no_lock),
    ("calling", loses_work),
    ("calling", settles_in_silence),
    ("thread", drops_a_message),
    ("thread", hands_out_twice),
    ("thread", settles_in_silence),
]


def found(dispatcher: DispatcherName, patience: float) -> Sequence[str]:
    """What the stress test has to say of a dispatcher, at the latest after ten rounds."""
    problems: list[str] = []
    for seed in range(10):
        runtime = make_runtime(dispatcher)
        with switched_anywhere(seed):
            problems += wake_ups(runtime, rounds=200, patience=patience)
            problems += stress(runtime, senders=8, messages=40, patience=patience)
        if problems:
            break
    return problems


@pytest.mark.parametrize(("dispatcher", "fault"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_fault_is_found(dispatcher: DispatcherName, fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        problems = found(dispatcher, patience=0.5)

    assert problems


@pytest.mark.parametrize("dispatcher", ["calling", "thread"])
def test_the_same_rounds_find_nothing_where_nothing_was_planted(dispatcher: DispatcherName) -> None:
    assert [] == found(dispatcher, patience=20.0)


# -- stopping under load ------------------------------------------------------


def test_an_actor_that_stops_under_load_answers_everybody(runtime: Runtime) -> None:
    for seed in range(10):
        with switched_anywhere(seed):
            stop_under_load(runtime.start(Counter))


def stop_under_load(ref: Any) -> None:
    answered: list[int] = []

    def send(number: int) -> None:
        if number == 0:
            ref.stop(block=False)
            return
        with contextlib.suppress(pykka.ActorDeadError):
            for index in range(10):
                ref.tell("told")
                ref.ask(index) if index % 2 else ref.ask(index, block=False).get()
        answered.append(number)

    assert [] == together(16, send, 20)
    assert len(answered) == 15


def test_a_system_that_is_closed_under_load_answers_everybody(dispatcher: DispatcherName) -> None:
    for _ in range(5):
        close_under_load(SessionSystem.open("memory://", dispatcher=dispatcher))


def close_under_load(system: SessionSystem) -> None:
    """Each call is done, or says that the system is closed."""
    sessions = [system.claim(ActivationKey("p", str(number))) for number in range(8)]
    view = system.view(sessions[0].key, ModelHistory())
    begun = threading.Semaphore(0)

    def send(number: int, index: int) -> object:
        session = sessions[number % 8]
        match (number + index) % 4:
            case 0:
                return session.emit_soon(UserMessage(id=f"{number}-{index}", parent_id=None, text="x"))
            case 1:
                return view.get()
            case 2:
                system.activation(session.key).tell(GetHead())
                return None
            case _:
                return system.activation(session.key).ask(GetHead())

    def work(number: int) -> None:
        if number == 16:
            assert all(begun.acquire(timeout=20) for _ in range(16))
            system.close()
            return
        with contextlib.suppress(ClosedError):
            for index in range(10_000):
                send(number, index)
                if index == 20:
                    begun.release()

    assert [] == together(17, work, 40)


def test_a_runtime_that_is_closed_under_load_answers_everybody(dispatcher: DispatcherName) -> None:
    for seed in range(5):
        with switched_anywhere(seed):
            close_runtime_under_load(make_runtime(dispatcher))


def close_runtime_under_load(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    closing = threading.Event()

    def work(number: int) -> None:
        if number == 16:
            closing.wait(5)
            runtime.close()
            return
        with contextlib.suppress(ClosedError, pykka.ActorDeadError):
            for index in range(200):
                ref.tell("told", wait=None) if index % 2 else ref.ask(index, wait=None)
                closing.set()

    assert [] == together(17, work, 40)
    assert actor_of(ref).overlaps == 0
