"""The studio's application driven in this process, without a socket: its answers, and its streams event by event."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx

from incarnate import ActivationKey, apply_change
from incarnate.domain.projections.base import Change
from incarnate.studio.app import Studio
from incarnate.studio.archive import Archive
from incarnate.studio.guard import Guard
from incarnate.studio.hub import Pace
from incarnate.studio.listing import Listing

__all__ = ["App", "Copy", "Event", "Stream", "address", "running"]

SWIFT = Pace(0.002, 0)
HOST = "127.0.0.1"


def address(key: ActivationKey, rest: str = "") -> str:
    """The address of a session, and what is below it."""
    return f"/api/sessions/{quote(str(key), safe='')}{rest}"


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    id: str | None
    data: Any


class Stream:
    """A stream that is read; whoever leaves its block has gone."""

    def __init__(self, app: Studio, path: str, headers: Mapping[str, str]) -> None:
        raw, _, query = path.partition("?")
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", HOST.encode()), *((k.lower().encode(), v.encode()) for k, v in headers.items())],
        }
        self._app = app
        self._sent: asyncio.Queue[Any] = asyncio.Queue(1)
        self._gone = asyncio.Event()
        self._rest = b""
        self.status = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        started = await self._sent.get()
        self.status = started["status"]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._gone.set()
        while not self._task.done():
            await asyncio.wait([self._task], timeout=0.01)
            while not self._sent.empty():
                self._sent.get_nowait()
        self._task.result()

    async def _run(self) -> None:
        await self._app(self._scope, self._receive, self._sent.put)

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> Event:
        """The next event."""
        while True:
            block = await self._block()
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
            if "event" in fields:
                return Event(fields["event"], fields.get("id"), json.loads(fields["data"]))

    async def _block(self) -> str:
        while b"\n\n" not in self._rest:
            message = await self._sent.get()
            assert message.get("more_body", False), "the stream has ended"
            self._rest += message["body"]
        block, _, self._rest = self._rest.partition(b"\n\n")
        return block.decode()


class Copy:
    """What a page holds of a view: changed as the stream says, and gone on with from its last id."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.offsets: list[int] = []
        self.id: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What a browser sends when it comes back."""
        return {} if self.id is None else {"Last-Event-ID": self.id}

    def take(self, event: Event) -> None:
        """Apply a change."""
        assert "change" == event.name, event
        data = event.data
        replaced = [(index, item) for index, item, _ in data["replaced"]]
        apply_change(self.items, Change(data["generation"], data["keep"], tuple(data["items"]), tuple(replaced)))
        apply_change(self.offsets, Change(0, data["keep"], tuple(data["offsets"])))
        for index, _, offset in data["replaced"]:
            self.offsets[index] = offset
        assert data["total"] == len(self.items)
        assert event.id == data["id"]
        self.id = event.id

    def is_at(self, generation: int, next_offset: int) -> bool:
        """Whether it is level with a log that stands there."""
        return (self.id or "").split(".")[:2] == [str(generation), str(next_offset)]


class App:
    """A studio that runs."""

    def __init__(self, studio: Studio, client: httpx.AsyncClient) -> None:
        self.studio = studio
        self.client = client

    async def get(self, path: str, **named: Any) -> httpx.Response:
        return await self.client.get(path, **named)

    async def json(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert 200 == answer.status_code, answer.text
        return answer.json()

    def stream(self, path: str, headers: Mapping[str, str] | None = None) -> Stream:
        return Stream(self.studio, path, headers or {})


@asynccontextmanager
async def running(
    url: str, *, mask: bool = False, token: str | None = None, pace: Pace = SWIFT, **named: Any
) -> AsyncGenerator[App]:
    """A studio over the store that `url` names."""
    archive = Archive(url, mask=mask)
    listing = Listing(archive)
    studio = Studio(archive, listing, Guard((), token), pace=pace, **named)
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(studio({"type": "lifespan"}, told.get, sent.put))
    await told.put({"type": "lifespan.startup"})
    await sent.get()
    try:
        transport = httpx.ASGITransport(studio)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            yield App(studio, client)
    finally:
        await told.put({"type": "lifespan.shutdown"})
        await life
        listing.close()
        archive.close()
