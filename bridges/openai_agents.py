"""A session of the OpenAI Agents SDK over an activation: `Runner.run(agent, text, session=IncarnateSession(...))`.

Raises:
    MissingExtraError: at its import, where the SDK is not installed.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from incarnate.bridges.conversation import Conversation
from incarnate.bridges.in_order import InOrder
from incarnate.domain.errors import ClosedError, MissingExtraError
from incarnate.domain.keys import ActivationKey

try:
    from agents import TResponseInputItem
    from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit
except ImportError as error:
    raise MissingExtraError("openai-agents", "incarnate.bridges.openai_agents") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.system import SessionSystem

__all__ = ["IncarnateSession"]

T = TypeVar("T")


def _new_id() -> str:
    return str(uuid.uuid4())


class IncarnateSession:
    """The conversation of an agent, in the log of an activation: durable, fenced, and never doubled.

    It does what the SDK's own sessions do, and its items come back exactly as they went in. Its first call claims the
    activation, or leases it at `incarnation`; every other session of the same key, in whatever process, is then taken
    over. No call blocks the event loop; calls are done one at a time, in the order in which they were made.

    A write is durable when it returns, and all or nothing. What `pop_item` and `clear_session` take away stays in the
    archive of the log (`system.rewinds`). A cancelled call has its `CancelledError` when its outcome is certain, so
    `get_items` tells it.

    Every call may raise:
        StaleIncarnationError: a newer incarnation has taken over; stop this agent.
        HeadMovedError: somebody else wrote with the same incarnation; the next call goes on from there.
        OutcomeUnknownError: from what writes. The same call made next does not double it; after any other,
            `get_items` tells whether it happened.
        StoreBusyError, ClosedError, ForkedError: see each.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey | str,
        *,
        incarnation: int | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        new_id: Callable[[], str] = _new_id,
    ) -> None:
        """A session of `key`, which is not touched yet.

        Args:
            system: stays open as long as the session is used.
            key: an activation, or its text, as in `order-7/implement-task`.
            incarnation: lease that one; None claims the next free one.
            session_settings: the SDK's, such as how many items a run sees.
            new_id: ids of events, each one new.

        Raises:
            KeyFormatError: `key` names no activation.
        """
        self.key = ActivationKey.parse(key) if isinstance(key, str) else key
        self.session_id = str(self.key)
        self.session_settings = coerce_session_settings({} if session_settings is None else session_settings)
        self._conversation = Conversation(system.activation(self.key), incarnation, new_id)
        self._calls = InOrder()
        self._closed = False

    def __repr__(self) -> str:
        return f"<IncarnateSession {self.key} incarnation {self.incarnation}>"

    @property
    def incarnation(self) -> int | None:
        """The fencing token; None before the first call of a session that claims."""
        return self._conversation.incarnation

    async def claim(self) -> int:
        """Take the activation now, not at the first call; the incarnation."""
        return await self._run(self._conversation.take)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; the last `limit`, if it or the settings give one that is not negative."""
        limit = resolve_session_limit(limit, self.session_settings)
        return await self._run(functools.partial(self._conversation.items, limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none.

        Raises:
            UnencodableEventError: a value outside the encoding contract: `$[2].content[0]` is in the third item.
        """
        await self._run(functools.partial(self._conversation.add, tuple(items)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away and give it back; None where there is none."""
        return await self._run(self._conversation.pop)

    async def clear_session(self) -> None:
        """Take all items away, and with them the checkpoints above them."""
        await self._run(functools.partial(self._conversation.rewind, 0, "clear_session"))

    async def rewind_to(self, offset: int) -> None:
        """Take away what the log holds from `offset` on, such as what lies above a checkpoint (`seed.next_offset`).

        Raises:
            OffsetError: `offset` is below 0 or above the head.
        """
        await self._run(functools.partial(self._conversation.rewind, offset))

    def close(self) -> None:
        """Refuse every later call with `ClosedError`. The system stays open."""
        self._closed = True

    async def _run(self, call: Callable[[], T]) -> T:
        if self._closed:
            raise ClosedError(f"the session of {self.key} is closed")
        return await self._calls.run(call)
