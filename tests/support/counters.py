"""An actor that notices what a dispatcher gets wrong, and senders that give it every chance."""

import contextlib
import random
import sys
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pykka

import incarnate.actors
from incarnate.actors.contained import ContainedActor
from incarnate.actors.runtime import Runtime
from tests.support.waiting import soon

ACTORS = str(Path(incarnate.actors.__file__ or "").parent)
SWITCHES = 0.1


class Counter(ContainedActor):
    """Counts, and notices when two messages are handled at once. A message that can be called is called."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.overlaps = 0
        self._work = work
        self._busy = False

    def handle(self, message: Any) -> Any:
        if self._busy:
            self.overlaps += 1
        self._busy = True
        self.seen.append(message)
        self._work()
        self._busy = False
        return message(self) if callable(message) else len(self.seen)


def ask(ref: pykka.ActorRef[Any], message: Any, **options: Any) -> Any:
    reply: Any = ref.ask(message, **options)
    return reply


def actor_of(ref: pykka.ActorRef[Any]) -> Any:
    """The actor itself, so that a test can look without sending anything."""
    inbox: Any = ref.actor_inbox
    return inbox.actor


@contextlib.contextmanager
def often_switched() -> Generator[None]:
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@contextlib.contextmanager
def switched_anywhere(seed: int = 0) -> Generator[None]:
    """Threads that are started in here take turns at any line of the actors, also where Python itself never would.

    What holds only because Python looks at other threads between some instructions and not between others is luck.
    """
    draws = random.Random(seed)

    def trace(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(ACTORS):
            return None
        if event == "line" and draws.random() < SWITCHES:
            time.sleep(0)
        return trace

    before = threading.gettrace()
    threading.settrace(trace)
    try:
        with often_switched():
            yield
    finally:
        threading.settrace(before)


def together(count: int, work: Callable[[int], object], seconds: float = 50) -> list[str]:
    """Do `work(0)` to `work(count - 1)` on threads that begin at once; what went wrong."""
    barrier = threading.Barrier(count)
    problems: list[str] = []

    def begin(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - the test tells it
            problems.append(repr(error))

    threads = [threading.Thread(target=begin, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    return problems + [f"{thread.name} hangs" for thread in threads if thread.is_alive()]


def stress(
    runtime: Runtime, *, senders: int, messages: int, work: Callable[[], object] = lambda: None, patience: float = 10
) -> Sequence[str]:
    """Send from many threads in every way there is; everything that was lost, doubled, late or out of order.

    At the end nobody asks anything: what was told must come by itself.
    """
    ref: Any = runtime.start(Counter, work)
    problems: list[str] = []

    def send(number: int) -> None:
        waiting: list[Any] = []
        for index in range(messages):
            message = (number, index)
            match (number + index) % 4:
                case 0:
                    ref.tell(message)
                case 1:
                    ref.ask(message, timeout=patience)
                case 2:
                    waiting.append(ref.ask(message, block=False))
                case _:
                    ref.ask(message)
        for future in waiting:
            future.get(timeout=patience)

    problems += together(senders, send, 2 * patience)
    expected = {(number, index) for number in range(senders) for index in range(messages)}
    actor = actor_of(ref)
    if not soon(lambda: len(actor.seen) >= len(expected), patience):
        problems.append(f"lost {sorted(expected - set(actor.seen))[:5]} of {len(expected)}")
    seen = list(actor.seen)
    problems += [f"{message} was handled {times} times" for message, times in Tally(seen).items() if times > 1]
    if actor.overlaps:
        problems.append(f"{actor.overlaps} times two messages were handled at once")
    for number in range(senders):
        own = [index for sender, index in seen if sender == number]
        if own != sorted(own):
            problems.append(f"sender {number}: out of order")
    return problems


def wake_ups(runtime: Runtime, *, rounds: int, patience: float = 10) -> Sequence[str]:
    """What was told and not handled, where nothing else is sent that would bring it along.

    A wake-up can be lost only while an actor goes idle: so the next message comes just when the last was handled.
    """
    ref: Any = runtime.start(Counter)
    seen = actor_of(ref).seen
    sent = 0
    for number in range(rounds):
        for _ in range(number % 100):  # a moment later each time
            pass
        for _ in range(1 + number % 2):
            ref.tell(sent)
            sent += 1
        until = time.monotonic() + patience
        while len(seen) < sent:
            if time.monotonic() > until:
                return [f"{sent - len(seen)} of {sent} messages were not handled"]
    return []
