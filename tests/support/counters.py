"""An actor that notices what a dispatcher gets wrong, and senders that give it every chance."""

import contextlib
import sys
import threading
from collections import Counter as Tally
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pykka

from incarnate.actors.contained import ContainedActor
from incarnate.actors.runtime import Runtime
from tests.support.waiting import soon


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
