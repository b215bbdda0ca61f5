"""Blocking calls from event loops: one at a time, in the order in which they were made."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["InOrder"]

T = TypeVar("T")


class InOrder:
    """Runs calls on the threads of the event loop, never two at once, and the first made first.

    A thread of its own would keep the order too, at the cost of a thread for each conversation; a lock would not:
    threads get it in any order. Tasks of several loops and threads may use it.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = threading.Lock()
        self._running = False

    async def run(self, call: Callable[[], T]) -> T:
        """The answer of `call`.

        A cancelled caller has its `CancelledError` once the outcome is certain: at once where the call had not
        begun, which it then never does, and after its end otherwise. What it raised is then the error's cause.
        """
        job: Future[T] = Future()
        with self._lock:
            if not self._running:
                # Under the lock: where the loop's threads were shut down it raises, and nobody must wait for it then.
                _ = asyncio.get_running_loop().run_in_executor(None, self._work)
                self._running = True
            self._waiting.append((job, call))
        return await _outcome(job)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                job, call = self._waiting.popleft()
            if job.set_running_or_notify_cancel():
                _run(job, call)


def _run(job: Future[T], call: Callable[[], T]) -> None:
    try:
        answer = call()
    except BaseException as error:  # noqa: BLE001 - it belongs to the caller, and the next call must be run
        job.set_exception(error)
    else:
        job.set_result(answer)


async def _outcome(job: Future[T]) -> T:
    future = asyncio.wrap_future(job)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            if job.cancel():
                raise
            cancelled = cancelled or error
    if cancelled is not None:
        raise cancelled from future.exception()
    return future.result()
