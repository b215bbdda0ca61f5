"""Notices on their way from an activation to a projector."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pykka

from incarnate.domain.notices import Appended

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Tap"]

_WAKE_EVENTS = 64
"""A wake-up a notice cost 3.6 times the writer's rate; one for 64 events cost 1.4."""

_MAX_EVENTS = 4096
"""More than these are cheaper to read from the store again than to keep waiting."""


class Tap:
    """Subscribes to an activation for a projector that may be slow, failed or not there: it never blocks the writer.

    `wake` is called once for many notices: at the 64th event, or at the first while `prompt` is set because somebody
    follows the view. Past 4,096 events it lets go of them all, and the projector reads the store.
    """

    holds_activation = True  # its view does: an activation that nobody uses is not kept for its taps

    def __init__(self, wake: Callable[[], bool]) -> None:
        """`wake` answers whether there is still a view to wake."""
        self.prompt = False
        self.behind = False
        """The projector could not read what it should have: followers wait for it, and nothing else may come."""
        self._wake = wake
        self._lock = threading.RLock()  # a signal handler may come in while it is held
        self._notices: list[Appended] = []
        self._events = 0
        self._overflowed = False
        self._woken = False

    def tell(self, message: Any) -> None:
        """Take a notice; runs on the writer's thread.

        Raises:
            pykka.ActorDeadError: its view is gone.
        """
        if not isinstance(message, Appended):
            return
        with self._lock:
            self._events += len(message.events)
            if self._events > _MAX_EVENTS:
                self._notices.clear()
                self._overflowed = True
            else:
                self._notices.append(message)
            wake = not self._woken and (self.prompt or self._events >= _WAKE_EVENTS)
            self._woken = self._woken or wake
        if wake and not self._wake():
            raise pykka.ActorDeadError("the view is gone")

    def drain(self) -> tuple[list[Appended], bool]:
        """What has come since the last time, in order, and whether any was let go of."""
        with self._lock:
            notices, overflowed = self._notices, self._overflowed
            self._notices, self._events, self._overflowed, self._woken = [], 0, False, False
        return notices, overflowed
