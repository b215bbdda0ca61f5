"""Wakes a task from a thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incarnate.actors.async_bridge import Bridge

__all__ = ["Signal"]


class Signal:
    """Wakes a task of the loop from any thread; while that does not look, once is as often as many times."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._event = asyncio.Event()
        self._told = False

    def set(self) -> None:
        """Wake whoever waits; any thread may."""
        if not self._told:
            self._told = True
            self._bridge.hand_back(self)

    def settle(self) -> None:
        """Wake them; on the loop."""
        self._event.set()

    def clear(self) -> None:
        """Before looking at what it tells of: what changes from now on sets it again."""
        self._told = False
        self._event.clear()

    async def wait(self) -> None:
        """Until it is set, or the bridge is closed."""
        with self._bridge.woken_at_the_end(self):
            await self._event.wait()
