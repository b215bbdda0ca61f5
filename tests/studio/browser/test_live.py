"""The page is the view: live, rewound, cut off, and after the server came back."""

import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from incarnate import ActivationKey, AssistantMessage, SessionSystem
from tests.support.projections import EVENTS
from tests.support.studio_browser import Log, Watched, said
from tests.support.studio_process import CutLine, StudioProcess
from tests.support.waiting import soon

RECORDING = Path(__file__).parents[3] / "fixtures/recordings/claude/S2/stdout.jsonl"
TURN = """how => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => how === "hidden" });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
HIGH: ViewportSize = {"width": 1280, "height": 9000}


def test_a_session_that_another_process_ingests_appears_within_a_second(watched: Watched, store: str, log: Log) -> None:
    page = watched.watch(log.key, at=None)
    line = [sys.executable, "-m", "incarnate", "ingest", "--harness", "claude-code", "--key", str(log.key)]
    took: list[float] = []
    with subprocess.Popen([*line, "--store", store, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ingesting:
        assert ingesting.stdin is not None
        for record in RECORDING.read_bytes().splitlines(keepends=True):
            ingesting.stdin.write(record)
            ingesting.stdin.flush()
            took += seconds_until_shown(page, log, patience=0.3 if took else 20)
        ingesting.communicate()

    expect(page.locator("article")).to_have_count(len(log.events()))
    assert len(took) > 3
    assert statistics.median(took) < 1, took


def seconds_until_shown(page: Page, log: Log, patience: float) -> list[float]:
    """How long after the store held another event the page did; nothing for a record that makes no event."""
    before = log.size
    if not soon(lambda: log.grown() > before, patience):
        return []
    begin = time.monotonic()
    page.wait_for_selector(f"article[data-offset='{before}']", timeout=20_000)
    return [time.monotonic() - begin]


def test_a_rewind_replaces_the_tail(watched: Watched, log: Log) -> None:
    log.append(said("one", "two", "three", "four"))
    page = watched.watch(log.key)
    expect(page.get_by_role("feed").get_by_text("four")).to_be_visible()

    log.append(said("another two"), at=1)

    expect(page.get_by_role("feed").get_by_text("another two")).to_be_visible()
    expect(page.locator("article .body")).to_have_text(["Promptone", "Promptanother two"])
    expect(page.locator("#notes")).to_have_text("Rewound: 3 events superseded")


def test_follow_keeps_the_end_in_sight_and_lets_go_when_the_reader_scrolls(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(60)]))
    page = watched.watch(log.key, at=None)
    expect(page.get_by_text("line 59", exact=True)).to_be_in_viewport()

    log.append(said("line 60"))
    expect(page.get_by_text("line 60", exact=True)).to_be_in_viewport()
    page.mouse.move(800, 600)
    page.mouse.wheel(0, -1200)
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    log.append(said("line 61"))

    expect(page.get_by_role("button", name="1 new event")).to_be_visible()
    expect(page.get_by_text("line 61", exact=True)).not_to_be_in_viewport()


def test_a_search_lets_go_of_the_end_and_says_so(watched: Watched, log: Log) -> None:
    log.append(said("needle", *[f"line {number}" for number in range(60)]))
    page = watched.watch(log.key, at=None)
    follow = page.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("/")
    page.keyboard.type("needle")
    page.keyboard.press("Enter")

    expect(page.get_by_text("needle", exact=True)).to_be_in_viewport()
    expect(follow).to_have_attribute("aria-pressed", "false")
    log.append(said("news"))
    expect(page.get_by_role("button", name="1 new event")).to_be_visible()
    expect(page.get_by_text("needle", exact=True)).to_be_in_viewport()


def test_what_is_followed_under_a_filter_is_the_end_of_what_it_lets_through(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(60)]))
    page = watched.watch(log.key, at=None)
    page.get_by_role("button", name="Prompts").click()
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")
    log.append([AssistantMessage(id="a", parent_id=None, text="an answer"), *said("a prompt")])
    expect(page.get_by_text("a prompt", exact=True)).to_be_in_viewport()
    expect(page.get_by_text("an answer", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Prompts").click()
    expect(page.get_by_text("an answer", exact=True)).to_be_in_viewport()

    log.append(said("the end"))
    expect(page.get_by_text("the end", exact=True)).to_be_in_viewport()


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("server")
def test_after_a_restart_of_the_server_the_page_equals_the_view(
    chromium: Browser, system: SessionSystem, store: str
) -> None:
    log = Log(system, ActivationKey("restarted", "server"))
    log.append(said("one", "two", "three"))
    context = chromium.new_context(viewport=HIGH)
    with StudioProcess(store) as server:
        watched = Watched(context, server.url)
        page = watched.watch(log.key)
        watched.show_raw()
        server.stop()
        log.append(said("written while it was down"), at=2)
        log.append([AssistantMessage(id="a", parent_id=None, text="and more")])
        expect(page.get_by_text("reconnecting")).to_be_visible()
        server.start()

        assert watched.shows(log)
        log.append(said("and it goes on"))
        assert watched.shows(log)
        assert [] == watched.asked
    context.close()


def test_a_page_behind_another_lets_its_stream_go_and_comes_level_when_it_is_seen(watched: Watched, log: Log) -> None:
    log.append(said("before"))
    page = watched.watch(log.key)
    expect(page.locator(".connection")).to_have_text("connected")
    with page.expect_event("requestfailed", lambda request: "/api/changes?session=" in request.url):
        page.evaluate(TURN, "hidden")
    log.append(said("meanwhile"))
    page.evaluate(TURN, "seen")

    expect(page.locator("article .body")).to_have_text(["Promptbefore", "Promptmeanwhile"])


def opened(context: BrowserContext, server: StudioProcess, log: Log, pages: int) -> list[Watched]:
    """Windows of one browser that are all looked at."""
    windows = [Watched(context, server.url) for _ in range(pages)]
    for window in windows:
        expect(window.watch(log.key).locator(".connection")).to_have_text("connected")
    return windows


@pytest.mark.timeout(180)
def test_five_windows_of_one_browser_are_live_at_once(context: BrowserContext, server: StudioProcess, log: Log) -> None:
    log.append(said("before"))
    windows = opened(context, server, log, 5)
    log.append(said("news"))
    for window in windows:
        expect(window.page.get_by_role("feed").get_by_text("news")).to_be_visible()
        expect(window.page.locator(".session-row", has_text=str(log.key))).to_contain_text("news")
    for window in windows:  # each has questions besides
        window.page.get_by_role("tab", name="History").click()
        expect(window.page.get_by_role("heading", name="Incarnations")).to_be_visible()
    assert [([], [])] * 5 == [(window.asked, window.complaints) for window in windows]


@pytest.mark.timeout(180)
def test_however_many_windows_there_are_none_of_them_stalls(
    context: BrowserContext, server: StudioProcess, log: Log
) -> None:
    log.append(said("before"))
    windows = opened(context, server, log, 7)
    log.append(said("news"))
    for window in windows:
        expect(window.page.get_by_role("feed").get_by_text("news")).to_be_visible()
    for window in windows[:2]:
        window.page.close()
    last = windows[-1].page
    last.wait_for_function("async () => (await navigator.locks.query()).pending.length === 0")
    log.append(said("more"))
    expect(last.get_by_role("feed").get_by_text("more")).to_be_visible()
    streams = streams_of(last)
    log.append(said("and more"))
    expect(last.get_by_role("feed").get_by_text("and more")).to_be_visible()
    assert [] == streams  # it has a place of its own by now, and keeps its stream


def streams_of(page: Page) -> list[str]:
    """The addresses of the streams that a page begins from now on."""
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/api/changes" in request.url else None)
    return streams


def test_after_a_broken_connection_the_page_equals_the_view(
    chromium: Browser, server: StudioProcess, system: SessionSystem
) -> None:
    log = Log(system, ActivationKey("broken", "connection"))
    log.append(said("one", "two", "three"))
    context = chromium.new_context(viewport=HIGH)
    with CutLine(server.port) as line:
        watched = Watched(context, line.url)
        page = watched.watch(log.key)
        watched.show_raw()
        line.cut()
        log.append(said("written while it was cut"), at=1)
        expect(page.get_by_text("reconnecting")).to_be_visible()
        log.append(said("more", "and more"))
        line.mend()

        assert watched.shows(log)
        line.cut()
        line.mend()
        log.append(said("again"))
        assert watched.shows(log)
        context.close()


STEPS = st.lists(
    st.tuples(st.floats(0, 1), st.booleans(), st.lists(EVENTS, min_size=1, max_size=5)), min_size=1, max_size=5
)


@pytest.fixture(scope="module")
def high(chromium: Browser) -> BrowserContext:
    return chromium.new_context(viewport=HIGH)


@pytest.mark.timeout(300)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(steps=STEPS)
def test_the_page_equals_the_view_whatever_happens(
    high: BrowserContext, server: StudioProcess, system: SessionSystem, steps: list[tuple[float, bool, list[object]]]
) -> None:
    log = Log(system, ActivationKey("random", str(time.monotonic_ns())))
    log.append(said("the first"))
    watched = Watched(high, server.url)
    watched.watch(log.key)
    watched.show_raw()
    for share, rewinds, events in steps:
        log.append(events, at=int(share * log.size) if rewinds else None)  # type: ignore[arg-type]
        assert watched.shows(log)
    watched.page.close()

    assert ([], []) == (watched.asked, watched.complaints)


def test_a_session_that_is_swept_says_so(watched: Watched, system: SessionSystem, log: Log) -> None:
    log.append(said("one"))
    page = watched.watch(log.key)
    expect(page.get_by_text("one", exact=True)).to_be_visible()

    system.retire(log.key)
    system.sweep(timedelta(seconds=-1))

    expect(page.get_by_text("no longer in the store")).to_be_visible()
    page.keyboard.press("2")
    page.get_by_role("tab", name="Model").click()
    expect(page.get_by_text("no longer in the store")).to_be_visible()
    watched.forget_missing()


@pytest.mark.parametrize("tab", ["timeline", "history", "superseded"])
def test_a_session_that_is_swept_says_so_on_a_tab_that_follows_no_view(
    watched: Watched, system: SessionSystem, log: Log, tab: str
) -> None:
    log.append(said("one"))
    page = watched.watch(log.key, at=None, tab=tab)
    expect(page.locator(".connection")).to_have_text("connected")

    system.retire(log.key)
    expect(page.locator(".facts .state")).to_have_text("retired")
    system.sweep(timedelta(seconds=-1))

    expect(page.get_by_text("no longer in the store")).to_be_visible()
    watched.forget_missing()


def test_a_tab_without_a_stream_says_that_the_server_is_away_and_comes_back_with_it(
    chromium: Browser, server: StudioProcess, system: SessionSystem
) -> None:
    log = Log(system, ActivationKey("away", "timeline"))
    log.append(said("one"))
    context = chromium.new_context()
    with CutLine(server.port) as line:
        page = Watched(context, line.url).watch(log.key, at=None, tab="history")
        expect(page.locator(".connection")).to_have_text("connected")
        line.cut()
        expect(page.locator(".connection")).to_have_text("reconnecting…")
        page.get_by_role("tab", name="Timeline").click()
        expect(page.get_by_text("The studio's server does not answer.")).to_be_visible()
        expect(page.get_by_text("This could not be loaded.")).to_be_visible()
        line.mend()

        expect(page.locator("svg .tl-user")).to_have_count(1)
        expect(page.locator(".connection")).to_have_text("connected")
        context.close()


def test_a_store_that_was_moved_away_is_told_as_it_is_until_it_is_back(chromium: Browser, swift_path: Path) -> None:
    file = swift_path / "moved.db"
    with SessionSystem.open(f"sqlite:///{file}") as system:
        log = Log(system, ActivationKey("moved", "away"))
        log.append(said("one"))
    context = chromium.new_context()
    with StudioProcess(f"sqlite:///{file}") as server:
        page = Watched(context, server.url).watch(log.key, at=None)
        expect(page.get_by_text("one", exact=True)).to_be_visible()
        file.rename(file.with_name("elsewhere.db"))
        expect(page.get_by_role("alert")).to_contain_text("moved.db")
        expect(page.locator(".connection")).to_have_text("waiting for the store…")
        file.with_name("elsewhere.db").rename(file)

        expect(page.locator(".connection")).to_have_text("connected")
        expect(page.get_by_role("alert")).not_to_be_visible()
    context.close()


def test_a_session_that_is_damaged_says_so_and_goes_on_saying_so(chromium: Browser, swift_path: Path) -> None:
    file = swift_path / "damaged.db"
    context = chromium.new_context()
    with SessionSystem.open(f"sqlite:///{file}") as system:
        other, log = (Log(system, ActivationKey("damaged", name)) for name in ("other", "one"))
        other.append(said("hi"))
        log.append(said("one", "two"))
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("UPDATE event SET payload = x'7b' WHERE offset = 0 AND activation = 2")
        with StudioProcess(f"sqlite:///{file}") as server:
            page = Watched(context, server.url).watch(log.key)
            for text in ("more", "and more"):
                other.append(said(text))
                expect(page.locator(".session-row", has_text="damaged/other")).to_contain_text(text)
                expect(page.get_by_role("alert")).to_contain_text("damaged/one")
                expect(page.get_by_text("This could not be loaded.")).to_be_visible()
            page.locator(".session-row", has_text="damaged/other").click()
            expect(page.get_by_text("and more", exact=True)).to_be_visible()
            expect(page.get_by_role("alert")).not_to_be_visible()
    context.close()


def test_a_session_of_a_store_that_was_put_back_is_shown_when_it_is_picked(
    context: BrowserContext, tmp_path: Path
) -> None:
    def write(name: str) -> None:
        with SessionSystem.open(f"sqlite:///{tmp_path}/{name}.db") as system:
            system.claim(ActivationKey("of", name)).emit_many(said(name))

    for name in ("store", "another"):
        write(name)
    with StudioProcess(f"sqlite:///{tmp_path}/store.db") as server:
        page = context.new_page()
        page.goto(f"{server.url}/s/of%2Fstore")
        expect(page.get_by_role("feed").get_by_text("store")).to_be_visible()
        (tmp_path / "store.db").rename(tmp_path / "aside.db")
        (tmp_path / "another.db").rename(tmp_path / "store.db")
        expect(page.get_by_text("no longer in the store")).to_be_visible()

        (tmp_path / "aside.db").rename(tmp_path / "store.db")
        page.locator(".session-row", has_text="of/store").click()

        expect(page.get_by_role("feed").get_by_text("store")).to_be_visible()
