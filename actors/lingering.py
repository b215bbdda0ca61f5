"""Work that is left a moment for whoever waits for it."""

from __future__ import annotations

import functools
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from incarnate.actors.crews import Crew
from incarnate.domain.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.runtime import Deferred

__all__ = ["Lingerer", "Sent"]

_TICK_SECONDS = 0.001
"""What nobody waits for is begun one to two of these after it came."""


class Lingerer:
    """Looks after deferred work, on one thread, and has it done where nobody else begins it from one look to the next.

    No thread for each, nor one woken for each: what is waited for is done by then, and costs a look at most.
    """

    def __init__(self) -> None:
        # One looks; the second is for when an interrupt tore its work from the first, which then waits for it for long.
        self._crew = Crew("incarnate-lingering", 2)
        self._seen: dict[Deferred, int] = {}  # how often each had been begun at the last look
        self._looking = threading.Lock()
        self._closed = False

    def add(self, work: Deferred) -> None:
        """Look after `work` until there is nothing to do.

        Raises:
            ClosedError: it was closed.
        """
        if work not in self._seen:
            self._seen[work] = -1
        if not self._looking.locked():  # an interrupt before this leaves it to the next who comes
            self._crew.submit(self._look)
        elif self._closed:
            raise ClosedError("the system is closed")

    def close(self, seconds: float | None = None) -> None:
        """Have everything begun at once, and take no more."""
        self._closed = True
        self._crew.close(seconds)

    def _look(self) -> None:
        while self._seen:  # looked at again after the lock: what was added meanwhile saw it held
            if not self._looking.acquire(blocking=False):
                return
            try:
                while self._seen:
                    time.sleep(_TICK_SECONDS)
                    for work, begun in tuple(self._seen.items()):
                        self._look_at(work, begun)
            finally:
                self._looking.release()

    def _look_at(self, work: Deferred, begun: int) -> None:
        if work.begun != begun and not self._closed:
            self._seen[work] = work.begun
            return
        try:
            work.hurry()
        except ClosedError:  # whoever waits for it is told
            pass
        except (RuntimeError, MemoryError):  # no thread is to be had, as at the end of the interpreter: this is one
            with suppress(BaseException):  # whoever waits was told; the others must be looked after all the same
                work.run()
        del self._seen[work]
        if work.idle:  # it was added to meanwhile, by somebody who saw that it is looked after
            self._seen[work] = -1


class Sent(Future[Any]):
    """What deferred work will answer: whoever is about to wait for it says so, and it cannot be called back."""

    def __init__(self, work: Deferred) -> None:
        super().__init__()
        self._work = work

    def cancel(self) -> bool:
        """Nothing: it is on its way."""
        return False

    def running(self) -> bool:
        """Whether it is still to come."""
        return not self.done()

    def result(self, timeout: float | None = None) -> Any:
        """What came of it, as `Future.result`."""
        self._await(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What it failed with, as `Future.exception`."""
        self._await(timeout)
        return super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        """Have `fn` called when it is there, as `Future.add_done_callback`."""
        super().add_done_callback(functools.partial(self._work.call, fn))
        if not self.done():
            with suppress(ClosedError):  # `fn` was told
                self._work.called_back()

    def _await(self, timeout: float | None) -> None:
        if not self.done():
            with suppress(ClosedError):  # it is what came of it
                self._work.awaited(self, forever=timeout is None)
