"""Looks for what other processes append, and wakes those who follow it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from incarnate.actors.logs import log
from incarnate.studio.channels import Channel
from incarnate.studio.problems import Problem
from incarnate.studio.sources import source_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive

__all__ = ["Hub", "Pace"]

T = TypeVar("T")


class Pace(NamedTuple):
    """How often what others append is looked for, in seconds, and how much of a processor is spent on telling it.

    Before a change is worked out there is a pause of up to `share` times what the last one cost the loop, less where
    few follow: the processors are shared with those who append. A change to 200 followers costs 10 ms and more. Where
    there is more to send than that allows, they fall behind, and not the session that they look at.
    """

    poll_seconds: float = 0.05
    share: float = 8.0


_FEW = 4
_LONGEST_SECONDS = 2.0
_HEARTBEAT_SECONDS = 15.0
_THREADS = 8
_MOST_FOLLOWERS = 1024
_MOST_CHANNELS = 64


class Hub:
    """Everybody who follows something, on one event loop."""

    def __init__(self, archive: Archive, pace: Pace) -> None:
        self.archive = archive
        self._pace = pace
        self.closing = asyncio.Event()
        self.moves = 0  # how often something may have been written
        self._channels: OrderedDict[tuple[ActivationKey, str], Channel] = OrderedDict()
        self._limiter = anyio.CapacityLimiter(_THREADS)
        self._changed = asyncio.Event()
        self._version: Any = None
        self._followers = 0
        self._spent = time.thread_time()
        self._watcher: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    async def in_thread(self, work: Callable[..., T], /, *arguments: Any) -> T:
        """What comes of `work`, which reads the store and blocks."""
        return await anyio.to_thread.run_sync(partial(work, *arguments), limiter=self._limiter)

    async def paced(self) -> None:
        """Wait in proportion to what the loop has done since this was last called."""
        spent = time.thread_time()
        cost, self._spent = spent - self._spent, spent
        share = min(self._pace.share, self._followers / _FEW)  # a few take so little that they need not wait for it
        await asyncio.sleep(min(_LONGEST_SECONDS, share * cost))

    @property
    def followers(self) -> int:
        """How many follow anything now."""
        return self._followers

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Look for changes meanwhile."""
        watcher = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self.close()
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            for channel in self._channels.values():
                await channel.close()

    def close(self) -> None:
        """End every stream."""
        self.closing.set()
        self._wanted.set()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Count one follower.

        Raises:
            Problem: there are too many.
        """
        if self._followers >= _MOST_FOLLOWERS:
            raise Problem(503, "too-many-followers", f"{self._followers} streams are open", "close one, or try later")
        self._followers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._followers -= 1

    def channel(self, key: ActivationKey, view: str) -> Channel:
        """The channel of a view; it stays while it is followed or was lately."""
        found = self._channels.get((key, view))
        if found is None:
            found = Channel(source_of(self.archive, key, view), self.in_thread, self.paced)
            self._channels[key, view] = found
        self._channels.move_to_end((key, view))
        for old in [name for name, channel in self._channels.items() if not channel.followers]:
            if len(self._channels) <= _MOST_CHANNELS:
                break
            if old != (key, view):
                del self._channels[old]
        return found

    async def change(self) -> None:
        """Wait until something may have been written to the store."""
        await self._changed.wait()

    async def _watch(self) -> None:
        beat = time.monotonic()
        while not self.closing.is_set():
            if time.monotonic() - beat > _HEARTBEAT_SECONDS:
                beat = time.monotonic()
                for channel in tuple(self._channels.values()):
                    channel.beat()
            if not self._followers:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            await self._look()
            await asyncio.sleep(self._pace.poll_seconds)

    async def _look(self) -> None:
        try:
            version = await self.in_thread(self.archive.version)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look may see what all wait for
            if self._version is not None:
                log(
                    logging.WARNING, "studio_unreadable", "the studio cannot read %s: %s", self.archive.store.url, error
                )
            version = None
        if version == self._version:
            return
        self._version = version
        self.moves += 1
        self._changed.set()
        self._changed = asyncio.Event()
        for channel in tuple(self._channels.values()):
            channel.wake()
