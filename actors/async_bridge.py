"""Between an event loop and threads: calls go over to a few threads, answers come back many at a time.

Nothing of a store or an actor runs on the loop's thread. A call costs the loop a future, two queue operations and its
share of a wake-up: threads put what is done into a deque, and only the first to do so since the loop last looked
wakes it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from incarnate.actors.async_calls import Batch, Call, Carrier, heard
from incarnate.domain.errors import ClosedError, ForeignLoopError, ForkedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from concurrent.futures import Future

    from incarnate.actors.async_calls import Back, Order

__all__ = ["Bridge"]

_THREADS = 64
"""Calls on their way at once; the others wait on the loop, which sends on as many as it takes answers.

So the calls that one commit answers are followed by as many that come together and share the next one. Where a thread
took the next call by itself, groups were of 2.7 calls and not of 27, and 1,000 sessions wrote 4,200 events a second
and not 6,800. 32 threads did as well on a fast disk, and half as well on one that syncs in 2 ms.
"""

_BATCHES = 2
"""Batches of emits on their way at once: one at the disk, and the next one made ready meanwhile.

They have threads beside those of the calls: as many calls that wait for something else would keep every emit waiting.
"""

_EMITS_A_BATCH = 128
"""As many rows as SQLite takes in one statement here."""

_SETTLED_A_TURN = 64
"""Answers that the loop takes at a time. A task goes on with each, for 10 to 20 microseconds until its next call, and
whoever else is on the loop must not wait for all of them."""


class Bridge(Carrier):
    """Carries the calls of one system over. It belongs to the loop on which it was made.

    Its attributes are the loop's own: threads touch the two queues and the list of threads alone.
    """

    def __init__(self, last: Callable[[], object]) -> None:
        """`last` is done on a thread when all else is over."""
        self._last = last
        self.loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._over: SimpleQueue[Sequence[Call] | Batch | None] = SimpleQueue()
        self._back: deque[Back] = deque()
        self._woken = False
        self._waiting: deque[Sequence[Call]] = deque()
        self._sent = 0
        self._emits: deque[Call] = deque()
        self._batches = 0
        self._flushing = False
        self._under_way = 0
        self._signals: set[Back] = set()
        self._idle: asyncio.Future[None] | None = None
        self._closer: asyncio.Task[None] | None = None
        self._ended: Call | None = None
        self._threads: list[threading.Thread] = []
        self._threads_lock = threading.Lock()
        self._busy = 0
        self._busy_lock = threading.Lock()
        self._grow()

    @property
    def forked(self) -> bool:
        """Whether this is a forked child's copy."""
        return os.getpid() != self._pid

    def check_usable(self) -> None:
        """Refuse a call that could not be answered.

        Raises:
            ForeignLoopError: the running loop is another one.
            ClosedError, ForkedError: the system cannot be used.
        """
        if self.forked:  # the threads are the parent's
            raise ForkedError("the process was forked after this system was opened")
        self._check_loop()
        if self._closer is not None:
            raise ClosedError("the system is closed")

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self.loop:
            raise ForeignLoopError("the system was entered on another event loop than the one that calls it")

    def call(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> asyncio.Future[Any]:
        """Have `work` done on a thread, in no order; the future has what comes of it.

        Raises:
            ForeignLoopError, ClosedError, ForkedError: as `check_usable`.
        """
        call = self.accept(None, work, arguments, named)
        self.send((call,))
        return call.future

    def leave(self, work: Callable[..., Any], /, *arguments: Any) -> None:
        """Have `work` done without waiting for it: what must be tidied up where a task ends.

        Nothing is done where the system is closed, which tidies up everything.
        """
        with suppress(ClosedError, ForkedError, RuntimeError):  # the last: no loop, or not this one
            self.call(work, *arguments).add_done_callback(heard)

    def accept(self, lane: Order | None, work: Callable[..., Any], arguments: tuple[Any, ...], named: Any) -> Call:
        """A call, which whoever asks for it will `send`.

        Raises:
            ForeignLoopError, ClosedError, ForkedError: as `check_usable`.
        """
        self.check_usable()
        self._under_way += 1
        return Call(self, lane, work, arguments, named)

    def send(self, calls: Sequence[Call]) -> None:
        """Have `calls` run on one thread, one after the other."""
        if self._ended is not None:
            for call in calls:
                call.fail(ClosedError("the system was closed before this call had begun"))
                self.hand_back(call)
        else:
            self._waiting.append(calls)
            self._send_on()

    def send_emit(self, call: Call) -> None:
        """Have an emit done together with those of other sessions."""
        if self._ended is not None:
            self.send((call,))
            return
        self._emits.append(call)
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush)  # once the tasks that are to go on now have had their turn

    def _flush(self) -> None:
        self._flushing = False
        while self._emits and self._batches < _BATCHES:
            self._batches += 1
            most = min(len(self._emits), _EMITS_A_BATCH)
            self._over.put(Batch(self, [self._emits.popleft() for _ in range(most)]))

    def batch_done(self) -> None:
        """One batch of emits less is on its way."""
        self._batches -= 1
        self._flush()

    def _send_on(self) -> None:
        while self._waiting and self._sent < _THREADS:
            calls = self._waiting.popleft()
            calls[-1].ends_turn = True
            self._sent += 1
            self._over.put(calls)

    def settled(self, call: Call) -> None:
        """One call less is under way."""
        self._under_way -= 1
        self._sent -= call.ends_turn
        if not self._under_way and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def follow(self, future: Future[Any]) -> asyncio.Future[Any]:
        """What comes of a thread's `future`, on the loop. What failed need not be asked for."""
        call = Call(self, None, future.result, (), {})
        self._under_way += 1

        def done(_future: Future[Any]) -> None:
            call.run()
            self.hand_back(call)

        future.add_done_callback(done)
        call.future.add_done_callback(heard)
        return call.future

    @contextmanager
    def woken_at_the_end(self, signal: Back) -> Generator[None]:
        """Set `signal` when the system is closed; at once where it is."""
        if self._closer is not None:
            signal.settle()
        self._signals.add(signal)
        try:
            yield
        finally:
            self._signals.discard(signal)

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Have `callback` called on the loop, while there is one. Any thread may ask for it."""
        with suppress(RuntimeError):  # the loop was closed
            self.loop.call_soon_threadsafe(callback)

    def hand_back(self, *backs: Back) -> None:
        """Have all of `backs` settled on the loop, as long as there is one. Any thread may ask for it."""
        self._back.extend(backs)
        if not self._woken:
            self._woken = True
            self.call_soon(self._settle)

    def _settle(self) -> None:
        self._woken = False  # before anything is taken: what is added from now on wakes the loop again
        back = self._back
        try:
            for _ in range(min(len(back), _SETTLED_A_TURN)):
                back.popleft().settle()
        finally:  # whatever one of them raises, which the loop tells: nobody else wakes it for the others
            self._send_on()
            if back and not self._woken:
                self._woken = True
                self.loop.call_soon(self._settle)

    async def close(self) -> None:
        """Take no more calls, wait for those under way, do the last thing and end the threads.

        It goes on to its end by itself where the task that awaits it is cancelled. A forked child does nothing.

        Raises:
            ForeignLoopError: the running loop is another one.
        """
        if not self.forked:
            self._check_loop()
            if self._closer is None:
                self._closer = asyncio.create_task(self._close(), name="incarnate-close")
            await asyncio.shield(self._closer)

    async def _close(self) -> None:
        for signal in tuple(self._signals):
            signal.settle()  # who waits for something to happen shall see that nothing will
        try:
            while self._under_way:  # again: what came back may have sent something on
                self._idle = self.loop.create_future()
                await self._idle
        finally:  # where the loop ends and cancels this, it is done without one
            self._ended = Call(self, None, self._last, (), {})
            self._under_way += 1
            # No daemon: the interpreter waits for it, even where nobody else does any more.
            ending = threading.Thread(target=self._end, args=(self._ended,), name="incarnate-async-close")
            try:
                ending.start()
            except RuntimeError:  # no further thread: better that the loop waits than that the store stays open
                self._end(self._ended)
            waiting, self._waiting = self._waiting, deque()
            emits, self._emits = self._emits, deque()
            for calls in (*waiting, *([emit] for emit in emits)):
                self.send(calls)
        await self._ended.future

    # on threads

    def _end(self, ended: Call) -> None:
        with self._threads_lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._over.put(None)
        for thread in threads:
            thread.join()
        ended.run()
        self.hand_back(ended)

    def _grow(self) -> None:
        """Start one more thread, unless there are enough or it is over. Waits until it runs."""
        with self._threads_lock:
            if len(self._threads) < _THREADS + _BATCHES and self._ended is None:
                number = len(self._threads)
                # A daemon: a program that never closes its system shall end all the same.
                thread = threading.Thread(target=self._run, name=f"incarnate-async-{number}", daemon=True)
                thread.start()
                self._threads.append(thread)

    def _run(self) -> None:
        while self._next():
            pass

    def _next(self) -> bool:
        calls = self._over.get()
        if calls is None:
            return False
        self._count_busy(1)
        if self._busy >= len(self._threads) < _THREADS + _BATCHES:  # one to spare: a call that waits keeps no other
            with suppress(RuntimeError):  # there is no further thread to be had: those there are do it
                self._grow()  # here and not on the loop, which would wait for it
        self._do(calls)
        self._count_busy(-1)
        return True

    def _do(self, calls: Sequence[Call] | Batch) -> None:
        if isinstance(calls, Batch):
            calls.run()
        else:
            for call in calls:
                call.run()
                self.hand_back(call)

    def _count_busy(self, more: int) -> None:
        with self._busy_lock:
            self._busy += more
