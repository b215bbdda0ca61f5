"""What people do with the page: find, read, point at, switch; by mouse, by keyboard, on a phone, without a screen."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, expect

from incarnate import (
    AssistantMessage,
    Compaction,
    EffectEntry,
    FailedOutcome,
    Reasoning,
    SessionEvent,
    SessionSystem,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
    UserMessage,
)
from tests.support.studio_browser import Log, Watched, said, session_path
from tests.support.studio_process import StudioProcess

TABS = ("transcript", "timeline", "history", "superseded", "model", "frames")
LINE: dict[str, Any] = {"id": "e", "parent_id": None}
ANSWER = "## Found\n\n1. **one**\n2. `two`\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n```python\nx = 1\n```\n\n> so it is\n"
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"


def rich() -> list[SessionEvent]:
    return [
        TurnStart(**LINE, turn=0),
        UserMessage(**LINE, text="Please look at `x.py`."),
        Reasoning(**LINE, text="Where is it?", provider_continuation="blob"),
        ToolCall(**LINE, call_id="task", name="Task", args={"description": "look around"}),
        ToolCall(**LINE, call_id="inner", name="Grep", args={"pattern": "x"}, parent_call_id="task"),
        ToolResult(**LINE, call_id="inner", ok=False, error="nothing found", parent_call_id="task"),
        ToolResult(
            **LINE, call_id="task", ok=True, result=[{"type": "image", "data": "AAAA", "mimeType": "image/png"}]
        ),
        ToolCall(**LINE, call_id="edit", name="Edit", args={"old_string": "old", "new_string": "new", "list": [1, {}]}),
        ToolResult(**LINE, call_id="edit", ok=True, result=DIFF),
        ToolResult(**LINE, call_id="nobody", ok=True, result={"deep": {"deeper": [1, 2, 3]}}),
        AssistantMessage(**LINE, text=ANSWER),
        Usage(**LINE, input_tokens=1000, output_tokens=20, model="opus"),
        TurnEnd(**LINE, turn=0, outcome=FailedOutcome(TurnError("stream", "it broke"))),
        Compaction(**LINE, reason="full", replaces_from=0, replaces_to=2, summary="They looked."),
        ToolCall(**LINE, call_id="open", name="Bash", args={"command": "make test"}),
    ]


@pytest.fixture(scope="module")
def rich_log(another_log: Any, system: SessionSystem) -> Log:
    log: Log = another_log("rich")
    log.append(rich())
    log.append(said("a tail that is superseded"))
    session = system.lease(log.key, 1)
    session.restore(rewind=True)
    log.append(rich()[:3], at=12)
    session = system.lease(log.key, 2)
    session.checkpoint("abcdef0123456789", [EffectEntry(id="p", kind="git-push", detail={"branch": "main"})])
    session.emit_many(rich())
    log.grown()
    return log


def wait_for(page: Page, tab: str) -> None:
    marks = {"timeline": "svg", "history": "section h3", "superseded": ".beside article"}
    expect(page.locator(f"#tab-panel {marks.get(tab, 'article:not(.waiting)')}").first).to_be_visible()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(watched: Watched, rich_log: Log, scheme: Any) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    found = {}
    for tab in TABS:
        page = watched.watch(rich_log.key, at=None, tab=tab)
        wait_for(page, tab)
        page.evaluate("() => document.querySelectorAll('#tab-panel details').forEach((one) => { one.open = true; })")
        found[tab] = serious(page)
    watched.open()
    expect(watched.page.locator(".session-row").first).to_be_visible()
    found["list"] = serious(watched.page)
    watched.page.keyboard.press("?")
    found["help"] = serious(watched.page)

    assert {tab: [] for tab in (*TABS, "list", "help")} == found


def serious(page: Page) -> list[Any]:
    violations = Axe().run(page).response["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in violations
        if one["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("tab", TABS)
def test_nothing_is_wider_than_a_phone(watched: Watched, rich_log: Log, tab: str) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.watch(rich_log.key, at=None, tab=tab)
    wait_for(page, tab)

    assert page.evaluate("() => document.documentElement.scrollWidth") == 360
    assert page.evaluate("() => document.querySelector('#tab-panel').scrollWidth") <= 360


def test_on_a_phone_the_list_and_a_session_take_turns(watched: Watched, rich_log: Log) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.open()
    page.get_by_role("link", name=str(rich_log.key)).click()
    expect(page.get_by_role("feed")).to_be_visible()
    expect(page.get_by_role("navigation", name="Sessions")).not_to_be_visible()

    page.get_by_role("link", name="All sessions").click()

    expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()
    expect(page.get_by_role("feed")).not_to_be_visible()


def test_the_list_is_searched_filtered_and_kept_as_sessions_come(watched: Watched, another_log: Any) -> None:
    another_log("apple").append(said("red"))
    page = watched.open()
    page.keyboard.press("s")
    page.keyboard.type("APPLE")
    expect(page.locator(".session-row")).to_have_count(1)

    another_log("pineapple").append(said("yellow"))
    expect(page.locator(".session-row")).to_have_count(2)
    another_log("pear").append(said("green"))
    page.get_by_role("combobox", name="State").select_option("retired")
    expect(page.get_by_text("No session fits.")).to_be_visible()


def test_the_keyboard_walks_through_a_transcript(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(80)]))
    page = watched.watch(log.key)
    focused = page.locator("article:focus")
    expect(focused).to_have_attribute("data-offset", "0")

    walk = []
    for key in ("j", "j", "k", "G", "k", "g", "j"):
        page.keyboard.press(key)
        walk.append(focused.get_attribute("data-offset"))
    assert ["1", "2", "1", "79", "78", "0", "1"] == walk
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("line 79", exact=True).last).to_be_in_viewport()
    page.keyboard.press("5")
    expect(page.get_by_role("tab", name="Model")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Model").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Frames")).to_have_attribute("aria-selected", "true")


def test_search_finds_marks_and_filters(watched: Watched, log: Log) -> None:
    log.append(said(*[f"{'needle' if number % 20 == 7 else 'hay'} {number}" for number in range(100)]))
    page = watched.watch(log.key)
    page.keyboard.press("/")
    page.keyboard.type("NEEDLE")
    expect(page.locator(".found")).to_have_text("5")
    page.keyboard.press("Enter")
    expect(page.locator(".found")).to_have_text("1 of 5")
    expect(page.locator("article.target")).to_have_attribute("data-offset", "7")
    page.keyboard.press("Shift+Enter")
    expect(page.locator("article.target")).to_have_attribute("data-offset", "87")
    expect(page.locator("article.target")).to_be_in_viewport()
    page.wait_for_function("() => CSS.highlights.get('found')?.size > 0")

    page.get_by_role("button", name="Only matches").click()
    expect(page.locator("article")).to_have_count(5)
    log.append(said("another needle"))
    expect(page.locator("article")).to_have_count(6)
    log.append(said("nothing"), at=50)
    expect(page.locator("article")).to_have_count(3)


def test_kinds_leave_only_what_is_of_them(watched: Watched, rich_log: Log) -> None:
    page = watched.watch(rich_log.key)
    page.get_by_role("button", name="Calls").click()
    calls = [event["offset"] for event in rich_log.events() if event["type"] == "tool-call"]
    expect(page.locator("article")).to_have_count(len(calls))
    expect(page.locator("article.waiting")).to_have_count(0)

    assert calls == page.evaluate(
        "() => [...document.querySelectorAll('article')].map((row) => Number(row.dataset.offset))"
    )
    page.get_by_role("button", name="Calls").click()
    expect(page.locator("article").first).to_have_attribute("aria-setsize", str(rich_log.size))


def test_a_permalink_leads_to_its_event_and_is_copied_by_a_press(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(500)]))
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.watch(log.key, at=321)
    expect(page.get_by_text("line 321", exact=True)).to_be_in_viewport()
    expect(page.locator("article.target")).to_have_attribute("data-offset", "321")

    page.get_by_role("link", name="Link to offset 323").click()

    expect(page.get_by_text("Link to offset 323 copied")).to_be_visible()
    expect(page).to_have_url(watched.base + session_path(log.key, 323))
    assert watched.base + session_path(log.key, 323) == page.evaluate("() => navigator.clipboard.readText()")
    page.get_by_role("tab", name="History").click()
    page.go_back()
    expect(page.locator("article.target")).to_have_attribute("data-offset", "323")


def test_a_key_with_every_awkward_sign_has_a_permalink(watched: Watched, another_log: Any) -> None:
    log = another_log("a/b %2F ?#& ü 漢 <i>")
    log.append(said("found it"))
    page = watched.watch(log.key, at=0)

    expect(page.get_by_role("feed").get_by_text("found it")).to_be_visible()
    expect(page.get_by_role("heading", level=2)).to_have_text(str(log.key))


def test_a_place_beyond_the_end_shows_the_end(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(200)]))
    page = watched.watch(log.key, at=123_456)

    expect(page.get_by_role("feed").get_by_text("line 199")).to_be_in_viewport()


def test_an_unknown_session_is_told(chromium: Browser, server: StudioProcess) -> None:
    page = chromium.new_page()
    page.goto(f"{server.url}/s/no%2Fsuch")

    expect(page.get_by_text("The store holds no session no/such.")).to_be_visible()
    page.close()


def test_a_transcript_says_what_belongs_together(watched: Watched, rich_log: Log) -> None:
    watched.page.set_viewport_size({"width": 1280, "height": 4000})
    page = watched.watch(rich_log.key)

    def row(offset: int) -> Locator:
        return page.locator(f"article[data-offset='{offset}']")

    expect(row(0).get_by_role("heading")).to_have_text("Turn 0 ")
    expect(row(15).get_by_role("heading")).to_contain_text("Turn 0 error")
    expect(row(4)).to_contain_text("failed")
    expect(row(4)).to_have_class("row of-tool-call nested depth-1")
    expect(row(5)).to_contain_text("nothing found")
    expect(row(6).locator(".chip.image")).to_contain_text("image/png")
    expect(row(7).locator(".diff-line")).to_have_text(["-old", "+new"])
    expect(row(9)).to_contain_text("without a call")
    expect(row(10).locator("table td")).to_have_text(["1", "2"])
    expect(page.locator("article").last).to_contain_text("no result")


def test_a_turn_takes_as_long_as_the_harness_says_however_late_it_was_ingested(watched: Watched, log: Log) -> None:
    began, ended = "2026-01-02T03:04:05.000Z", "2026-01-02T03:06:10.000Z"
    log.append(
        [TurnStart(**LINE, turn=7, occurred_at=began), TurnEnd(**LINE, turn=7, occurred_at=ended, outcome="completed")]
    )
    page = watched.watch(log.key)

    expect(page.get_by_role("heading", name="Turn 7")).to_contain_text("2 min 5 s")


def test_a_turn_of_a_late_ingest_takes_as_long_as_the_timeline_says(watched: Watched, log: Log) -> None:
    told = ("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:15.000Z")
    words = [AssistantMessage(**LINE, text="x", occurred_at=at) for at in told]
    log.append([TurnStart(**LINE, turn=7), *words, TurnEnd(**LINE, turn=7)])
    page = watched.watch(log.key)

    expect(page.get_by_role("heading", name="Turn 7")).to_contain_text("10.0 s")


def test_a_press_on_a_state_leads_to_the_result(watched: Watched, log: Log) -> None:
    log.append([ToolCall(**LINE, call_id="c", name="read", args={})])
    log.append(said(*[f"between {number}" for number in range(100)]))
    log.append([ToolResult(**LINE, call_id="c", ok=True, result="the end")])
    page = watched.watch(log.key)
    page.get_by_role("link", name="ok, go to the result").click()

    expect(page.get_by_role("feed").get_by_text("the end")).to_be_in_viewport()


def test_the_model_tab_shows_what_a_provider_gets_and_what_was_left_out(watched: Watched, log: Log) -> None:
    log.append([UserMessage(**LINE, text="**raw**"), ToolCall(**LINE, call_id="c", name="run", args={"n": 1})])
    log.append([ToolResult(**LINE, call_id="none", ok=True, result=1)])
    page = watched.watch(log.key, tab="model")
    expect(page.locator("article pre").first).to_have_text("**raw**")
    expect(page.locator("article.placeholder")).to_contain_text("no result was recorded")
    expect(page.get_by_text("1 result of no call that the log knows")).to_be_visible()

    log.append([ToolResult(**LINE, call_id="c", ok=True, result="late")])

    expect(page.locator("article.placeholder")).to_have_count(0)
    expect(page.locator("article").last).to_contain_text("late")


def test_a_tail_stands_beside_what_replaced_it(watched: Watched, log: Log) -> None:
    log.append(said("kept", "old one", "old two"))
    log.append(said("new one"), at=1)
    page = watched.watch(log.key, at=None, tab="superseded")

    expect(page.locator("section.gone article .body")).to_have_text(["Promptold one", "Promptold two"])
    expect(page.locator("section.now article .body")).to_have_text(["Promptnew one"])


def test_the_history_tells_who_wrote_and_what_was_saved(watched: Watched, rich_log: Log) -> None:
    page = watched.watch(rich_log.key, at=None, tab="history")

    expect(page.get_by_role("region", name="Incarnations").locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("region", name="Checkpoints")).to_contain_text("abcdef012345")
    expect(page.get_by_role("region", name="Rewinds").locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Tail of rewind 1").click()
    expect(page.get_by_role("tab", name="Superseded")).to_have_attribute("aria-selected", "true")


def test_the_timeline_leads_to_its_events(watched: Watched, rich_log: Log) -> None:
    page = watched.watch(rich_log.key, at=None, tab="timeline")
    mark = page.locator("svg [data-offset]").first
    offset = mark.get_attribute("data-offset")
    mark.focus()
    page.keyboard.press("Enter")

    expect(page.locator("article.target")).to_have_attribute("data-offset", str(offset))
    expect(page).to_have_url(watched.base + session_path(rich_log.key, int(offset or -1)))


def test_the_theme_is_the_systems_until_another_is_chosen(watched: Watched) -> None:
    watched.page.emulate_media(color_scheme="dark")
    page = watched.open()
    paper = "() => getComputedStyle(document.body).backgroundColor"
    assert "rgb(21, 23, 27)" == page.evaluate(paper)

    page.get_by_role("button", name="Theme: auto. Switch to light").click()
    assert "rgb(255, 255, 255)" == page.evaluate(paper)
    page.reload()
    expect(page.get_by_role("button", name="Theme: light. Switch to dark")).to_be_visible()
    assert "rgb(255, 255, 255)" == page.evaluate(paper)
