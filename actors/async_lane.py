"""The calls of one session, in order."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from incarnate.actors.async_calls import heard
from incarnate.domain.errors import ClosedError, ForkedError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from incarnate.actors.async_bridge import Bridge
    from incarnate.actors.async_calls import Call

__all__ = ["Lane"]

_BATCH = 64
"""Calls of one session that go over together: else each of many would wait for the loop in between."""


class Lane:
    """Calls that are carried over in the order in which they were made: those of one session."""

    def __init__(self, bridge: Bridge) -> None:
        self.unheard: BaseException | None = None
        """What a call came to that nobody awaited any more."""
        self._bridge = bridge
        self._waiting: deque[Call] = deque()
        self._sent = 0

    def call(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> asyncio.Future[Any]:
        """Have `work` done on a thread after all that was asked for before; the future has what comes of it.

        Raises:
            ForeignLoopError, ClosedError, ForkedError: as `Bridge.check_usable`.
        """
        call = self._bridge.accept(self, work, arguments, named)
        self._waiting.append(call)
        if not self._sent:
            self._send()
        return call.future

    def leave(self, work: Callable[..., Any], /, *arguments: Any) -> None:
        """As `Bridge.leave`, after all that was asked for before."""
        with suppress(ClosedError, ForkedError, RuntimeError):  # the last: no loop, or not this one
            self.call(work, *arguments).add_done_callback(heard)

    def settled(self) -> None:
        """One call that was sent is done."""
        self._sent -= 1
        if not self._sent and self._waiting:
            self._send()

    def _send(self) -> None:
        if len(self._waiting) == 1 and self._waiting[0].emit is not None:
            self._sent = 1
            self._bridge.send_emit(self._waiting.popleft())
            return
        self._sent = min(len(self._waiting), _BATCH)
        self._bridge.send([self._waiting.popleft() for _ in range(self._sent)])
