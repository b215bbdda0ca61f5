# ruff: noqa: D102 - what is named as in `threading` does what it does there
"""Locks, events, conditions and futures on which tasks of a simulation wait for each other."""

from __future__ import annotations

from collections import deque
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.simulation.scheduler import Scheduler, Task

__all__ = ["SimulatedCondition", "SimulatedEvent", "SimulatedFuture", "SimulatedLock", "SimulatedRLock"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well


class SimulatedLock:
    """As `threading.Lock`, used by `with` alone."""

    __slots__ = ("_owner", "_scheduler", "_waiting")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._owner: Task | None = None
        self._waiting: deque[Task] = deque()

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        scheduler = self._scheduler
        scheduler.point()
        self._take(scheduler.running)
        return True

    def _take(self, task: Task) -> None:
        while self._owner is not None:
            self._waiting.append(task)
            self._scheduler.block("a lock")
        self._owner = task

    def __exit__(self, *_exc: object) -> None:
        self._owner = None
        if self._waiting:
            self._scheduler.wake(self._waiting.popleft())


class SimulatedRLock:
    """As `threading.RLock`, used by `with` alone."""

    __slots__ = ("_depth", "_lock")

    def __init__(self, scheduler: Scheduler) -> None:
        self._lock = SimulatedLock(scheduler)
        self._depth = 0

    def _is_owned(self) -> bool:
        lock = self._lock
        return lock._owner is lock._scheduler.running  # noqa: SLF001 - it is this module's

    def __enter__(self) -> bool:
        if not self._is_owned():
            self._lock.__enter__()
        self._depth += 1
        return True

    def __exit__(self, *_exc: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._lock.__exit__()

    def release_all(self) -> int:
        """Let go of it; how often it was held."""
        depth, self._depth = self._depth, 0
        self._lock.__exit__()
        return depth

    def take_again(self, depth: int) -> None:
        """Hold it as often as before."""
        self._lock.__enter__()
        self._depth = depth


class SimulatedEvent:
    """As `threading.Event`."""

    __slots__ = ("_scheduler", "_set", "_waiting", "_what")

    def __init__(self, scheduler: Scheduler, what: str = "an event") -> None:
        self._scheduler = scheduler
        self._what = what
        self._set = False
        self._waiting: list[Task] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._scheduler.wake(task)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        scheduler = self._scheduler
        if self._set:
            scheduler.point()
            return True
        task = scheduler.running
        self._waiting.append(task)
        if not scheduler.block(self._what, timeout) and task in self._waiting:
            self._waiting.remove(task)
        return self._set


class SimulatedCondition:
    """As `threading.Condition`."""

    __slots__ = ("_lock", "_scheduler", "_waiting")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._lock = SimulatedRLock(scheduler)
        self._waiting: list[Task] = []

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *_exc: object) -> None:
        self._lock.__exit__()

    def wait(self, timeout: float | None = None) -> bool:
        scheduler = self._scheduler
        task = scheduler.running
        self._waiting.append(task)
        depth = self._lock.release_all()
        try:
            woken = scheduler.block("a condition", timeout)
        finally:
            if task in self._waiting:
                self._waiting.remove(task)
        self._lock.take_again(depth)
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        clock = self._scheduler
        deadline = None if timeout is None else clock.micros + int(timeout * 1_000_000)
        result = predicate()
        while not result:
            left = None if deadline is None else (deadline - clock.micros) / 1_000_000
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        woken, self._waiting = self._waiting[:n], self._waiting[n:]
        for task in woken:
            self._scheduler.wake(task)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class SimulatedFuture(Future[Any]):
    """A future whose `result` lets other tasks run."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._arrived = SimulatedEvent(scheduler, "a future")
        self.add_done_callback(lambda _: self._arrived.set())

    def result(self, timeout: float | None = None) -> Any:
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        if self.cancelled():
            raise CancelledError
        if not self.done() and not self._arrived.wait(timeout):
            raise TimeoutError
