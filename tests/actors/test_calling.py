"""Both dispatchers: one message at a time, none lost, none twice; and what an interrupt may do to `calling`."""

import contextlib
import sys
import threading
from collections.abc import Generator
from typing import Any

import pykka
import pytest

from incarnate import OutcomeUnknownError, ReentrantCallError
from incarnate.actors.calling import CallingActor
from incarnate.actors.contained import ContainedActor
from incarnate.actors.dispatchers import DispatcherName, make_runtime
from incarnate.actors.runtime import Runtime


class Counter(ContainedActor):
    """Counts, and notices when two messages are handled at once."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.overlaps = 0
        self._busy = False

    def handle(self, message: Any) -> Any:
        if self._busy:
            self.overlaps += 1
        self._busy = True
        self.seen.append(message)
        self._busy = False
        if callable(message):
            return message(self)
        return len(self.seen)


def answer(ref: pykka.ActorRef[Any], message: Any) -> Any:
    reply: Any = ref.ask(message)
    return reply


def ask_later(ref: pykka.ActorRef[Any], message: Any) -> None:
    """Ask, and drop the future."""
    future: Any = ref.ask(message, block=False)
    assert isinstance(future, pykka.Future)


@pytest.fixture
def runtime(dispatcher: DispatcherName) -> Generator[Runtime]:
    made = make_runtime(dispatcher)
    yield made
    made.close()


@pytest.fixture
def calling() -> Generator[Runtime]:
    made = make_runtime("calling")
    yield made
    made.close()


def test_messages_from_many_threads_are_handled_one_at_a_time_and_each_once(runtime: Runtime) -> None:
    ref = runtime.start(Counter)
    answers: list[list[Any]] = []

    def send(number: int) -> None:
        mine: list[Any] = []
        for index in range(300):
            if index % 3 == 0:
                ref.tell((number, index))
            elif index % 3 == 1:
                mine.append(ref.ask((number, index)))
            else:
                mine.append(ref.ask((number, index), timeout=30))
        answers.append(mine)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    seen, overlaps = answer(ref, lambda counter: (list(counter.seen), counter.overlaps))
    ref.stop()

    messages = [one for one in seen if isinstance(one, tuple)]
    assert overlaps == 0
    assert {(number, index) for number in range(8) for index in range(300)} == set(messages)
    assert len(messages) == 2400
    assert [sorted(mine) for mine in answers] == answers


def test_messages_of_one_sender_keep_their_order(runtime: Runtime) -> None:
    ref = runtime.start(Counter)
    for index in range(200):
        if index % 2:
            ref.tell(index)
        else:
            ask_later(ref, index)
    seen = answer(ref, lambda counter: counter.seen[:-1])
    ref.stop()

    assert list(range(200)) == seen


def test_an_unanswered_ask_is_handled_although_nobody_gets_it(runtime: Runtime) -> None:
    ref = runtime.start(Counter)
    handled = threading.Event()
    ask_later(ref, lambda _: handled.set())

    assert handled.wait(5)
    ref.stop()


def test_every_message_behind_a_stop_is_answered(runtime: Runtime) -> None:
    ref = runtime.start(Counter)
    release = threading.Event()
    ref.tell(lambda _: release.wait(10))
    stopped = ref.stop(block=False)
    late = [ref.ask("late", block=False) for _ in range(3)]
    release.set()

    assert stopped.get(timeout=5)
    for future in late:
        with pytest.raises(pykka.ActorDeadError):
            future.get(timeout=5)
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("later")


def test_an_actor_that_fails_stops_and_whoever_waits_behind_it_is_told(runtime: Runtime) -> None:
    ref = runtime.start(Counter)
    with pytest.raises(OutcomeUnknownError):
        ref.ask(lambda _: 1 / 0)
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("next")


def test_actors_stay_out_of_pykkas_registry(runtime: Runtime) -> None:
    ref = runtime.start(Counter)

    assert ref not in pykka.ActorRegistry.get_all()
    ref.stop()


def test_calling_runs_on_the_asking_thread(calling: Runtime) -> None:
    ref = calling.start(Counter)

    assert ref.ask(lambda _: threading.get_ident()) == threading.get_ident()
    assert ref.ask(lambda _: threading.get_ident(), timeout=5) != threading.get_ident()


def test_calling_an_actor_that_asks_itself_gets_an_error_and_no_deadlock(calling: Runtime) -> None:
    ref = calling.start(Counter)
    with pytest.raises(ReentrantCallError, match="inside a call of its own"):
        ref.ask(lambda _: ref.ask("again"))


def test_calling_an_interrupt_in_somebody_elses_message_is_answered_and_goes_on(calling: Runtime) -> None:
    ref = calling.start(Counter)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    inbox: Any = ref.actor_inbox
    theirs = pykka.ActorRef.ask(ref, interrupt, block=False)  # queued, and run by nobody yet
    with pytest.raises(KeyboardInterrupt):
        ref.ask("mine")

    with pytest.raises(OutcomeUnknownError):
        theirs.get(timeout=5)
    assert len(inbox) == 1, "the interrupted caller's own message was not begun"


@pytest.mark.parametrize("moment", range(6))
def test_calling_an_interrupt_at_any_line_leaves_every_caller_answered(calling: Runtime, moment: int) -> None:
    """Raises at the n-th traced line inside the inbox, which is where a signal handler's exception can fall."""
    ref = calling.start(Counter)
    inbox: Any = ref.actor_inbox
    countdown = [moment * 3]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_name in {"_run", "run_until", "step"} and event == "line":
            countdown[0] -= 1
            if countdown[0] == -1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()  # coverage's own: without it nothing that runs later in this process is counted
    sys.settrace(trace)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            ref.ask("mine")
    finally:
        sys.settrace(before)
    for _ in range(2):
        with contextlib.suppress(pykka.ActorDeadError, OutcomeUnknownError):
            ref.ask("next")

    assert len(inbox) == 0
    assert isinstance(inbox.actor, CallingActor)
