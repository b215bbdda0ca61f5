"""A connection to the studio: it must come to ask, and there is always room for one more."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

__all__ = ["BACKLOG", "Connection", "room_for_connections"]

REQUEST_SECONDS = 10.0
"""How long the head of a request may take. Without a bound who sends nothing, or a letter a minute, stays for ever."""

BACKLOG = 128
"""How many connections are accepted at one go, before any of them or of the others can be closed."""

_OTHERS = 256 + BACKLOG
"""Descriptors that are not for connections: of the store, its readers and this process."""

_LEAST, _MOST = 64, 2048


def room_for_connections() -> int:
    """How many connections this process may have open, having asked for more where that is allowed.

    Without a bound of ours the system's is met in accept(), and then nobody gets in until somebody leaves.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST + _OTHERS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _MOST if soft == resource.RLIM_INFINITY else max(_LEAST, min(_MOST, soft - _OTHERS))


class Connection(H11Protocol):
    """One of at most `most`: where there are more, the one that has waited longest without asking has to go."""

    most = _LEAST

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self.since = self.loop.time()

    @property
    def asks(self) -> bool:
        """Whether a request of it is being answered."""
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for its first request, for a while."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.most:
            _make_room(self.connections, self.most)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request, for a while."""
        self._wait()
        super().on_response_complete()

    def leave(self) -> None:
        """Close it now, whatever was not sent yet."""
        self.transport.abort()

    def _wait(self) -> None:
        self._wait_no_more()
        self.since = self.loop.time()
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._overdue)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _overdue(self) -> None:
        if not self.asks:
            self.leave()


def _make_room(connections: Iterable[Any], most: int) -> None:
    staying: list[Connection] = [one for one in connections if not one.transport.is_closing()]
    if len(staying) > most:
        # Where all others are being answered it is the newest that leaves, which has not asked yet.
        min((one for one in staying if not one.asks), key=lambda one: one.since).leave()
