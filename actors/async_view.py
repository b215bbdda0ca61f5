"""The view of asyncio programs."""

from __future__ import annotations

import asyncio
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from incarnate.actors.async_face import Face, forwarded
from incarnate.actors.async_signal import Signal
from incarnate.actors.changes import ChangeStream
from incarnate.actors.view import View, Woken
from incarnate.domain.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from incarnate.actors.async_bridge import Bridge
    from incarnate.actors.projector import ViewState
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Change

__all__ = ["AsyncView"]

V = TypeVar("V")

_CHANGES_A_CALL = 256


class AsyncView(Face[View[V]], Generic[V]):
    """What a projection makes of an activation's log, for the tasks of one event loop; see `View`.

    `AsyncSessionSystem.view` gives it. Waiting for it holds no thread.
    """

    def __init__(self, view: View[V], bridge: Bridge) -> None:
        """Use `AsyncSessionSystem.view`."""
        super().__init__(view, bridge)

    @property
    def key(self) -> ActivationKey:
        """The activation."""
        return self._core.key

    @property
    def name(self) -> str:
        """The projection's name."""
        return self._core.name

    diagnostics = forwarded(View.diagnostics)
    subscribe = forwarded(View.subscribe)
    unsubscribe = forwarded(View.unsubscribe)

    async def get(self, at_least: tuple[int, int] | None = None, timeout: float | None = None) -> V:  # noqa: ASYNC109 - as the core's
        """As `View.get`."""
        state = await self._carry(View.state)
        if at_least is not None and state[:2] < tuple(at_least):
            state = await self._wait(at_least, timeout)
        return cast("V", state.value)

    async def _wait(self, at_least: tuple[int, int], timeout: float | None) -> ViewState:  # noqa: ASYNC109
        signal = Signal(self._bridge)
        follower = Woken(signal.set)
        try:
            async with asyncio.timeout(timeout):
                await self._carry(View.follow, follower)
                while True:
                    signal.clear()
                    state = await self._carry(View.state)
                    if state[:2] >= tuple(at_least):
                        return state
                    self._core.check_open()  # woken by the end of the view, nothing more would come
                    await signal.wait()
        except TimeoutError:
            state = await self._carry(View.state)
            raise self._core.behind(state, at_least, timeout) from None
        finally:
            self._bridge.leave(self._core.unfollow, follower)

    async def changes(self) -> AsyncGenerator[Change]:
        """Iterate the changes from now on. The first holds the view as it is; see `ChangeStream`.

        Waiting for one holds no thread. Who leaves before the end may close it (`contextlib.aclosing`); else the loop
        does so when nobody has it any more. A task that is cancelled while it waits ends the iteration.
        """
        signal = Signal(self._bridge)
        stream = ChangeStream(self._core.follow, self._core.unfollow, _Condition(signal))
        try:
            while not stream.closed:
                signal.clear()
                changes = await self._carry(_taken, stream)
                for change in changes:
                    yield change
                if not changes:
                    await signal.wait()
        except ClosedError:
            return  # as `ChangeStream` ends
        finally:
            self._bridge.leave(stream.close)


def _taken(_view: View[Any], stream: ChangeStream) -> list[Change]:
    """The changes that wait in `stream`, or the whole view where there is nothing else to go on from."""
    return list(islice(iter(lambda: stream.next(0), None), _CHANGES_A_CALL))


class _Condition:
    """What a stream waits on: nobody ever waits in it, since a task of the loop is woken instead."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._lock = threading.Lock()

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as of any condition
        return False

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:  # noqa: ARG002
        return predicate()

    def notify(self, n: int = 1) -> None:  # noqa: ARG002
        self._signal.set()

    def notify_all(self) -> None:
        self._signal.set()

    def __enter__(self) -> object:
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
