"""The `calling` dispatcher: which thread runs what, and what an interrupt may do to the asking one."""

import contextlib
import linecache
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pykka
import pytest

import incarnate.actors
from incarnate import OutcomeUnknownError
from incarnate.actors import crews, waits
from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.runtime import Runtime
from tests.support.counters import Counter, actor_of, ask
from tests.support.waiting import soon

OURS = str(Path(incarnate.actors.__file__ or "").parent)
TRACED = {f"{name}.py" for name in ("addresses", "answers", "calling", "contained", "crews", "mailboxes", "waits")}


@pytest.fixture
def runtime() -> Generator[Runtime]:
    made = make_runtime("calling", max_mailbox=3)
    yield made
    made.close()


def test_an_idle_actor_runs_on_the_asking_thread(runtime: Runtime) -> None:
    ref = runtime.start(Counter)
    inner = runtime.start(Counter)

    assert threading.get_ident() == ask(ref, lambda _: threading.get_ident())
    assert threading.get_ident() == ask(ref, lambda _: ask(inner, lambda _: threading.get_ident()))


def test_whoever_gives_a_timeout_does_not_run_what_could_not_be_interrupted(runtime: Runtime) -> None:
    assert threading.get_ident() != ask(runtime.start(Counter), lambda _: threading.get_ident(), timeout=5)


def test_nobody_runs_the_messages_of_others(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)
    go_on = threading.Event()
    threads: list[int] = []
    ref.tell(lambda _: go_on.wait(10))
    ref.tell(lambda _: threads.append(threading.get_ident()))
    threading.Timer(0.05, go_on.set).start()
    ref.ask("behind it")

    assert threading.get_ident() not in threads
    assert len(threads) == 1


def test_an_interrupt_belongs_to_the_thread_that_asked_and_the_actor_is_replaced(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ref.ask(interrupt)
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("next")


def test_an_interrupt_in_somebody_elses_message_is_not_the_askers(runtime: Runtime) -> None:
    ref: Any = runtime.start(Counter)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    theirs: Any = pykka.ActorRef.ask(ref, interrupt, block=False)  # queued, and run by nobody yet
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("mine")

    with pytest.raises(OutcomeUnknownError):
        theirs.get(timeout=5)


def test_an_idle_actor_costs_no_thread_and_less_than_a_kilobyte(runtime: Runtime) -> None:
    import tracemalloc  # noqa: PLC0415 - slows all else down while it runs

    ask(runtime.start(Counter), "warm")
    threads = threading.active_count()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    refs = [runtime.start(Counter) for _ in range(500)]
    for ref in refs:
        ask(ref, "one")
    size = (tracemalloc.get_traced_memory()[0] - before) / len(refs)
    tracemalloc.stop()

    assert size < 1024
    assert threading.active_count() == threads


# -- an interrupt at any line -------------------------------------------------


@contextlib.contextmanager
def interrupted(at: int) -> Generator[list[int]]:
    """Raise at the line number `at` that this thread runs of ours, where a signal handler's exception can fall.

    Gives the number of lines that are still to come: above 0 at the end, nothing was raised.
    """
    left = [at]
    entered: set[tuple[Any, int]] = set()

    def leaves_a_block(frame: Any) -> bool:
        """A `with` line comes again before its block is left. No signal can fall there, and the lock is still held."""
        line = (frame, frame.f_lineno)
        if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            return False
        entered.symmetric_difference_update({line})
        return line not in entered

    def trace(frame: Any, event: str, _: Any) -> Any:
        folder, _, name = frame.f_code.co_filename.rpartition("/")
        if name not in TRACED or folder != OURS:
            return None
        if event == "line" and not leaves_a_block(frame):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()  # coverage's own: without it nothing that runs later in this process is counted
    sys.settrace(trace)
    try:
        yield left
    finally:
        sys.settrace(before)


def queue_some(ref: Any, count: int = 2) -> None:
    for _ in range(count):
        pykka.ActorRef.tell(ref, "waits")


def make_room(ref: Any) -> None:
    threading.Timer(0.002, ref.actor_inbox.handle_soon).start()


def ask_a_full_one(ref: Any) -> None:
    queue_some(ref, 3)
    make_room(ref)
    ref.ask("mine", wait=10)


def tell_a_full_one(ref: Any) -> None:
    queue_some(ref, 3)
    make_room(ref)
    ref.tell("mine", wait=10)


def ask_behind_others(ref: Any) -> None:
    queue_some(ref)
    ref.ask("mine")


def ask_in_an_ask(ref: Any) -> None:
    other: Any = ask(ref, lambda counter: counter.other)
    ref.ask(lambda _: other.ask("mine"))


SENDS: dict[str, Callable[[Any], object]] = {
    "ask": lambda ref: ref.ask("mine"),
    "ask behind others": ask_behind_others,
    "ask inside an ask": ask_in_an_ask,
    "ask with a timeout": lambda ref: ref.ask("mine", timeout=10),
    "ask and get later": lambda ref: ref.ask("mine", block=False).get(),
    "ask a full one": ask_a_full_one,
    "tell": lambda ref: ref.tell("mine"),
    "tell a full one": tell_a_full_one,
    "stop": lambda ref: ref.stop(),
    "stop without waiting": lambda ref: ref.stop(block=False),
}


def check_unharmed(runtime: Runtime, refs: list[Any]) -> None:
    """Whoever comes next, from this thread or another, is answered: by the actor, or that it has stopped."""
    for ref in refs:
        for options in ({}, {"timeout": 10.0}, {}):
            with contextlib.suppress(pykka.ActorDeadError, OutcomeUnknownError):
                ref.ask("next", wait=5, **options)
        with contextlib.suppress(pykka.ActorDeadError):
            ref.tell("told", wait=5)
        assert soon(ref.actor_inbox.empty)
        assert actor_of(ref).overlaps == 0
        assert actor_of(ref).seen.count("mine") <= 1
    assert [] == waits.running()
    told = threading.Event()
    runtime.start(Counter).tell(lambda _: told.set())
    assert told.wait(5)


@pytest.mark.parametrize("way", SENDS)
def test_an_interrupt_at_any_line_of_a_send_leaves_everybody_answered(
    runtime: Runtime, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crews, "_IDLE_SECONDS", 0.2)  # a thread that is handed nothing after all waits as long
    moment, left = 0, [0]
    while left[0] <= 0:
        moment += 1
        ref: Any = runtime.start(Counter)
        other: Any = runtime.start(Counter)
        actor_of(ref).other = other
        with contextlib.suppress(KeyboardInterrupt), interrupted(moment) as left:
            SENDS[way](ref)
        check_unharmed(runtime, [ref, other])
    assert moment > 5
