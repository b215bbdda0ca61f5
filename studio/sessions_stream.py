"""The rows of the list that changed, as server-sent events."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from incarnate.domain.codec import encode_json
from incarnate.studio.masking import mask_row
from incarnate.studio.problems import problem_of
from incarnate.studio.streams import Told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from incarnate.studio.hub import Hub
    from incarnate.studio.roll import Roll, Rows

__all__ = ["session_changes"]

_HEARTBEAT_SECONDS = 15.0
_WAIT_SECONDS = 1.0  # after trouble


async def session_changes(hub: Hub, roll: Roll, held: str = "") -> AsyncGenerator[Told | None]:
    """The last updated rows, then those of them that change; about one event a second, None where none comes for long.

    `held` is the id of the rows that a follower has: it gets none of them again as long as they are the same ones, and
    else all of them, since the server remembers no follower.
    """
    known: Rows | None = None
    while True:
        change = asyncio.ensure_future(hub.change())
        try:
            try:
                rows = await (roll.known() if known is None else roll.rows())
                told = _news(known, rows, held)
                known = rows
                if told is not None:
                    yield Told("sessions", _encoded(told, rows, mask=hub.archive.mask), rows.id)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the stream goes on
                yield Told("trouble", problem_of(error).encode())
                await asyncio.sleep(_WAIT_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await change
                continue
        finally:
            change.cancel()
        yield None


def _news(known: Rows | None, now: Rows, held: str) -> dict[str, Any] | None:
    """What an event says beside its id and the total; None: there is none to send."""
    if known is None:
        # Whoever was away may show sessions that were swept meanwhile: what is not among these is no more.
        whole = {"sessions": list(now.by_key.values()), "gone": [], "whole": True, "more": now.more}
        return None if now.id == held else whole
    if known.id == now.id:
        return None
    rows = [row for key, row in now.by_key.items() if known.by_key.get(key) != row]
    return {"sessions": rows, "gone": _gone(known, now)}


def _gone(known: Rows, now: Rows) -> list[str]:
    """The keys of those that are not there any more. A row that is written to moves up, and never down by itself."""
    lowest = min((row["updatedAt"] for row in now.by_key.values()), default="") if now.more else ""
    missing = known.by_key.keys() - now.by_key.keys()
    return sorted(key for key in missing if known.by_key[key]["updatedAt"] > lowest)


def _encoded(told: dict[str, Any], rows: Rows, *, mask: bool) -> bytes:
    shown = list(map(mask_row, told["sessions"])) if mask else told["sessions"]
    return encode_json(told | {"sessions": shown, "total": rows.total, "id": rows.id})
