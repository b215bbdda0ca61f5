"""No answer and no stream differs from the view that the library gives, whatever happens to log and connection."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incarnate import (
    ActivationKey,
    AppendMany,
    ClientFrames,
    ModelHistory,
    Opaque,
    SessionEvent,
    SessionSystem,
    StudioTranscript,
    encode_appended,
)
from incarnate.domain.codec import encode_json
from incarnate.studio import sources
from tests.support.projections import EVENTS
from tests.support.studio_app import App, Copy, Stream, address, running

KEY = ActivationKey("pik-1", "implement-task")
VIEWS: dict[str, tuple[Any, Callable[[Any], bytes]]] = {
    "studio": (StudioTranscript(), encode_json),
    "model": (ModelHistory(), lambda message: bytes(message.encode())),
    "frames": (ClientFrames(), encode_json),
}
NAMES = ("events", *VIEWS)

APPEND = st.lists(EVENTS, min_size=1, max_size=8)
REWIND = st.tuples(st.floats(0, 1), APPEND)
STEPS = st.lists(APPEND | REWIND | st.sampled_from(["break", "level", "restart"]), max_size=12)


class Writer:
    """The log that is looked at, written by a system of its own."""

    def __init__(self, url: str) -> None:
        self.system = SessionSystem.open(url)
        self.session = self.system.claim(KEY)

    def append(self, events: list[SessionEvent | Opaque]) -> None:
        self.session.emit_many(events)

    def rewind(self, share: float, events: list[SessionEvent | Opaque]) -> None:
        offset = round(share * self.session.next_offset)
        self.system.activation(KEY).ask(AppendMany(self.session.incarnation, offset, tuple(events)))
        self.session = self.system.lease(KEY, self.session.incarnation)

    @property
    def place(self) -> tuple[int, int]:
        [info] = self.system.activations()
        return info.head.generation, info.head.next_offset

    def items(self, view: str) -> list[Any]:
        if view == "events":
            return [json.loads(encode_appended(each)) for each in self.system.replay(KEY)]
        projection, encode = VIEWS[view]
        return [json.loads(encode(item)) for item in self.system.view(KEY, projection).get()]


def follow(app: App, view: str, copy: Copy) -> Stream:
    return app.stream(address(KEY, f"/changes?view={view}"), copy.headers)


def follow_as_a_page(app: App, view: str, copy: Copy) -> Stream:
    """By the one stream that carries the list too."""
    query = urlencode({"session": str(KEY), "view": view, "after": copy.id or ""})
    return app.stream(f"/api/changes?{query}")


async def catch_up(stream: Stream, copy: Copy, place: tuple[int, int]) -> None:
    while not copy.is_at(*place):
        event = await stream.next()
        if event.name != "sessions":
            copy.take(event._replace(id=(event.id or "").partition("/")[0]))


async def level(app: App, view: str, copy: Copy, place: tuple[int, int]) -> None:
    """Connect, and follow until the copy is level with the log; then the connection breaks."""
    async with follow(app, view, copy) as stream:
        await catch_up(stream, copy, place)


async def broken(app: App, view: str, copy: Copy, after: int) -> None:
    """Connect, and lose the connection after some changes, wherever in the middle that is."""
    async with follow(app, view, copy) as stream:
        for _ in range(after):
            try:
                copy.take(await asyncio.wait_for(stream.next(), 0.02))
            except TimeoutError:
                return


async def hold_pages_against(app: App, view: str, expected: list[Any]) -> None:
    page = await app.json(address(KEY, f"/messages?view={view}&limit=1000"))
    assert expected == page["items"]
    assert len(expected) == page["total"] == len(page["offsets"])
    some = await app.json(address(KEY, f"/messages?view={view}&from=3&limit=2"))
    assert expected[3:5] == some["items"]
    assert page["offsets"][3:5] == some["offsets"]


async def live_through(url: str, steps: list[Any], breaks: int) -> None:
    writer = Writer(url)
    copies, steady = {view: Copy() for view in NAMES}, {view: Copy() for view in NAMES}
    rest = list(steps)
    try:
        while True:
            async with running(url) as app:
                again = False
                async with AsyncExitStack() as stack:
                    streams = [
                        await stack.enter_async_context(follow_as_a_page(app, view, steady[view])) for view in NAMES
                    ]
                    while rest and not again:
                        again = await step(app, writer, copies, rest.pop(0), breaks)
                    for view, stream in zip(NAMES, streams, strict=True):
                        await catch_up(stream, steady[view], writer.place)
                for view, copy in copies.items():
                    await level(app, view, copy, writer.place)
                    expected = writer.items(view)
                    assert expected == copy.items
                    assert expected == steady[view].items
                    await hold_pages_against(app, view, expected)
            if not rest:
                return
    finally:
        writer.system.close()


async def step(app: App, writer: Writer, copies: dict[str, Copy], step: Any, breaks: int) -> bool:
    """One step; whether the server is restarted after it."""
    if step == "restart":
        return True
    if isinstance(step, tuple):
        writer.rewind(*step)
    elif isinstance(step, list):
        writer.append(step)
    elif step == "level":
        for view, copy in copies.items():
            await level(app, view, copy, writer.place)
    else:
        for view, copy in copies.items():
            await broken(app, view, copy, breaks)
    return False


@pytest.mark.parametrize("most", [2, 1000])
@settings(max_examples=40)
@given(steps=STEPS, breaks=st.integers(1, 4))
def test_every_copy_is_the_view_whatever_breaks(most: int, steps: list[Any], breaks: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        patch.setattr(sources, "_MOST_ITEMS", most)
        asyncio.run(live_through(f"sqlite:///{Path(folder)}/sessions.db?durability=process", steps, breaks))
