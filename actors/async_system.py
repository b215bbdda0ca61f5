"""The session system of asyncio programs."""

from __future__ import annotations

import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from incarnate.actors.async_bridge import Bridge
from incarnate.actors.async_face import Face, forwarded, paged
from incarnate.actors.async_session import AsyncSession
from incarnate.actors.async_view import AsyncView
from incarnate.actors.system import SessionSystem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Self

    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Projection

__all__ = ["AsyncSessionSystem"]

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
V = TypeVar("V")

_LISTED_A_CALL = 256


def _taking_as(
    method: Callable[P, object],
) -> Callable[[Callable[Concatenate[S, ...], T]], Callable[Concatenate[S, P], T]]:
    """For a class method that takes what `method` takes, whatever that comes to be."""

    def like(own: Callable[Concatenate[S, ...], T]) -> Callable[Concatenate[S, P], T]:
        bound: Any = method
        return functools.update_wrapper(own, bound.__func__, assigned=(), updated=())

    return like


class _Opened:
    """A system that is closed even where the task that wanted it was cancelled while it was opened."""

    def __init__(self, opened: Callable[[], SessionSystem]) -> None:
        self._opened = opened
        self._system: SessionSystem | None = None

    def open(self) -> SessionSystem:
        self._system = self._opened()
        return self._system

    def close(self) -> None:
        if self._system is not None:
            self._system.close()


class AsyncSessionSystem(Face[SessionSystem]):
    """A `SessionSystem` for the tasks of one event loop: the same calls, awaited. Several may live on one loop.

    ```
    async with AsyncSessionSystem.open("sqlite:///sessions.db") as system:
        session = await system.claim(key)
    ```

    It belongs to the loop on which it is entered; a call from another one raises `ForeignLoopError`. No call reads,
    commits or waits on the loop's thread.
    """

    def __init__(self, system: SessionSystem, bridge: Bridge) -> None:
        """Use `open`, or `over` for a system that was not opened by a URL."""
        super().__init__(system, bridge)

    @classmethod
    @_taking_as(SessionSystem.open)
    def open(cls, *arguments: Any, **named: Any) -> AbstractAsyncContextManager[AsyncSessionSystem]:
        """A system over the store that a URL names, with the arguments of `SessionSystem.open`, for `async with`.

        Leaving it waits for the calls under way and closes it, without blocking the loop.

        Raises:
            StoreUrlError, StoreFileError, StoreBusyError: the store cannot be opened; as it is entered.
        """
        return cls.over(functools.partial(SessionSystem.open, *arguments, **named))

    @classmethod
    @asynccontextmanager
    async def over(cls, opened: Callable[[], SessionSystem]) -> AsyncGenerator[Self]:
        """The system that `opened` makes on a thread, for `async with`. Leaving it closes that one too."""
        system = _Opened(opened)
        bridge = Bridge(system.close)
        try:
            yield cls(await bridge.call(system.open), bridge)
        finally:
            await bridge.close()

    @property
    def url(self) -> str:
        """The store's URL."""
        return self._core.url

    async def lease(self, key: ActivationKey, incarnation: int) -> AsyncSession:
        """As `SessionSystem.lease`."""
        return AsyncSession(await self._carry(SessionSystem.lease, key, incarnation), self._bridge)

    async def claim(self, key: ActivationKey) -> AsyncSession:
        """As `SessionSystem.claim`."""
        return AsyncSession(await self._carry(SessionSystem.claim, key), self._bridge)

    async def view(self, key: ActivationKey, projection: Projection[V]) -> AsyncView[V]:
        """As `SessionSystem.view`."""
        return AsyncView(await self._carry(SessionSystem.view, key, projection), self._bridge)

    replay = paged(SessionSystem.replay)
    replay_superseded = paged(SessionSystem.replay_superseded)
    activations = paged(SessionSystem.activations, _LISTED_A_CALL)
    examine = paged(SessionSystem.examine)
    copy_to = paged(SessionSystem.copy_to)
    checkpoints = forwarded(SessionSystem.checkpoints)
    rewinds = forwarded(SessionSystem.rewinds)
    fork = forwarded(SessionSystem.fork)
    retire = forwarded(SessionSystem.retire)
    sweep = forwarded(SessionSystem.sweep)
    sweepable = forwarded(SessionSystem.sweepable)
    metrics = forwarded(SessionSystem.metrics)
    vacuum = forwarded(SessionSystem.vacuum)

    async def close(self) -> None:
        """Wait for the calls under way, then close as `SessionSystem.close`; for who cannot wait for the `async with`.

        It goes on to its end by itself where the task that awaits it is cancelled. Closing twice is no error.

        Raises:
            ForeignLoopError: the running loop is another one.
        """
        await self._bridge.close()
