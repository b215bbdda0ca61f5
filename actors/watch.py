"""Watches the store for what other processes wrote, and wakes those who want to know."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from incarnate.actors.logs import log
from incarnate.domain.notices import FenceMoved

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.directory import ActivationRef
    from incarnate.actors.runtime import Runtime, Task
    from incarnate.storage.port import Store

__all__ = ["StoreWatch", "Watched"]

_POLL_SECONDS = 0.05
"""How often another process's commits are looked for, while anybody watches: one pragma, about two microseconds."""

_GATHER_SECONDS = 0.004
"""How long a woken view waits for more notices, so that a burst of them wakes it once."""


class Watched(Protocol):
    """A view, as the watch sees it."""

    @property
    def has_ready_follower(self) -> bool:
        """Whether one that was left behind can take the whole view now."""
        ...

    def catch_up(self, *, store: bool) -> None:
        """Take in what has come, with `store` also from the store; must not block."""
        ...


class _FenceWatch(NamedTuple):
    ref: ActivationRef  # held, since the watch subscribes to it
    incarnation: int
    callback: Callable[[], object]


class StoreWatch:
    """One thread a system, started when somebody first watches; it sleeps until woken while nobody does."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        self._lock = runtime.rlock()  # a signal handler may come in while it is held
        self._fences: list[_FenceWatch] = []
        self._followed: dict[Watched, None] = {}  # in order, so that a simulation can repeat itself
        self._woken: dict[Watched, None] = {}
        self._fence_moved = False
        self._wake = runtime.event()
        self._closing = runtime.event()
        self._task: Task | None = None
        self._running: int | None = None
        self._starting = False

    holds_activation = True

    def on_fenced(self, ref: ActivationRef, incarnation: int, callback: Callable[[], object]) -> None:
        """Call `callback` once when the fence of `ref` is above `incarnation`; at once if it is already."""
        with self._lock:
            self._fences.append(_FenceWatch(ref, incarnation, callback))
            self._fence_moved = True
        self._start()

    def tell(self, message: Any) -> None:
        """A notice of an activation of this process: the watch subscribes to those whose fence is watched."""
        if isinstance(message, FenceMoved):
            self._fence_moved = True
            self._wake.set()

    def follow(self, view: Watched) -> None:
        """Keep `view` level with what other processes write, since somebody follows it."""
        with self._lock:
            self._followed[view] = None
        self._start()

    def unfollow(self, view: Watched) -> None:
        """Nobody follows `view` any more."""
        with self._lock:
            self._followed.pop(view, None)

    def wake(self, view: Watched) -> None:
        """Have `view` take in its notices soon."""
        with self._lock:
            self._woken[view] = None
        try:
            self._start()
        except RuntimeError as error:  # no further thread: its writer is not to blame, and the next notice tries again
            log(logging.WARNING, "watch_failed", "the watch could not start: %s", error)

    def close(self) -> None:
        """Stop watching, without calling anybody."""
        self._closing.set()
        self._wake.set()
        with self._lock:
            task = self._task
        if task is not None and self._running != self._runtime.current():
            task.join()

    def _start(self) -> None:
        with self._lock:
            if self._task is None and not self._starting and not self._closing.is_set():
                self._starting = True
                try:
                    self._task = self._runtime.spawn(self._run, "incarnate-watch")
                finally:
                    self._starting = False
        self._wake.set()

    def _run(self) -> None:
        version = -1
        self._running = self._runtime.current()
        while not self._closing.is_set():
            self._wake.wait(_POLL_SECONDS if self._fences or self._followed else None)
            if self._woken:
                self._closing.wait(_GATHER_SECONDS)
            self._wake.clear()
            try:
                seen = self._store.version() if self._fences or self._followed else version
                self._look(changed=seen != version)
                version = seen
            except Exception as error:  # noqa: BLE001 - a busy or failing store: the next round looks again
                if not self._closing.is_set():
                    log(logging.WARNING, "watch_failed", "the watch could not read %s: %s", self._store.url, error)

    def _look(self, *, changed: bool) -> None:
        with self._lock:
            woken, self._woken = self._woken, {}
            followed = self._followed.copy()
            moved, self._fence_moved = self._fence_moved, False
        for view in woken | followed:
            if changed and view in followed:
                view.catch_up(store=True)
            elif view in woken or view.has_ready_follower:
                view.catch_up(store=False)
        if changed or moved:
            try:
                self._check_fences()
            except BaseException:
                self._fence_moved = True  # nobody tells it again: the next round must look
                raise

    def _check_fences(self) -> None:
        for watch in tuple(self._fences):
            if self._closing.is_set():
                return
            fence = self._store.head(watch.ref.key).fence
            if fence is not None and fence > watch.incarnation:
                # On a thread of its own: one that blocks or ends its thread must not silence the others. Forgotten only
                # then: where no thread is to be had the next round calls it.
                self._runtime.spawn(functools.partial(_call, watch.callback), "incarnate-fenced")
                with self._lock:
                    self._fences.remove(watch)


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except BaseException as error:  # noqa: BLE001 - it is the user's; nobody else hears of it
        log(logging.ERROR, "callback_failed", "a callback of on_fenced failed", error=error)
