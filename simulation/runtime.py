# ruff: noqa: D102 - `incarnate.actors.runtime` says what each does
"""What a simulated process's system runs on: one thread, and the scheduler's time and order."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from incarnate.actors.runtime import Runtime
from incarnate.domain.errors import ClosedError
from incarnate.simulation import mailbox
from incarnate.simulation.waiting import (
    SimulatedCondition,
    SimulatedEvent,
    SimulatedFuture,
    SimulatedLock,
    SimulatedRLock,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pykka

    from incarnate.actors.runtime import Deferred

__all__ = ["SimulatedRuntime"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well


class _Spawned:
    """Work that has its own task."""

    def __init__(self, process: mailbox.Home, work: Callable[[], object], name: str) -> None:
        self._work = work
        self._ended = SimulatedEvent(process.scheduler, f"the end of {name}")
        process.scheduler.begin(process.task(name, self._run))

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended.set()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def join(self) -> None:
        self._ended.wait()


class SimulatedRuntime(Runtime):
    """The runtime of one life of a simulated process."""

    def __init__(self, process: mailbox.Home) -> None:
        self._process = process
        self._scheduler = process.scheduler
        self._submitted: list[_Spawned] = []
        self._closed = False

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        kind: Any = mixed(actor)
        return mailbox.start(functools.partial(kind, *args), self._process)

    def spawn(self, work: Callable[[], object], name: str) -> _Spawned:
        return _Spawned(self._process, work, name.removeprefix("incarnate-"))

    def submit(self, work: Callable[[], object]) -> None:
        self._scheduler.point()
        if self._closed:
            raise ClosedError("the system is closed")
        self._submitted = [one for one in self._submitted if not one.ended]
        self._submitted.append(_Spawned(self._process, work, "submitted"))

    def linger(self, work: Deferred) -> None:
        if work.idle:
            self.submit(work.run)

    def helps(self) -> bool:
        return False

    def current(self) -> int:
        return id(self._scheduler.running)

    def monotonic(self) -> float:
        return self._scheduler.micros / 1_000_000

    def lock(self) -> SimulatedLock:
        return SimulatedLock(self._scheduler)

    def rlock(self) -> SimulatedRLock:
        return SimulatedRLock(self._scheduler)

    def event(self) -> SimulatedEvent:
        return SimulatedEvent(self._scheduler)

    def condition(self) -> SimulatedCondition:
        return SimulatedCondition(self._scheduler)

    def future(self, work: Deferred) -> SimulatedFuture:  # noqa: ARG002 - nobody helps, and `linger` has begun it
        return SimulatedFuture(self._scheduler)

    def drain(self) -> None:
        self._closed = True
        for one in self._submitted:
            one.join()

    def close(self) -> None:
        self.drain()


@functools.cache
def mixed(actor: Any) -> type[mailbox.SimulatedActor]:
    """The class `actor` as it runs in a simulation."""
    return type(actor.__name__, (mailbox.SimulatedActor, actor), {})
