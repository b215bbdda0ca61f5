"""The session handle of asyncio programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from incarnate.actors.async_face import Face, forwarded
from incarnate.actors.async_lane import Lane
from incarnate.actors.session import Session, check_callback

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.async_bridge import Bridge
    from incarnate.domain.checkpoints import Seed
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent
    from incarnate.domain.keys import ActivationKey

__all__ = ["AsyncSession"]


class AsyncSession(Face[Session]):
    """One incarnation's handle on an activation, for the tasks of one event loop; see `Session` for each call.

    Calls are done one after the other, in the order in which they were made, whichever tasks make them.

    Where a task is cancelled while it awaits a call, a call that had begun goes on to its end and one that had not is
    left out; both leave the handle as it should be. `settle` waits until it is known which: `next_offset` then tells.
    """

    def __init__(self, session: Session, bridge: Bridge) -> None:
        """Use `AsyncSessionSystem.lease` or `claim`."""
        self._calls = Lane(bridge)
        super().__init__(session, bridge, self._calls)

    def __repr__(self) -> str:
        return f"<AsyncSession {self.key} incarnation {self.incarnation} at {self.next_offset}>"

    @property
    def key(self) -> ActivationKey:
        """The activation."""
        return self._core.key

    @property
    def incarnation(self) -> int:
        """The fencing token of this handle."""
        return self._core.incarnation

    @property
    def next_offset(self) -> int:
        """Where the next event goes, as of the last call that is done; `settle` waits for those under way."""
        return self._core.next_offset

    emit = forwarded(Session.emit)
    emit_many = forwarded(Session.emit_many)
    checkpoint = forwarded(Session.checkpoint)
    next_turn = forwarded(Session.next_turn)
    next_turn_id = forwarded(Session.next_turn_id)

    async def emit_soon(self, event: SessionEvent | Opaque) -> asyncio.Future[AppendedEvent]:
        """Append one event without waiting until it is durable: the future has the stored event then.

        This itself waits while 4,096 are in flight. Failures are as of `Session.emit_soon`.
        """
        return self._bridge.follow(await self._carry(Session.emit_soon, event))

    async def restore(self, checkpoint_id: str | None = None, *, rewind: bool = False) -> Seed:
        """As `Session.restore`. Where the awaiting task is cancelled, the handle stays where it was.

        Else the next write of whoever goes on with it would supersede events that nobody knows of.
        """
        places: list[Any] = []
        try:
            return await self._carry(_restore, checkpoint_id, rewind, places)
        except asyncio.CancelledError:
            self._calls.leave(_go_back, self._core, places)
            raise

    async def settle(self) -> None:
        """Wait until no call of this handle is under way, neither those of cancelled tasks nor what `emit_soon` sent.

        Raises:
            IncarnateError: what stopped `emit_soon`, or failed while nobody awaited it any more; told once.
        """
        await self._carry(Session.settle)
        unheard, self._calls.unheard = self._calls.unheard, None
        if unheard is not None:
            raise unheard

    async def on_fenced(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, on the loop, when a newer incarnation has taken over, in whatever process.

        It is called as by `loop.call_soon`: it must not block, and the loop's exception handler gets what it raises.

        Raises:
            MalformedCommandError: as `Session.on_fenced`.
        """
        check_callback(callback)
        await self._carry(Session.on_fenced, lambda: self._bridge.call_soon(callback))


def _restore(session: Session, checkpoint_id: str | None, rewind: bool, places: list[Any]) -> Seed:  # noqa: FBT001
    """Restore, and note where the handle stood before and stands now."""
    places.append(session._cursor)  # noqa: SLF001 - nobody else has a use for it
    seed = session.restore(checkpoint_id, rewind=rewind)
    places.append(session._cursor)  # noqa: SLF001
    return seed


def _go_back(session: Session, places: list[Any]) -> None:
    """Undo a restore that was done, unless the handle has moved since."""
    with session._lock:  # noqa: SLF001 - as above
        if session._cursor is places[-1]:  # noqa: SLF001
            session._cursor = places[0]  # noqa: SLF001
