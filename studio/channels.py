"""One view of one log, and all who follow it: each change is worked out and encoded once, however many there are."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from incarnate.studio.places import Part, Place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from incarnate.studio.places import Position
    from incarnate.studio.sources import Source, Step

    InThread = Callable[[Callable[[], Step | None]], Awaitable[Step | None]]

__all__ = ["Channel"]

_MOST_BYTES = 8 * 1024 * 1024
"""Of changes kept for those who come a little later. A follower whose place is older has its change worked out anew."""


class Channel:
    """Belongs to the event loop. A follower is no more than a position: nothing is queued for it."""

    def __init__(self, source: Source, in_thread: InThread, paced: Callable[[], Awaitable[None]]) -> None:
        """`paced` waits as long as what was sent last makes it wise to."""
        self.source = source
        self.followers = 0
        self._in_thread = in_thread
        self._paced = paced
        self._lock = threading.Lock()
        self._steps: OrderedDict[Place, Step] = OrderedDict()
        self._size = 0
        self._pending: dict[Position, asyncio.Task[Step | None]] = {}
        self._level: tuple[Position, int] = (None, -1)  # what those hold who have all, and at which move that was so
        self._moves = 0
        self._moved = asyncio.Event()

    def wake(self) -> None:
        """The log has moved, or may have: followers that were level look again."""
        self._moves += 1
        self.beat()

    def beat(self) -> None:
        """Have those who wait say that they are still there."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def moved(self) -> None:
        """Wait until the log may have moved, or for a beat."""
        await self._moved.wait()

    async def after(self, held: Position) -> Step | None:
        """What follows on what is held, as soon as there is anything; None at a beat without anything."""
        while True:
            moves, moved = self._moves, self._moved
            step = self._steps.get(held) if isinstance(held, Place) else None
            # Who has all waits for the next look: one change for what came meanwhile, and not one for each event.
            if step is None and self._level != (held, moves):
                step = await self._worked_out(held)
            if step is not None:
                return step
            if moves == self._moves:
                await moved.wait()
                if moves == self._moves:
                    return None

    async def _worked_out(self, held: Position) -> Step | None:
        task = self._pending.get(held)
        if task is None:
            task = self._pending[held] = asyncio.ensure_future(self._work_out(held))
            task.add_done_callback(lambda _: self._pending.pop(held, None))
        return await asyncio.shield(task)  # others wait for it too

    async def _work_out(self, held: Position) -> Step | None:
        await self._paced()
        moves = self._moves
        step = await self._in_thread(lambda: self._step(held))
        # The rest of an answer in parts leads to where the log stood as it began.
        if step is None or not (step.more or isinstance(held, Part)):
            self._level = (held if step is None else step.position, moves)
        if step is not None and isinstance(held, Place):
            self._keep(held, step)
        return step

    async def close(self) -> None:
        """Work nothing more out. What a thread has begun goes on to its end."""
        tasks = tuple(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _step(self, held: Position) -> Step | None:
        with self._lock:
            return self.source.step(held)

    def _keep(self, held: Place, step: Step) -> None:
        self._steps[held] = step
        self._size += len(step.data)
        while self._size > _MOST_BYTES and len(self._steps) > 1:
            _, old = self._steps.popitem(last=False)
            self._size -= len(old.data)
