"""All that one page follows, as one stream: a browser has six connections to a server, for all of its windows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from incarnate.studio.streams import Told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    Events = AsyncGenerator[Told | None]

__all__ = ["Held", "page_changes"]

_BETWEEN = "/"
"""The ids of the two, which hold none."""

_END = Told("", b"")


class Held(NamedTuple):
    """What a page has: the id of its view of a session, and that of its list; empty: nothing yet."""

    session: str = ""
    sessions: str = ""

    def __str__(self) -> str:
        return f"{self.session}{_BETWEEN}{self.sessions}"

    @classmethod
    def parse(cls, text: str) -> Held:
        """The ids in the id of an event."""
        session, _, sessions = text.partition(_BETWEEN)
        return cls(session, sessions)


async def page_changes(session: Events | None, sessions: Events, held: Held) -> AsyncGenerator[Told | None]:
    """The events of both as they come; each carries the ids of both, so that a broken connection resumes both.

    The list's troubles are `list-trouble`: one session may be damaged where the others are well.
    """
    parts = [part for part in (session, sessions) if part is not None]
    coming = {asyncio.ensure_future(_next(part)): part for part in parts}
    try:
        while coming:
            done, _ = await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                part = coming.pop(future)
                told = future.result()
                if told is _END:
                    continue  # the session is gone; the list goes on
                held, told = _of_both(held, told, is_list=part is sessions)
                yield told
                # Asked for only once the last one was sent: nothing is queued for a page that does not read.
                coming[asyncio.ensure_future(_next(part))] = part
    finally:
        for future in coming:
            future.cancel()
        await asyncio.gather(*coming, return_exceptions=True)
        for part in parts:
            await part.aclose()


async def _next(part: Events) -> Told | None:
    # Not anext() with its default: what that gives is no coroutine, and as a task ends in a SystemError (Python 3.11).
    try:
        return await part.__anext__()
    except StopAsyncIteration:
        return _END


def _of_both(held: Held, told: Told | None, *, is_list: bool) -> tuple[Held, Told | None]:
    if told is None:
        return held, None
    if told.id is not None:
        held = held._replace(sessions=told.id) if is_list else held._replace(session=told.id)
        return held, told._replace(id=str(held))
    return held, told._replace(name="list-trouble") if is_list else told
