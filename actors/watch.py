"""Tells a session that it was fenced, in whatever process the take-over happened."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.domain.errors import IncarnateError
from incarnate.domain.notices import FenceMoved

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Store

__all__ = ["FenceWatch"]

_log = logging.getLogger("incarnate")

_POLL_SECONDS = 0.05
"""How often another process's commits are looked for, while anybody watches: one pragma, about two microseconds."""


class _Watch(NamedTuple):
    key: ActivationKey
    incarnation: int
    callback: Callable[[], object]


class FenceWatch:
    """A thread that sleeps until the store changes, started by the first watch. Subscribes to activations."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._watches: list[_Watch] = []
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, key: ActivationKey, incarnation: int, callback: Callable[[], object]) -> None:
        """Call `callback` once when the fence of `key` is above `incarnation`; at once if it is already."""
        with self._lock:
            self._watches.append(_Watch(key, incarnation, callback))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="incarnate-fence-watch", daemon=True)
                self._thread.start()
        self._wake.set()

    def tell(self, message: Any) -> None:
        """A notice of an activation of this process."""
        if isinstance(message, FenceMoved):
            self._wake.set()

    def close(self) -> None:
        """Stop watching, without calling anybody."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        version = -1
        while not self._closed:
            woken = self._wake.wait(_POLL_SECONDS if self._watches else None)
            self._wake.clear()
            try:
                seen = self._store.version()
                if woken or seen != version:
                    self._check()
                version = seen
            except IncarnateError as error:  # a busy or failing store: the next round looks again
                if not self._closed:
                    _log.warning("the fence watch could not read %s: %s", self._store.url, error)

    def _check(self) -> None:
        for watch in tuple(self._watches):
            if self._closed:
                return
            with self._store.snapshot(watch.key) as log:
                fence = log.head.fence
            if fence is not None and fence > watch.incarnation:
                with self._lock:
                    self._watches.remove(watch)
                _call(watch.callback)


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:  # noqa: BLE001 - it is the user's, and the next callback must still be called
        _log.exception("a callback of on_fenced failed")
