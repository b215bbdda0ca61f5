"""The last updated rows of the list, worked out once for all who follow it, and about once a second at most."""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.domain.codec import encode_json
from incarnate.studio.listing import Query

if TYPE_CHECKING:
    from incarnate.studio.hub import Hub
    from incarnate.studio.listing import Listing

__all__ = ["Roll", "Rows"]

PAUSE_SECONDS = 1.0
MOST_ROWS = 200
"""Of a page that shows more, those further down change where somebody scrolls to them."""

_ID_BYTES = 8


class Rows(NamedTuple):
    """Rows by their keys, whether there are more below them, of how many sessions, and the id of just these."""

    by_key: dict[str, Any]
    more: bool
    total: int
    id: str


class Roll:
    """Belongs to the event loop. With many sessions a look takes 10 ms and more, and each page follows the list."""

    def __init__(self, hub: Hub, listing: Listing) -> None:
        self._hub = hub
        self._listing = listing
        self._coming: asyncio.Task[Rows] | None = None
        self._looks: set[asyncio.Task[Rows]] = set()
        self._last: tuple[int, Rows] | None = None  # with the moves of the store that it was of
        self._next = 0.0

    async def known(self) -> Rows:
        """The rows as they were less than a second ago, if nothing was written since.

        Raises:
            Problem, IncarnateError: the store could not be read.
        """
        is_fresh = asyncio.get_running_loop().time() < self._next  # a session ceases to live without being written to
        if is_fresh and self._last is not None and self._last[0] == self._hub.moves:
            return self._last[1]
        return await self.rows()

    async def rows(self) -> Rows:
        """The rows as they are at some time after this was asked.

        Raises:
            Problem, IncarnateError: the store could not be read.
        """
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._look())
            self._looks.add(self._coming)
            self._coming.add_done_callback(self._looked)
        return await asyncio.shield(self._coming)  # others wait for it too

    async def _look(self) -> Rows:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._next - loop.time())
        self._next = loop.time() + PAUSE_SECONDS
        self._coming = None  # who asks from now on may ask of what this one does not see
        moves = self._hub.moves
        rows = await self._hub.in_thread(_rows_of, self._listing)
        self._last = moves, rows
        return rows

    def _looked(self, look: asyncio.Task[Rows]) -> None:
        self._looks.discard(look)
        if not look.cancelled():
            look.exception()  # whoever asked may have gone

    async def close(self) -> None:
        """Look no more."""
        looks = tuple(self._looks)
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)


def _rows_of(listing: Listing) -> Rows:
    page = listing.page(Query(limit=MOST_ROWS))
    rows = page["sessions"]
    told = blake2b(encode_json([rows, page["total"]]), digest_size=_ID_BYTES).hexdigest()
    return Rows({row["key"]: row for row in rows}, page["next"] is not None, page["total"], told)
