"""The rows of the list that changed, as server-sent events."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from incarnate.domain.codec import encode_json
from incarnate.domain.errors import IncarnateError
from incarnate.studio.listing import Query
from incarnate.studio.masking import mask_row
from incarnate.studio.problems import Problem, problem_of
from incarnate.studio.streams import HEARTBEAT, event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from incarnate.studio.hub import Hub
    from incarnate.studio.listing import Listing

__all__ = ["session_changes"]

_PAUSE_SECONDS = 1.0
_HEARTBEAT_SECONDS = 15.0
_MOST_ROWS = 200
"""Of a page that shows more, those further down change where somebody scrolls to them."""


async def session_changes(hub: Hub, listing: Listing) -> AsyncGenerator[bytes]:
    """The last updated rows, then those of them that change; about one event a second."""
    known: dict[str, Any] = {}
    while True:
        change = asyncio.ensure_future(hub.change())
        try:
            page = await hub.in_thread(listing.page, Query(limit=_MOST_ROWS))
            rows = [row for row in page["sessions"] if known.get(row["key"]) != row]
            gone = sorted(known.keys() - {row["key"] for row in page["sessions"]}) if page["next"] is None else []
            known = {row["key"]: row for row in page["sessions"]}
            if rows or gone:
                shown = list(map(mask_row, rows)) if hub.archive.mask else rows
                yield event("sessions", encode_json({"sessions": shown, "gone": gone, "total": page["total"]}))
        except (Problem, IncarnateError) as error:
            yield event("trouble", problem_of(error).encode())
        finally:
            await asyncio.sleep(_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEAT_SECONDS):
                await change
            continue
        yield HEARTBEAT
