"""On which thread an actor runs.

`calling` (the default): on the asking thread while it is idle, on a small shared pool for tells. Costs nothing while
idle and no thread switch a message. `thread`: a thread each, pykka's own way; for callers that must not run a commit
on their own thread.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, cast

from incarnate.actors.calling import CallingActor, Crews
from incarnate.actors.crews import Crew
from incarnate.actors.interruptible import Condition as InterruptibleCondition
from incarnate.actors.interruptible import Flag
from incarnate.actors.lingering import Lingerer, Sent
from incarnate.actors.mailboxes import DEFAULT_MAX_MAILBOX
from incarnate.actors.runtime import Runtime
from incarnate.actors.threaded import ThreadActor
from incarnate.actors.waits import here

if TYPE_CHECKING:
    from concurrent.futures import Future

    import pykka

    from incarnate.actors.runtime import Condition, Deferred, Event, Lock, RLock

__all__ = ["DispatcherName", "make_runtime"]

DispatcherName = Literal["calling", "thread"]

_TOLD_THREADS = 4
_SUBMITTED_THREADS = 8
"""Commits of `emit_soon` under way at once; the store puts them together, so more would only wait."""

_EXIT_SECONDS = 5.0
"""How long the end of the interpreter waits for what was sent before: no thread of ours may keep a process alive."""


class _Threads(Runtime):
    """The process's own threads, locks and clock; a subclass says on which of them an actor runs."""

    def __init__(self, max_mailbox: int) -> None:
        self.pid = os.getpid()
        self._limit = max_mailbox
        self._submitted = Crew("incarnate-submitted", _SUBMITTED_THREADS)
        self._lingerer = Lingerer()
        _at_exit().add(self)

    def spawn(self, work: Callable[[], object], name: str) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def submit(self, work: Callable[[], object]) -> None:
        self._submitted.submit(work)

    def linger(self, work: Deferred) -> None:
        self._lingerer.add(work)

    def helps(self) -> bool:
        # Not the main thread: a signal handler's exception may fall into it at any line. Nor one that runs an actor.
        return threading.get_ident() != threading.main_thread().ident and not here.stack

    def current(self) -> int:
        return threading.get_ident()

    def monotonic(self) -> float:
        return time.monotonic()

    def lock(self) -> Lock:
        return threading.Lock()

    def rlock(self) -> RLock:
        return cast("RLock", threading.RLock())

    def event(self) -> Event:
        return Flag()

    def condition(self) -> Condition:
        return InterruptibleCondition()

    def future(self, work: Deferred) -> Future[Any]:
        return Sent(work)

    def drain(self) -> None:
        self._lingerer.close()
        self._submitted.close()

    def close(self) -> None:
        self.end(None)

    def end(self, seconds: float | None) -> None:
        """Take nothing more and wait for what was sent, at most for `seconds`."""
        left = _countdown(seconds)
        self._lingerer.close(left())
        self._submitted.close(left())


class _Calling(_Threads):
    lends_actors = True

    def __init__(self, max_mailbox: int) -> None:
        super().__init__(max_mailbox)
        self._crews = Crews(Crew("incarnate", _TOLD_THREADS), Crew("incarnate-urgent"))

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        started: Any = _mixed(actor, CallingActor)(*args)
        started.begin(self._crews, self._limit)
        ref: pykka.ActorRef[Any] = started.actor_ref
        return ref

    def end(self, seconds: float | None) -> None:
        left = _countdown(seconds)
        super().end(left())
        self._crews.told.close(left())
        self._crews.urgent.close(left())


class _Threaded(_Threads):
    def __init__(self, max_mailbox: int) -> None:
        super().__init__(max_mailbox)
        self._actors: weakref.WeakSet[ThreadActor] = weakref.WeakSet()
        self._actors_lock = threading.RLock()

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        started: Any = _mixed(actor, ThreadActor)(*args)
        started.begin(self._limit)
        with self._actors_lock:
            self._actors.add(started)
        ref: pykka.ActorRef[Any] = started.actor_ref
        return ref

    def end(self, seconds: float | None) -> None:
        left = _countdown(seconds)
        super().end(left())
        with self._actors_lock:
            actors = [actor for actor in self._actors if actor.thread is not threading.current_thread()]
        for actor in actors:
            _ = actor.actor_ref.stop(block=False)
        for actor in actors:
            actor.thread.join(left())


def _countdown(seconds: float | None) -> Callable[[], float | None]:
    """How many of `seconds` are left each time that it is asked; None where there is no end."""
    until = None if seconds is None else time.monotonic() + seconds
    return lambda: None if until is None else max(0.0, until - time.monotonic())


@functools.cache
def _mixed(actor: Any, runtime: type[pykka.Actor]) -> type[pykka.Actor]:
    return type(actor.__name__, (runtime, actor), {})


@functools.cache
def _at_exit() -> weakref.WeakSet[_Threads]:
    """The runtimes that the end of the interpreter has to wait for, a moment."""
    runtimes: weakref.WeakSet[_Threads] = weakref.WeakSet()

    def end() -> None:
        left = _countdown(_EXIT_SECONDS)
        mine = [runtime for runtime in runtimes if runtime.pid == os.getpid()]  # a forked child has none of the threads
        for runtime in mine:
            runtime.end(left())

    atexit.register(end)
    return runtimes


_DISPATCHERS: dict[str, Callable[[int], Runtime]] = {"calling": _Calling, "thread": _Threaded}


def make_runtime(dispatcher: DispatcherName | Runtime, *, max_mailbox: int | None = DEFAULT_MAX_MAILBOX) -> Runtime:
    """The runtime of that name, or the one that is given, which has its own bounds.

    Args:
        dispatcher: `calling`, `thread`, or a runtime.
        max_mailbox: how many messages may wait for one actor; None is without a bound.

    Raises:
        ValueError: there is none of that name, or `max_mailbox` is below 1.
    """
    if max_mailbox is not None and max_mailbox < 1:
        raise ValueError(f"max_mailbox must be 1 or more, or None for no bound, not {max_mailbox!r}")
    if not isinstance(dispatcher, str):
        return dispatcher
    if dispatcher not in _DISPATCHERS:
        raise ValueError(f"no dispatcher {dispatcher!r}: use 'calling' or 'thread'")
    return _DISPATCHERS[dispatcher](sys.maxsize if max_mailbox is None else max_mailbox)
