"""What both dispatchers promise: each message once, in order, one at a time, and nobody waits for ever."""

import asyncio
import contextlib
import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pykka
import pytest

from incarnate import CallDepthError, OutcomeUnknownError, ReentrantCallError, StaleIncarnationError
from incarnate.actors import addresses
from incarnate.actors.contained import ContainedActor, Told
from incarnate.actors.dispatchers import DispatcherName, make_runtime
from incarnate.actors.runtime import Runtime
from incarnate.domain.keys import ActivationKey
from tests.support.counters import Counter, actor_of, ask, switched_anywhere, together
from tests.support.waiting import soon

Ref = pykka.ActorRef[Any]


@pytest.fixture
def runtime(dispatcher: DispatcherName) -> Generator[Runtime]:
    made = make_runtime(dispatcher)
    yield made
    made.close()


class Asker(ContainedActor):
    """Asks another, as its message says: the rest of the way."""

    def handle(self, message: Any) -> Any:
        first, *rest = message
        return ask(first, rest) if rest else ask(first, "here")


# -- each message once --------------------------------------------------------


def test_messages_of_one_sender_keep_their_order(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    for index in range(200):
        if index % 2:
            ref.tell(index)
        else:
            ref.ask(index, block=False)
    seen = ask(ref, lambda counter: counter.seen[:-1])

    assert list(range(200)) == seen


def test_an_unanswered_ask_is_handled_although_nobody_gets_it(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    handled = threading.Event()
    ref.ask(lambda _: handled.set(), block=False)

    assert handled.wait(5)


def test_two_threads_may_wait_for_one_future(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    go_on = threading.Event()
    future = ref.ask(lambda _: go_on.wait(10), block=False)
    got: list[Any] = []
    problems: list[str] = []
    waiting = threading.Thread(
        target=lambda: problems.extend(together(3, lambda _: got.append(future.get(timeout=10))))
    )
    waiting.start()
    go_on.set()
    waiting.join(20)

    assert ([True] * 3, []) == (got, problems)


def test_a_timeout_tells_and_the_message_is_handled_all_the_same(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    go_on, handled = threading.Event(), threading.Event()
    ref.tell(lambda _: go_on.wait(10))
    with pytest.raises(pykka.Timeout):
        ref.ask(lambda _: handled.set(), timeout=0.05)
    go_on.set()

    assert handled.wait(5)


def test_actors_stay_out_of_pykkas_registry(runtime: Runtime) -> None:
    ref = runtime.start(Counter)

    assert ref not in pykka.ActorRegistry.get_all()


def test_an_actor_has_an_id_once_somebody_asks_for_it(runtime: Runtime) -> None:
    ref = runtime.start(Counter)

    assert ref.actor_urn == ref.actor_urn
    assert ref.actor_urn != runtime.start(Counter).actor_urn


# -- stopping -----------------------------------------------------------------


def test_every_message_behind_a_stop_is_answered(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    release = threading.Event()
    ref.tell(lambda _: release.wait(10))
    stopped = ref.stop(block=False)
    late = [ref.ask("late", block=False) for _ in range(3)]
    release.set()

    assert stopped.get(timeout=5)
    for future in late:
        with pytest.raises(pykka.ActorDeadError):
            future.get(timeout=5)
    for send in (ref.ask, ref.tell, lambda message: ref.ask(message, block=False).get()):
        with pytest.raises(pykka.ActorDeadError):
            send("later")
    assert not ref.stop()


def test_an_idle_actor_is_stopped_and_says_so(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    other: Any = runtime.start(Counter)

    assert ref.stop()
    assert other.stop(block=False).get(timeout=5)
    assert [True, True] == [one.actor_stopped.wait(5) for one in (ref, other)]
    assert not ref.is_alive()


def test_whoever_waits_for_an_actor_to_stop_is_woken(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    stopping = threading.Timer(0.05, lambda: ref.stop(block=False))
    stopping.start()

    assert not ref.actor_stopped.wait(0)
    assert ref.actor_stopped.wait(10)


def test_what_on_stop_raises_changes_nothing(runtime: Runtime) -> None:
    class Bad(Counter):
        def on_stop(self) -> None:
            raise RuntimeError

    assert ask(runtime.start(Bad), "one") == 1
    assert runtime.start(Bad).stop()


def test_an_actor_that_cannot_start_is_dead_at_once_and_everyone_is_told(runtime: Runtime) -> None:
    class Bad(Counter):
        def on_start(self) -> None:
            raise SystemExit

    with pytest.raises(pykka.ActorDeadError):
        ask(runtime.start(Bad), "one", timeout=5)


# -- nobody waits for ever ----------------------------------------------------


def test_an_actor_that_asks_itself_gets_an_error(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    calls: list[Callable[[], Any]] = [
        lambda: ref.ask("again"),
        lambda: ref.ask("again", timeout=30),
        lambda: ref.ask("again", block=False).get(),
        ref.stop,
    ]
    for call in calls:
        with pytest.raises(ReentrantCallError, match="inside a call of its own"):
            ask(ref, lambda _, call=call: call())
    ref.tell("told")

    assert soon(lambda: "told" in actor_of(ref).seen)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_actors_that_ask_each_other_in_a_circle_get_an_error(runtime: Runtime, length: int) -> None:
    ring = [runtime.start(Asker) for _ in range(length)]
    with pytest.raises(ReentrantCallError):
        ask(ring[0], [*ring[1:], ring[0]])
    counter = runtime.start(Counter)

    assert [1, 2] == [ask(one, [counter]) for one in ring[:2]]


def test_a_circle_is_told_at_once_although_everybody_would_give_up_in_the_end(runtime: Runtime) -> None:
    first: Any = runtime.start(Counter)
    second: Any = runtime.start(Counter)
    started = time.monotonic()
    with pytest.raises(ReentrantCallError):
        first.ask(lambda _: second.ask(lambda _: first.ask("back", timeout=40), timeout=40), timeout=40)

    assert time.monotonic() - started < 20


@pytest.mark.parametrize("length", [2, 3, 6])
def test_callers_of_different_threads_that_would_wait_for_each_other_get_an_error(
    runtime: Runtime, length: int
) -> None:
    """Each thread is inside one actor before any asks the next."""
    ring: list[Any] = [runtime.start(Counter) for _ in range(length)]
    inside = threading.Barrier(length)
    outcomes: list[str] = []

    def go_round(number: int) -> None:
        def ask_next(_: Counter) -> object:
            inside.wait(10)
            return ring[(number + 1) % length].ask("from the one before")

        try:
            ring[number].ask(ask_next)
            outcomes.append("answered")
        except ReentrantCallError:
            outcomes.append("refused")

    assert [] == together(length, go_round)
    assert "refused" in outcomes
    assert [True] * length == [ask(one, lambda _: True, timeout=5) for one in ring]


def test_no_circle_is_seen_where_there_is_none(runtime: Runtime) -> None:
    """Actors that ask only those behind them, from many threads, with the hardest timing there is."""
    row: list[Any] = [runtime.start(Counter) for _ in range(6)]

    def onward(number: int, step: int) -> Callable[[Counter], object]:
        following = number + step
        if following >= len(row):
            return lambda _: "end"
        return lambda _: row[following].ask(onward(following, step))

    def walk(number: int) -> None:
        for turn in range(60):
            start = (number + turn) % 3
            assert row[start].ask(onward(start, 1 + turn % 3)) == "end"

    with switched_anywhere():
        assert [] == together(8, walk)
    assert [0] * 6 == [actor_of(ref).overlaps for ref in row]


def test_a_chain_of_actors_may_be_long(runtime: Runtime, dispatcher: DispatcherName) -> None:
    """Longer than Python's stack, where no actor needs a thread of its own."""
    row = [runtime.start(Asker) for _ in range(10_000 if dispatcher == "calling" else 300)]
    counter = runtime.start(Counter)

    assert ask(row[0], [*row[1:], counter]) == 1


def test_a_circle_longer_than_a_stack_gets_an_error(runtime: Runtime) -> None:
    ring = [runtime.start(Asker) for _ in range(100)]
    with pytest.raises(ReentrantCallError):
        ask(ring[0], [*ring[1:], ring[0]])


def test_a_chain_without_an_end_gets_an_error(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_MOST_CALLS", 150)

    class Endless(ContainedActor):
        def handle(self, message: Any) -> Any:
            return ask(runtime.start(Endless), message)

    with pytest.raises(CallDepthError, match=r"inside 1\d\d calls") as caught:
        ask(runtime.start(Endless), "on")
    assert 150 < caught.value.depth < 200
    assert ask(runtime.start(Counter), "one") == 1


# -- fairness -----------------------------------------------------------------


def test_an_actor_that_never_runs_out_of_messages_keeps_nobody_else_waiting(runtime: Runtime) -> None:
    """More of them than there are threads for what is told."""
    over = threading.Event()
    busy: list[Any] = []

    def again(counter: Counter) -> None:
        if not over.is_set():
            counter.actor_ref.tell(again)

    for _ in range(8):
        busy.append(runtime.start(Counter))
        busy[-1].tell(again)
    idle: Any = runtime.start(Counter)
    told = threading.Event()
    idle.tell(lambda _: told.set())

    assert told.wait(20)
    assert [True] * 8 == [one.ask(lambda _: True) for one in busy]
    over.set()


def test_a_flood_of_tells_keeps_no_asker_waiting(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            ref.tell("told", wait=None)

    floods = [threading.Thread(target=flood, daemon=True) for _ in range(2)]
    for thread in floods:
        thread.start()
    answers = [ask(ref, lambda _: True, timeout=30, wait=None) for _ in range(3)]
    answers += [ask(ref, lambda _: True, wait=None) for _ in range(3)]
    over.set()
    for thread in floods:
        thread.join(20)

    assert [True] * 6 == answers


def test_a_caller_in_a_loop_keeps_no_other_caller_waiting(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter, lambda: time.sleep(0.0005))
    over = threading.Event()

    def loop() -> None:
        while not over.is_set():
            ref.ask("loop")

    looping = threading.Thread(target=loop, daemon=True)
    looping.start()
    started = time.monotonic()
    for _ in range(50):
        ref.ask("other")
    took = time.monotonic() - started
    over.set()
    looping.join(10)

    assert took < 10


# -- containment --------------------------------------------------------------


class OwnBaseError(BaseException):
    """What some user derives from `BaseException`."""


class UnshowableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Unshowable:
    """A message, and an answer to nobody."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, _: object) -> None:
        raise self.error

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


def recurse(_: object) -> object:
    return recurse(_)


FAILURES: list[Callable[[object], object]] = [
    *(
        Unshowable(error)
        for error in (
            asyncio.CancelledError(),
            SystemExit(3),
            MemoryError(),
            GeneratorExit(),
            OwnBaseError(),
            UnshowableError(),
            StopIteration(),
            pykka.ActorDeadError(),
            pykka.Timeout(),
        )
    ),
    recurse,
]

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "ask": lambda ref, message: ref.ask(message),
    "ask with a timeout": lambda ref, message: ref.ask(message, timeout=30),
    "ask and get later": lambda ref, message: ref.ask(message, block=False).get(timeout=30),
}


def named(value: object) -> str:
    return type(value.error).__name__ if isinstance(value, Unshowable) else str(getattr(value, "__name__", value))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failure", FAILURES, ids=named)
def test_whatever_a_handler_raises_its_caller_is_answered_and_this_actor_alone_stops(
    runtime: Runtime, way: str, failure: Callable[[object], object]
) -> None:
    ref: Any = runtime.start(Counter)
    other: Any = runtime.start(Counter)
    told = threading.Event()
    with pytest.raises(OutcomeUnknownError):
        WAYS[way](ref, failure)

    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("next")
    other.tell(lambda _: told.set())
    assert told.wait(5)
    assert other.ask("asked") == 2


@pytest.mark.parametrize("failure", FAILURES, ids=named)
def test_whatever_a_told_handler_raises_the_threads_live_on(
    runtime: Runtime, failure: Callable[[object], object]
) -> None:
    """More failures than there are threads for what is told."""
    told = threading.Event()
    failing = [runtime.start(Counter) for _ in range(6)]
    for number, ref in enumerate(failing):
        ref.tell(Told(failure) if number % 2 else failure)
    assert [True] * 6 == [ref.actor_stopped.wait(5) for ref in failing]
    runtime.start(Counter).tell(lambda _: told.set())

    assert told.wait(5)


def test_an_interrupt_in_a_told_handler_stops_that_actor_alone(runtime: Runtime) -> None:
    told = threading.Event()
    failing: list[Any] = [runtime.start(Counter) for _ in range(6)]
    futures = [ref.ask(Unshowable(KeyboardInterrupt()), block=False) for ref in failing]
    for future in futures:
        with pytest.raises(OutcomeUnknownError):
            future.get(timeout=10)
    runtime.start(Counter).tell(lambda _: told.set())

    assert told.wait(5)


def test_a_refusal_is_answered_and_the_actor_lives_on(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    refusal = Unshowable(StaleIncarnationError(key=ActivationKey("p", "e"), incarnation=1, current=2))
    for way in WAYS.values():
        with pytest.raises(StaleIncarnationError):
            way(ref, refusal)
    ref.tell(Told(refusal))
    ref.tell(refusal)

    assert ref.ask("next") == 6


@pytest.mark.parametrize("raised", [RuntimeError, SystemExit])
def test_a_logging_handler_that_fails_harms_nobody(
    runtime: Runtime, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bad(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - its name
            raise raised

    monkeypatch.setattr(logging.getLogger("incarnate"), "handlers", [Bad()])
    refs: list[Any] = [runtime.start(Counter) for _ in range(6)]
    for ref in refs:
        ref.tell(Told(Unshowable(ValueError())))
    assert [True] * 6 == [ref.actor_stopped.wait(5) for ref in refs]
    told = threading.Event()
    runtime.start(Counter).tell(lambda _: told.set())

    assert told.wait(5)


def test_a_failure_is_reported_once_when_the_actor_has_stopped(runtime: Runtime) -> None:
    reports: list[tuple[str, bool]] = []

    def report(ref: Any, error: BaseException) -> None:
        reports.append((type(error).__name__, ref.actor_stopped.is_set()))
        raise SystemExit

    sends: list[Callable[[Any, Any], Any]] = [*WAYS.values(), lambda ref, message: ref.tell(Told(message))]
    for send, error in zip(sends, (ValueError(), SystemExit(), MemoryError(), KeyError()), strict=True):
        ref: Any = runtime.start(Counter)
        actor_of(ref).report_failure = functools.partial(report, ref)
        with contextlib.suppress(OutcomeUnknownError):
            send(ref, Unshowable(error))
        assert ref.actor_stopped.wait(5)

    expected = [(name, True) for name in ("ValueError", "SystemExit", "MemoryError", "KeyError")]
    assert soon(lambda: len(reports) == 4)
    assert expected == reports


# -- the end ------------------------------------------------------------------


def test_what_was_told_before_a_runtime_is_closed_is_handled(dispatcher: DispatcherName) -> None:
    made = make_runtime(dispatcher)
    refs: list[Any] = [made.start(Counter) for _ in range(20)]
    for index, ref in itertools.product(range(100), refs):
        ref.tell(index)
    made.close()

    assert [list(range(100))] * 20 == [actor_of(ref).seen for ref in refs]


def test_a_runtime_may_be_closed_twice_and_by_an_actor_of_its_own(dispatcher: DispatcherName) -> None:
    made = make_runtime(dispatcher)
    ref: Any = made.start(Counter)
    ref.ask(lambda _: made.close(), timeout=20)
    made.close()

    assert len(actor_of(ref).seen) == 1


def test_there_is_no_other_dispatcher_and_no_empty_mailbox() -> None:
    wrong: Any = "greenlet"
    with pytest.raises(ValueError, match="use 'calling' or 'thread'"):
        make_runtime(wrong)
    with pytest.raises(ValueError, match="max_mailbox must be 1 or more"):
        make_runtime("calling", max_mailbox=0)
