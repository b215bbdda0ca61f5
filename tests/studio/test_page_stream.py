"""All that a page follows comes by one stream, and each part of it goes on from where it broke."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from incarnate import ActivationKey, SessionSystem, UserMessage
from incarnate.studio import roll, sessions_stream
from incarnate.studio.listing import Listing, Query
from tests.support.loops import on_a_loop
from tests.support.studio_app import App, Copy, Event, Stream, running

KEY = ActivationKey("pik-1", "implement-task")
OTHER = ActivationKey("pik-1", "review")


class Page:
    """What a page holds: the events of a session, and the list."""

    def __init__(self) -> None:
        self.copy = Copy()
        self.rows: dict[str, Any] = {}
        self.id: str | None = None
        self.names: list[str] = []

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.id is None else {"Last-Event-ID": self.id}

    @property
    def texts(self) -> list[str]:
        return [item["text"] for item in self.copy.items]

    def take(self, event: Event) -> None:
        self.names.append(event.name)
        if event.id is not None:
            assert event.data["id"] in event.id.split("/")
            self.id = event.id
        if event.name == "change":
            self.copy.take(event._replace(id=event.data["id"]))
        elif event.name == "sessions":
            kept = {} if event.data.get("whole") else self.rows
            self.rows = {key: row for key, row in kept.items() if key not in event.data["gone"]}
            self.rows |= {row["key"]: row for row in event.data["sessions"]}
            assert event.data["total"] == len(self.rows)

    async def take_until(self, stream: Stream, *names: str) -> None:
        """Take events in until there was one of each of these names."""
        before = len(self.names)
        while not set(names) <= set(self.names[before:]):
            self.take(await stream.next())


def write(system: SessionSystem, text: str, key: ActivationKey = KEY) -> None:
    system.claim(key).emit(UserMessage(id="e", parent_id=None, text=text))


@asynccontextmanager
async def following(app: App, page: Page, key: ActivationKey = KEY, **asked: str) -> AsyncGenerator[Stream]:
    query = urlencode({"session": str(key), "view": "events", **asked})
    async with app.stream(f"/api/changes?{query}", page.headers) as stream:
        assert 200 == stream.status
        yield stream


@pytest.fixture
def url(swift_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(roll, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(sessions_stream, "_WAIT_SECONDS", 0.001)
    return f"sqlite:///{swift_path}/sessions.db"


@pytest.fixture
def system(url: str) -> Iterator[SessionSystem]:
    with SessionSystem.open(url) as system:
        write(system, "one")
        yield system


@on_a_loop
async def follow_both(url: str, system: SessionSystem) -> None:
    page = Page()
    async with running(url) as app, following(app, page) as stream:
        await page.take_until(stream, "change", "sessions")
        write(system, "two")
        await page.take_until(stream, "change", "sessions")
        while page.rows[str(KEY)]["lastEvent"]["summary"] != "two":
            page.take(await stream.next())
        assert ["one", "two"] == page.texts
        assert {str(KEY)} == page.rows.keys()


def test_the_events_of_a_session_and_the_rows_of_the_list_come_by_one_stream(url: str, system: SessionSystem) -> None:
    follow_both(url, system)


@on_a_loop
async def come_back(url: str, system: SessionSystem) -> None:
    page = Page()
    async with running(url) as app, following(app, page) as stream:
        await page.take_until(stream, "change", "sessions")
    write(system, "two")
    async with running(url) as app:  # another server: it knows nobody
        async with following(app, page) as stream:
            await page.take_until(stream, "change", "sessions")
        assert ["one", "two"] == page.texts
        before = len(page.names)
        async with following(app, page) as stream:
            write(system, "three", OTHER)
            while str(OTHER) not in page.rows:
                page.take(await stream.next())
        assert {"sessions"} == set(page.names[before:])
        assert {str(KEY), str(OTHER)} == page.rows.keys()


def test_a_stream_that_broke_goes_on_with_both_and_says_nothing_twice(url: str, system: SessionSystem) -> None:
    come_back(url, system)


@on_a_loop
async def come_back_to_the_list(url: str, system: SessionSystem) -> None:
    async with running(url) as app:
        async with app.stream("/api/sessions/changes") as stream:
            first = await stream.next()
            while any(row["tokens"] is None for row in first.data["sessions"]):  # they are still counted
                first = await stream.next()
        assert first.id == first.data["id"]
        async with app.stream("/api/sessions/changes", {"Last-Event-ID": first.id or ""}) as stream:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stream.next(), 0.1)  # it has all that there is
            write(system, "new", OTHER)
            news = await stream.next()
    assert "whole" not in news.data
    assert [str(OTHER)] == [row["key"] for row in news.data["sessions"]]


def test_the_list_by_itself_goes_on_from_its_last_id(url: str, system: SessionSystem) -> None:
    come_back_to_the_list(url, system)


@on_a_loop
async def begin_from_ids(url: str, system: SessionSystem) -> None:
    page = Page()
    async with running(url) as app:
        async with following(app, page) as stream:
            await page.take_until(stream, "change", "sessions")
        session, _, sessions = (page.id or "").partition("/")
        page.id = None
        write(system, "two")
        async with following(app, page, after=session, list=sessions) as stream:
            await page.take_until(stream, "change", "sessions")
    assert ["one", "two"] == page.texts
    assert 1 == page.names[2:].count("change")


def test_another_stream_goes_on_from_the_ids_that_its_address_names(url: str, system: SessionSystem) -> None:
    begin_from_ids(url, system)


def sweep(system: SessionSystem, key: ActivationKey) -> None:
    system.retire(key)
    system.sweep(timedelta(seconds=-1))


def write_later(system: SessionSystem, text: str, key: ActivationKey) -> None:
    """Write in another millisecond: a row's place is its time."""
    before = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= before + 1:
        pass
    write(system, text, key)


@on_a_loop
async def lose_the_session(url: str, system: SessionSystem) -> None:
    write(system, "hi", OTHER)
    page = Page()
    async with running(url) as app:
        async with following(app, page) as stream:
            await page.take_until(stream, "change", "sessions")
            sweep(system, KEY)
            await page.take_until(stream, "gone")
            while page.rows.keys() != {str(OTHER)}:
                page.take(await stream.next())
            write(system, "the list goes on", OTHER)
            await page.take_until(stream, "sessions")
        assert {str(OTHER)} == page.rows.keys()


def test_a_session_that_is_gone_leaves_the_list_alone(url: str, system: SessionSystem) -> None:
    lose_the_session(url, system)


@on_a_loop
async def be_away(url: str, system: SessionSystem) -> None:
    write(system, "hi", OTHER)
    page = Page()
    async with running(url) as app:
        async with following(app, page) as stream:
            await page.take_until(stream, "change", "sessions")
        sweep(system, OTHER)
        async with following(app, page) as stream:
            await page.take_until(stream, "sessions")
        assert {str(KEY)} == page.rows.keys()
        sweep(system, KEY)
        async with following(app, page) as stream:
            await page.take_until(stream, "gone", "sessions")
        assert {} == page.rows


def test_what_was_swept_while_the_stream_was_broken_is_told(url: str, system: SessionSystem) -> None:
    be_away(url, system)


def test_of_many_sessions_it_is_told_which_are_gone_and_which_only_stand_further_down(
    url: str, system: SessionSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roll, "MOST_ROWS", 2)
    see_some_go(url, system)


@on_a_loop
async def see_some_go(url: str, system: SessionSystem) -> None:
    keys = [ActivationKey("many", str(number)) for number in range(4)]
    for key in keys:
        write_later(system, "hi", key)
    async with running(url) as app, app.stream("/api/sessions/changes") as stream:
        assert {str(keys[3]), str(keys[2])} == {row["key"] for row in (await stream.next()).data["sessions"]}
        sweep(system, keys[3])
        event = await stream.next()
        while not event.data["gone"]:
            event = await stream.next()
        assert [str(keys[3])] == event.data["gone"]
        write_later(system, "again", KEY)
        event = await stream.next()
        while str(KEY) not in {row["key"] for row in event.data["sessions"]}:
            event = await stream.next()
        assert [] == event.data["gone"]


@on_a_loop
async def follow_together(url: str, system: SessionSystem, looks: list[int]) -> None:
    async with running(url) as app, AsyncExitStack() as stack:
        pages = [Page() for _ in range(20)]
        streams = [await stack.enter_async_context(following(app, page)) for page in pages]
        for page, stream in zip(pages, streams, strict=True):
            await page.take_until(stream, "change", "sessions")
        before = len(looks)
        write(system, "two")
        for page, stream in zip(pages, streams, strict=True):
            while page.rows[str(KEY)]["lastEvent"]["summary"] != "two":
                page.take(await stream.next())
        assert len(looks) - before < len(pages) / 2


def test_the_list_is_worked_out_once_for_all_who_follow_it(
    url: str, system: SessionSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    page_of = Listing.page

    def look(listing: Listing, query: Query) -> dict[str, Any]:
        looks.append(1)
        return page_of(listing, query)

    monkeypatch.setattr(roll, "PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(Listing, "page", look)
    follow_together(url, system, looks)


@on_a_loop
async def be_damaged(url: str, system: SessionSystem) -> None:
    write(system, "two")
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db, db:
        db.execute("UPDATE event SET payload = x'7b' WHERE offset = 0")
    page = Page()
    async with running(url) as app, following(app, page) as stream:
        await page.take_until(stream, "trouble", "sessions")
    assert "list-trouble" not in page.names
    assert "two" == page.rows[str(KEY)]["lastEvent"]["summary"]


def test_a_session_that_is_damaged_troubles_the_list_not_at_all(url: str, system: SessionSystem) -> None:
    be_damaged(url, system)


def moved(store: str, elsewhere: str) -> None:
    Path(store).rename(elsewhere)


@on_a_loop
async def lose_the_store(url: str, system: SessionSystem) -> None:
    system.close()
    store = url.removeprefix("sqlite:///")
    page = Page()
    async with running(url) as app, following(app, page) as stream:
        await page.take_until(stream, "change", "sessions")
        moved(store, f"{store}.away")
        await page.take_until(stream, "trouble", "list-trouble")
        moved(f"{store}.away", store)
        with SessionSystem.open(url) as again:
            write(again, "two")
        await page.take_until(stream, "change", "sessions")
    assert ["one", "two"] == page.texts


def test_a_store_that_is_away_troubles_both_until_it_is_back(url: str, system: SessionSystem) -> None:
    lose_the_store(url, system)


@pytest.mark.parametrize("asked", ["view=other", "sesion=a", "session=a", "after=" + "x" * 200])
@pytest.mark.usefixtures("system")
def test_what_cannot_be_followed_is_refused(url: str, asked: str) -> None:
    refuse(url, asked)


@on_a_loop
async def refuse(url: str, asked: str) -> None:
    async with running(url) as app:
        assert (await app.get(f"/api/changes?{asked}")).status_code in {400, 404}


@on_a_loop
async def let_go(url: str) -> None:
    async with running(url) as app:
        before = asyncio.all_tasks()
        async with following(app, Page()) as stream:
            await stream.next()
            assert 1 == app.studio.hub.followers
        assert 0 == app.studio.hub.followers
        left = asyncio.all_tasks() - before
        assert not left or not (await asyncio.wait(left, timeout=10))[1]


@pytest.mark.usefixtures("system")
def test_who_leaves_leaves_nothing_behind(url: str) -> None:
    let_go(url)
