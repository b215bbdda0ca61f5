"""Threads that come with the work and go when there has been none for a while."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from incarnate.actors.logs import log
from incarnate.domain.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    _Work: TypeAlias = Callable[[], object]

__all__ = ["Crew", "Errand"]

_IDLE_SECONDS = 5.0


class Errand:
    """Work for a crew. `sent` once the crew has it: what an interrupt tore away before that is sent again."""

    __slots__ = ("_work", "sent")

    def __init__(self, work: _Work) -> None:
        self._work = work
        self.sent = False

    def __call__(self) -> None:
        """Do it."""
        self._work()


class _Bench:
    """Where one idle thread waits to be handed its next work, or None: to look whether it shall go."""

    __slots__ = ("given", "left")

    def __init__(self) -> None:
        self.given: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self.left = False

    def taken_back(self) -> _Work | None:
        """What was given and nobody took."""
        work: _Work | None = None
        with suppress(queue.Empty):
            while work is None:
                work = self.given.get_nowait()
        return work


class Crew:
    """Does work on at most `most` threads at once, or on as many as there is work (None): then none waits.

    Its threads do not keep the process alive, and no work can end one. No lock is held while work changes hands: an
    interrupt or a signal handler may come between any two lines of `submit`, and what is lost then is the one work
    of the sender that was interrupted.
    """

    def __init__(self, name: str, most: int | None = None) -> None:
        self._name = name
        self._most = sys.maxsize if most is None else most
        self._waiting: deque[_Work] = deque()  # only while there are `most` threads
        self._idle: deque[_Bench] = deque()
        self._benches: set[_Bench] = set()  # also those that a sender took from `_idle` and was interrupted
        self._threads: set[threading.Thread] = set()
        self._closed = False
        self._pid = os.getpid()

    def submit(self, work: _Work) -> None:
        """Have `work` done soon.

        Raises:
            ClosedError: the crew was closed.
            RuntimeError: the operating system gives no further thread; `work` is not done.
        """
        if self._closed:
            raise ClosedError("the system is closed")
        if self._hand_over(work):
            return
        if self._has_room():
            self._begin(work)
        else:
            self._waiting.append(work)
            self._rouse()  # whoever became idle in between has not seen it

    def close(self, seconds: float | None = None) -> None:
        """Take no more work, and wait until all is done; at most for `seconds`.

        Called by work of its own it does not wait for that.
        """
        self._closed = True
        if os.getpid() != self._pid:
            return  # a forked child has none of the threads
        until = None if seconds is None else time.monotonic() + seconds
        while others := [thread for thread in self._begun() if thread is not threading.current_thread()]:
            self._dismiss()
            for thread in others:
                thread.join(None if until is None else max(0.0, until - time.monotonic()))
            if until is not None and time.monotonic() >= until:
                return

    def _begun(self) -> list[threading.Thread]:
        return [thread for thread in tuple(self._threads) if thread.is_alive()]

    def _has_room(self) -> bool:
        # Counted one by one only when it seems full: an interrupted `_begin` leaves a thread that never ran.
        return len(self._threads) < self._most or len(self._begun()) < self._most

    def _hand_over(self, work: _Work) -> bool:
        try:
            bench = self._idle.pop()
        except IndexError:
            return False
        bench.given.put(work)
        return not bench.left or bench.taken_back() is None

    def _begin(self, work: _Work) -> None:
        thread = threading.Thread(target=self._live, args=(work,), name=self._name, daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            if thread.ident is None:
                self._threads.discard(thread)
            raise

    def _rouse(self) -> None:
        """Have what waits done where a thread is idle or can be had; called after a change of either."""
        while self._waiting and (self._idle or self._has_room()):
            try:
                work = self._waiting.popleft()
            except IndexError:
                return
            try:
                if not self._hand_over(work):
                    self._begin(work)
            except RuntimeError:  # no further thread: whoever works comes by here when he is done
                self._waiting.appendleft(work)
                return

    def _dismiss(self) -> None:
        for bench in tuple(self._benches):
            bench.given.put(None)

    def _live(self, first: _Work) -> None:
        me = threading.current_thread()
        self._threads.add(me)
        work: _Work | None = first
        while work is not None:
            self._do(work)
            del work  # what it holds must not live until the next one comes
            work = self._next()
        self._threads.discard(me)
        self._rouse()

    def _do(self, work: _Work) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a thread that it ended would be missing, and nobody would know
            with suppress(BaseException):
                log(logging.ERROR, "failed", "%s failed", self._name, error=error)

    def _next(self) -> _Work | None:
        """The next work; None to go."""
        try:
            return self._waiting.popleft()
        except IndexError:
            pass
        bench = _Bench()
        self._benches.add(bench)
        self._idle.append(bench)
        self._rouse()  # what came before this thread was seen to be idle
        if self._closed:
            self._dismiss()
        work: _Work | None = None
        with suppress(queue.Empty):
            work = bench.given.get(timeout=_IDLE_SECONDS)
        self._benches.discard(bench)
        return self._leave(bench) if work is None else work

    def _leave(self, bench: _Bench) -> _Work | None:
        with suppress(ValueError):  # somebody may be about to hand something over
            self._idle.remove(bench)
        bench.left = True  # who hands something over from here on takes it back, and this thread what was before
        return bench.taken_back()
