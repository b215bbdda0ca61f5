"""Server-sent events: the changes of a view, and those of the list."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.studio.problems import problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from incarnate.studio.channels import Channel
    from incarnate.studio.hub import Hub
    from incarnate.studio.places import Position

__all__ = ["EventStream", "Told", "changes"]

_LAST_SECONDS = 0.5
_OPENING = b"retry: 1000\n\n"
_HEARTBEAT = b": still here\n\n"


class Told(NamedTuple):
    """One event: its name, its JSON, and the id that a broken connection goes on from."""

    name: str
    data: bytes
    id: str | None = None

    def encode(self) -> bytes:
        """The event as it is sent; JSON holds no line feed."""
        place = b"" if self.id is None else b"id: %b\n" % self.id.encode()
        return b"event: %b\n%bdata: %b\n\n" % (self.name.encode(), place, self.data)


async def changes(channel: Channel, held: Position) -> AsyncGenerator[Told | None]:
    """What follows on what is held, for ever, and None where nothing does for long; it ends with the session."""
    channel.followers += 1
    try:
        while True:
            try:
                step = await channel.after(held)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the stream goes on
                problem = problem_of(error)
                if problem.status == 404:  # noqa: PLR2004 - it was swept
                    yield Told("gone", problem.encode())
                    return
                yield Told("trouble", problem.encode())
                await channel.moved()  # a store that is busy or away comes back with a change
                continue
            if step is None:
                yield None
            else:
                held = step.position
                yield Told("change", step.data, str(held))
    finally:
        channel.followers -= 1


class EventStream:
    """An answer that goes on: `parts` as they come, and a heartbeat where none comes for long.

    Written against the protocol itself: with 200 streams what a framework does for each part cost twice as much.
    """

    def __init__(self, hub: Hub, parts: AsyncGenerator[Told | None], headers: list[tuple[bytes, bytes]]) -> None:
        self._hub = hub
        self._parts = parts
        self._headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"x-accel-buffering", b"no"),
            *headers,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client has gone or the server ends; nothing where only the head was asked for."""
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            await self._parts.aclose()
            return
        async with self._hub.following():
            writer = asyncio.ensure_future(self._write(send))
            ends: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(_gone(receive)),
                asyncio.ensure_future(self._hub.closing.wait()),
                writer,
            ]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if writer.done():
                    writer.result()
            finally:
                for task in ends:
                    task.cancel()
                await asyncio.gather(*ends, return_exceptions=True)
                await self._parts.aclose()
        with suppress(TimeoutError):  # who does not read is not waited for
            async with asyncio.timeout(_LAST_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": _OPENING, "more_body": True})
        async for part in self._parts:
            data = _HEARTBEAT if part is None else part.encode()
            await send({"type": "http.response.body", "body": data, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
