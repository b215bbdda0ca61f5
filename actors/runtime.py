# ruff: noqa: D102, PYI036 - what is named as in `threading` does what it does there
"""What a system runs on: threads and a clock, or a simulation's one thread and virtual time.

Whatever in `actors` waits, starts something or asks how late it is does so through a `Runtime`, so that a simulation
can decide what happens next. A lock that is never held while its holder waits for anything else needs no runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    import pykka

__all__ = ["Condition", "Deferred", "Event", "Lock", "RLock", "Runtime", "Task"]


class Lock(Protocol):
    """As `threading.Lock`, used by `with` alone: an interrupt between `acquire` and `try` would lose it."""

    def locked(self) -> bool: ...
    def __enter__(self) -> object: ...
    def __exit__(self, kind: Any, error: Any, traceback: Any, /) -> object: ...


class RLock(Protocol):
    """As `threading.RLock`, used by `with` alone."""

    def _is_owned(self) -> bool:
        """Whether the running thread holds it; `threading.Condition` asks a lock so too."""
        ...

    def __enter__(self) -> object: ...
    def __exit__(self, kind: Any, error: Any, traceback: Any, /) -> object: ...


class Event(Protocol):
    """As `threading.Event`."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...
    def clear(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Condition(Protocol):
    """As `threading.Condition`."""

    def wait(self, timeout: float | None = None) -> bool: ...
    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any: ...
    def notify(self, n: int = 1) -> None: ...
    def notify_all(self) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(self, kind: Any, error: Any, traceback: Any, /) -> object: ...


class Task(Protocol):
    """Work that was spawned."""

    def join(self) -> None:
        """Wait until it has ended."""
        ...


class Deferred(Protocol):
    """Work that whoever waits for what comes of it may do himself."""

    begun: int
    """How often somebody has begun it."""

    @property
    def idle(self) -> bool:
        """Whether there is something to do and nobody does it, nor is about to."""
        ...

    def run(self) -> None:
        """Do it."""
        ...

    def hurry(self) -> None:
        """Have it done at once, by another thread.

        Raises:
            ClosedError: the runtime was closed; whoever waits for it was told.
            RuntimeError: the operating system gives no further thread.
        """
        ...

    def awaited(self, future: Future[Any], *, forever: bool) -> None:
        """The running thread is about to wait for `future`; for as long as it takes, if `forever`."""
        ...

    def called_back(self) -> None:
        """Somebody is to be called back when it is done."""
        ...

    def call(self, callback: Callable[[Future[Any]], object], future: Future[Any]) -> None:
        """Call `callback` with `future`, which is done; later where the running thread only helps."""
        ...


class Runtime(Protocol):
    """Starts actors and other work, and lets them wait for each other."""

    lends_actors: bool = False
    """Whether a caller can be the thread that handles an actor's messages for a while: see `Address.hold`."""

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        """A running actor of class `actor`, made with `args`."""
        ...

    def spawn(self, work: Callable[[], object], name: str) -> Task:
        """Begin `work` on a thread of its own, which does not keep the process alive."""
        ...

    def submit(self, work: Callable[[], object]) -> None:
        """Have `work` done soon, on one of a few threads: it may commit, but must not wait for other work.

        Raises:
            ClosedError: the runtime was closed.
        """
        ...

    def linger(self, work: Deferred) -> None:
        """Have `work` done as `submit` does, unless somebody who waits for it does it within a moment.

        Raises:
            ClosedError: the runtime was closed.
        """
        ...

    def helps(self) -> bool:
        """Whether the running thread may do work that another would do for it, and commit."""
        ...

    def current(self) -> int:
        """What tells the running thread from others, as `threading.get_ident`."""
        ...

    def monotonic(self) -> float:
        """Seconds, as `time.monotonic`."""
        ...

    def lock(self) -> Lock: ...
    def rlock(self) -> RLock: ...
    def event(self) -> Event: ...
    def condition(self) -> Condition: ...
    def future(self, work: Deferred) -> Future[Any]:
        """What `work` will answer, which is told when somebody waits for it. It cannot be cancelled."""
        ...

    def drain(self) -> None:
        """Wait for what was submitted and what lingers, and take no more of it."""
        ...

    def close(self) -> None:
        """Wait for what was told to actors, then let the threads go."""
        ...
