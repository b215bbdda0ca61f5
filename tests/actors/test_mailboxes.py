"""A mailbox has a bound: one more is refused, or waits for room, and nobody waits for ever."""

import threading
from collections.abc import Callable, Generator
from typing import Any

import pykka
import pytest

from incarnate import MailboxFullError, RefusedError
from incarnate.actors.dispatchers import DispatcherName, make_runtime
from incarnate.actors.runtime import Runtime
from tests.support.counters import Counter, actor_of, together
from tests.support.waiting import soon

LIMIT = 5


@pytest.fixture
def runtime(dispatcher: DispatcherName) -> Generator[Runtime]:
    made = make_runtime(dispatcher, max_mailbox=LIMIT)
    yield made
    made.close()


@pytest.fixture
def gate() -> Generator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture
def full(runtime: Runtime, gate: threading.Event) -> Any:
    """An actor that is busy until the gate opens, with as many messages waiting as there may be."""
    ref: Any = runtime.start(Counter)
    keep_busy(ref, gate)
    for index in range(LIMIT):
        ref.tell(index)
    return ref


def keep_busy(ref: Any, gate: threading.Event) -> None:
    busy = threading.Event()

    def block(_: object) -> None:
        busy.set()
        gate.wait(20)

    ref.tell(block)
    assert busy.wait(5)


SENDS: dict[str, Callable[..., Any]] = {
    "tell": lambda ref, message, **wait: ref.tell(message, **wait),
    "ask": lambda ref, message, **wait: ref.ask(message, **wait),
    "ask with a timeout": lambda ref, message, **wait: ref.ask(message, timeout=20, **wait),
    "ask and get later": lambda ref, message, **wait: ref.ask(message, block=False, **wait),
}


@pytest.mark.parametrize("way", SENDS)
def test_one_message_more_is_refused_at_once_and_never_handled(full: Any, gate: threading.Event, way: str) -> None:
    with pytest.raises(MailboxFullError, match="is full: 5 messages wait there") as caught:
        SENDS[way](full, "more")
    error = caught.value
    gate.set()

    assert (str(actor_of(full)), LIMIT) == (error.actor, error.limit)
    assert isinstance(error, RefusedError)
    assert soon(lambda: len(actor_of(full).seen) == 1 + LIMIT)
    assert "more" not in actor_of(full).seen


@pytest.mark.parametrize("way", SENDS)
def test_whoever_asked_to_wait_for_room_is_refused_when_there_is_none_in_time(full: Any, way: str) -> None:
    with pytest.raises(MailboxFullError):
        SENDS[way](full, "more", wait=0.01)


@pytest.mark.parametrize("way", SENDS)
def test_who_gave_up_waiting_for_room_takes_nobody_s_turn(full: Any, way: str) -> None:
    for _ in range(3):
        with pytest.raises(MailboxFullError):
            SENDS[way](full, "more", wait=0.01)

    assert [] == list(full.actor_inbox._room or ())  # noqa: SLF001 - it shows in nothing but the time that others wait


@pytest.mark.parametrize("wait", [20.0, None])
@pytest.mark.parametrize("way", SENDS)
def test_whoever_asked_to_wait_for_room_gets_it(full: Any, gate: threading.Event, way: str, wait: float | None) -> None:
    threading.Timer(0.01, gate.set).start()
    SENDS[way](full, "more", wait=wait)

    assert soon(lambda: "more" in actor_of(full).seen)
    assert [*range(LIMIT), "more"] == actor_of(full).seen[1:]


def test_its_length_is_told(full: Any, gate: threading.Event) -> None:
    assert len(full.actor_inbox) == LIMIT
    gate.set()
    assert soon(full.actor_inbox.empty)


def test_a_request_to_stop_is_never_refused(full: Any, gate: threading.Event) -> None:
    stopped = full.stop(block=False)
    gate.set()

    assert stopped.get(timeout=10)
    assert len(actor_of(full).seen) == 1 + LIMIT


def test_a_request_to_stop_takes_nobody_s_place(runtime: Runtime, gate: threading.Event) -> None:
    """Whoever sends to an actor that is about to be put to rest knows nothing of it."""
    ref: Any = runtime.start(Counter)
    keep_busy(ref, gate)
    stopped = [ref.stop(block=False), ref.stop(block=False)]
    late = [ref.ask(index, block=False) for index in range(LIMIT)]
    with pytest.raises(MailboxFullError):
        ref.tell("more")
    gate.set()

    assert stopped[0].get(timeout=10)
    assert [pykka.ActorDeadError] * LIMIT == [failure(answer) for answer in late]


def failure(answer: pykka.Future[Any]) -> type[BaseException] | None:
    try:
        answer.get(timeout=10)
    except pykka.ActorDeadError as error:
        return type(error)
    return None


def test_two_who_ask_an_idle_actor_at_once_are_both_answered_where_one_may_wait(dispatcher: DispatcherName) -> None:
    runtime = make_runtime(dispatcher, max_mailbox=1)
    ref: Any = runtime.start(Counter)
    both, answers = threading.Barrier(2), list[int]()

    def ask(number: int) -> None:
        for index in range(200):
            both.wait(10)
            answers.append(ref.ask((number, index)))

    assert [] == together(2, ask)
    assert list(range(1, 401)) == sorted(answers)
    runtime.close()


def test_who_waits_for_room_of_an_actor_that_stops_is_told(full: Any, gate: threading.Event) -> None:
    stopping = threading.Thread(target=lambda: full.stop(block=False))
    stopping.start()
    stopping.join()
    threading.Timer(0.01, gate.set).start()

    def send(number: int) -> None:
        try:
            full.ask((number, "more"), wait=None)
        except pykka.ActorDeadError:
            return

    assert [] == together(6, send)


def test_many_who_wait_for_room_all_get_it_and_the_bound_holds(runtime: Runtime) -> None:
    longest = [0]
    ref: Any = runtime.start(Counter)
    actor_of(ref)._work = lambda: longest.append(len(ref.actor_inbox))  # noqa: SLF001 - the test's own actor
    senders = 6
    problems = together(senders, lambda number: [ref.tell((number, index), wait=None) for index in range(100)])

    assert [] == problems
    assert soon(lambda: len(actor_of(ref).seen) == 100 * senders)
    assert max(longest) <= LIMIT + senders  # those who look at the same moment


def test_an_actor_does_not_wait_for_room_with_itself(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)

    def fill(_: object) -> object:
        for index in range(LIMIT):
            ref.tell(index)
        return ref.tell("more", wait=None)

    with pytest.raises(MailboxFullError):
        ref.ask(fill, timeout=20)
    assert ref.ask("next", wait=None) == 2 + LIMIT


def test_an_actor_does_not_wait_for_room_with_one_that_waits_for_it(runtime: Runtime) -> None:
    first: Any = runtime.start(Counter)
    second: Any = runtime.start(Counter)

    def fill_first(_: object) -> object:
        for index in range(LIMIT):
            first.tell(index)
        return first.tell("more", wait=None)

    with pytest.raises(MailboxFullError):
        first.ask(lambda _: second.ask(fill_first))


def test_without_a_bound_nothing_is_refused(dispatcher: DispatcherName, gate: threading.Event) -> None:
    runtime = make_runtime(dispatcher, max_mailbox=None)
    ref: Any = runtime.start(Counter)
    ref.tell(lambda _: gate.wait(20))
    for index in range(20_000):
        ref.tell(index)
    gate.set()
    runtime.close()

    assert len(actor_of(ref).seen) == 20_001
