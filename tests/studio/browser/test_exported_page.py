"""The exported file in a real browser: the page that the server serves, and nothing asked of anybody."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from incarnate import (
    AssistantMessage,
    ClientFrames,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
    open_store,
)
from incarnate.studio.exported import export_html, export_svg
from tests.support.studio_browser import Log, Watched
from tests.support.told_sessions import HOSTILE
from tests.support.waiting import soon

LINK: dict[str, Any] = {"id": "e", "parent_id": None}
TALL: ViewportSize = {"width": 1280, "height": 12_000}  # all rows of these logs at once
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


class Opened(NamedTuple):
    """An exported file in a browser, with all that it asked for and complained of."""

    page: Page
    asked: list[str]
    complaints: list[str]


def eventful() -> list[SessionEvent]:
    """A turn that holds every hostile string in each place that takes one."""
    log: list[SessionEvent] = [TurnStart(**LINK, turn=1)]
    for number, text in enumerate(HOSTILE):
        call_id = f"c{number}"
        log += [
            UserMessage(**LINK, text=text),
            AssistantMessage(**LINK, text=text),
            ToolCall(**LINK, call_id=call_id, name=text[:60], args={"command": text, text[:60]: text}),
            ToolResult(**LINK, call_id=call_id, ok=number % 2 == 0, result={"out": text}, error=text),
        ]
    return [*log, Usage(**LINK, input_tokens=3, output_tokens=4, model=HOSTILE[0]), TurnEnd(**LINK, turn=1)]


class Opener(Protocol):
    def __call__(self, place: str, name: str = "page.html") -> Opened: ...


def exported(store: str, log: Log) -> bytes:
    opened = open_store(store, read_only=True)
    page = export_html(opened, log.key, 1_800_000_000_000)
    opened.close()
    assert page is not None
    return b"".join(page.pieces)


@pytest.fixture
def file(log: Log, store: str, tmp_path: Path) -> Path:
    """An exported log: hostile, and rewound once."""
    log.append(eventful())
    log.append([UserMessage(**LINK, text="after all")], at=log.size - 1)
    opened = open_store(store, read_only=True)
    drawn = export_svg(opened, log.key)
    opened.close()
    assert drawn is not None
    (tmp_path / "page.html").write_bytes(exported(store, log))
    (tmp_path / "timeline.svg").write_text(drawn, encoding="utf-8")
    return tmp_path / "page.html"


@pytest.fixture
def opener(context: BrowserContext, file: Path) -> Iterator[Opener]:
    """Opens the file at a hash; it must ask for nothing but itself, break no policy and complain of nothing."""
    made: list[Opened] = []

    def open_at(place: str, name: str = "page.html") -> Opened:
        page, asked, complaints = context.new_page(), [], []
        page.add_init_script(VIOLATIONS)
        page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_viewport_size(TALL)
        page.goto(f"{file.with_name(name).as_uri()}{place}")
        made.append(Opened(page, asked, complaints))
        return made[-1]

    yield open_at
    for opened in made:
        assert [opened.page.url.partition("#")[0]] == opened.asked
        assert [] == opened.complaints
        assert [] == opened.page.evaluate("window.violations")
        assert opened.page.evaluate("window.hurt === undefined")


def rows(page: Page) -> list[str]:
    """What stands in the rows of a transcript; how long ago something was is another thing a moment later."""
    expect(page.locator("article").last).to_be_visible()
    expect(page.locator("article.waiting")).to_have_count(0)
    return [re.sub(r"\s+", " ", text) for text in page.locator("article").all_inner_texts()]


def same_rows(served: Page, page: Page) -> bool:
    """Whether they come to be: what rows say of each other, and of what was rewound, comes after them."""
    return soon(lambda: rows(served) == rows(page))


def test_the_transcript_is_that_of_the_served_page(opener: Opener, watched: Watched, log: Log) -> None:
    served = watched.watch(log.key)
    served.set_viewport_size(TALL)
    expect(served.locator("article")).to_have_count(log.size)
    page = opener("").page
    expect(page.locator("article")).to_have_count(log.size)

    assert same_rows(served, page), (rows(served), rows(page))


def found(page: Page, text: str) -> str:
    """How many events the page says it found."""
    page.get_by_label("Search this session").fill("")
    expect(page.locator(".found")).to_have_text("")
    page.get_by_label("Search this session").fill(text)
    expect(page.locator(".found")).not_to_have_text("")
    return page.locator(".found").inner_text()


@pytest.mark.timeout(180)
def test_a_search_finds_what_the_served_page_finds_and_no_names_of_fields(
    context: BrowserContext, watched: Watched, another_log: Any, tmp_path: Path, store: str
) -> None:
    log: Log = another_log("searched")
    log.append(
        [*eventful(), ToolCall(**LINK, call_id="big", name="Count", args={"n": 2**70, "deep": [{"Key": [True]}]})]
    )
    file = tmp_path / "searched.html"
    file.write_bytes(exported(store, log))
    page = context.new_page()
    page.goto(file.as_uri())
    served = watched.watch(log.key)
    words = (
        "alert",
        "ALERT",
        "user",
        "offset",
        "parentId",
        "command",
        "c0",
        'a"b',
        str(2**70),
        "key",
        "true",
        "completed",
    )
    wanted = {word: found(served, word) for word in words}

    assert wanted == {word: found(page, word) for word in words}
    assert ("no match", "1") == (wanted["parentId"], wanted[str(2**70)])


def test_the_timeline_leads_to_the_event_that_was_pressed(opener: Opener, log: Log) -> None:
    page = opener("#tab=timeline").page
    links = page.locator("svg.tl [data-offset]")
    expect(links.first).to_be_visible()
    offset = int(page.locator("svg.tl .tl-call").last.get_attribute("data-offset") or "-1")
    page.locator("svg.tl .tl-call").last.press("Enter")

    expect(page).to_have_url(re.compile(rf"#at={offset}$"))
    assert 0 < offset < log.size


def test_what_was_superseded_and_what_the_model_sees_are_in_the_file(opener: Opener) -> None:
    page = opener("#tab=superseded").page
    expect(page.get_by_role("tabpanel")).to_contain_text("Turn 1")
    page.get_by_role("tab", name="Model").click()

    expect(page.get_by_role("tabpanel")).to_contain_text("after all")


def test_its_frames_are_those_of_the_served_page(opener: Opener, watched: Watched, log: Log) -> None:
    served = watched.watch(log.key, at=None, tab="frames")
    page = opener("#tab=frames").page
    frames = len(log.system.view(log.key, ClientFrames()).get())
    for one in (served, page):
        one.set_viewport_size(TALL)
        expect(one.locator("article")).to_have_count(frames)

    assert frames > 1
    assert same_rows(served, page), (rows(served), rows(page))


def test_what_was_cut_says_so_and_does_not_offer_to_load_it(
    context: BrowserContext, another_log: Any, tmp_path: Path, store: str
) -> None:
    log: Log = another_log("cut")
    long = "x" * 300_000
    log.append([AssistantMessage(**LINK, text=long), ToolCall(**LINK, call_id="c", name="run", args={"text": long})])
    file = tmp_path / "cut.html"
    file.write_bytes(exported(store, log))
    page = context.new_page()
    page.set_viewport_size(TALL)
    for tab, notes in (("transcript", 2), ("model", 2), ("frames", 2)):
        page.goto(f"{file.as_uri()}#tab={tab}")
        expect(page.locator(f"#tab-{tab}")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_text("Long texts were cut here: it has")).to_have_count(notes)
        expect(page.get_by_role("button", name="Load it whole")).to_have_count(0)


def test_it_says_when_it_was_exported_and_offers_nothing_that_grows(opener: Opener) -> None:
    page = opener("").page
    expect(page.locator(".facts")).to_contain_text("exported Jan 15, 2027, 08:00:00")
    expect(page.locator(".facts")).not_to_contain_text("without")
    expect(page.locator(".facts")).not_to_contain_text("now")
    expect(page.get_by_role("button", name="Follow")).to_have_count(0)
    page.keyboard.press("?")

    expect(page.get_by_role("dialog")).to_contain_text("search")
    expect(page.get_by_role("dialog")).not_to_contain_text("find a session")


def test_the_picture_of_a_timeline_runs_nothing_and_asks_for_nothing(opener: Opener) -> None:
    page = opener("", "timeline.svg").page

    assert "svg" == page.evaluate("document.documentElement.localName")
    assert page.evaluate("document.querySelectorAll('script, style, image, a, foreignObject').length") == 0


@pytest.mark.parametrize("damage", [(b'"events":', b'"events":{'), (b'"session":', b'"sess":')])
def test_a_file_that_was_damaged_on_its_way_says_so(
    context: BrowserContext, file: Path, damage: tuple[bytes, bytes]
) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole.replace(*damage))
    page = context.new_page()
    page.goto(file.as_uri())

    assert whole != file.read_bytes()
    expect(page.get_by_role("alert")).to_contain_text("is damaged or cut off")
