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

__all__ = ["Condition", "Event", "Lock", "RLock", "Runtime", "Task"]


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


class Runtime(Protocol):
    """Starts actors and other work, and lets them wait for each other."""

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
    def future(self) -> Future[Any]:
        """A future whose `result` waits as everything here does."""
        ...

    def drain(self) -> None:
        """Wait for what was submitted, and take no more of it."""
        ...

    def close(self) -> None:
        """Wait for what was told to actors, then let the threads go."""
        ...
