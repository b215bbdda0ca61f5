"""What whoever reads a session expects of the page: the same on every tab, nothing stale, nothing lost on the way."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from incarnate import AssistantMessage, SessionEvent, ToolCall, ToolResult, TurnEnd, TurnStart, UserMessage
from tests.support.studio_browser import Log, Watched, said, session_path
from tests.support.studio_process import StudioProcess

LINE: dict[str, Any] = {"id": "e", "parent_id": None}
LONG_AGO = "2026-01-02T03:04:05.000Z"


def titles(page: Page, part: str) -> list[str]:
    return page.locator(f"svg .tl-{part} title").all_text_contents()


def test_history_and_header_follow_a_checkpoint_and_a_claim_that_write_nothing(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    page = watched.watch(log.key, at=None, tab="history")
    expect(page.get_by_text("No checkpoint yet")).to_be_visible()

    log.system.lease(log.key, 1).checkpoint("abcdef0123456789", [])
    expect(page.get_by_role("region", name="Checkpoints")).to_contain_text("abcdef012345")
    log.system.lease(log.key, 7)

    expect(page.locator(".facts")).to_contain_text("incarnation 7")
    expect(page.get_by_role("region", name="Incarnations").locator("tbody tr").last).to_contain_text("7nothing")


def test_the_timeline_follows_a_checkpoint_and_a_claim_that_write_nothing(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    page = watched.watch(log.key, at=None, tab="timeline")
    expect(page.locator("svg .tl-user")).to_have_count(1)

    log.system.lease(log.key, 1).checkpoint("abcdef0123456789", [])
    expect(page.locator("svg .tl-checkpoint")).to_have_count(1)
    log.system.lease(log.key, 7)

    expect(page.locator("svg .tl-takeover-line")).to_have_count(1)


def test_the_transcript_has_lines_where_the_log_was_joined(watched: Watched, log: Log) -> None:
    log.append(said("one", "two", "old", "older"))
    log.append(said("three"), at=2)
    page = watched.watch(log.key)
    expect(page.locator("article[data-offset='2'] .seam")).to_have_text("Rewound to here: 2 events superseded")

    log.system.lease(log.key, 1).checkpoint("abcdef0123456789", [])
    expect(page.locator("article[data-offset='2'] .seam").last).to_have_text("Checkpoint abcdef012345")
    log.system.lease(log.key, 2).emit_many(said("four"))

    expect(page.locator("article[data-offset='3'] .seam")).to_have_text(
        "Checkpoint abcdef012345 · Incarnation 2 took over"
    )


def test_a_call_of_a_turn_that_ended_or_of_a_dead_incarnation_waits_for_nothing(watched: Watched, log: Log) -> None:
    log.append([TurnStart(**LINE, turn=0), ToolCall(**LINE, call_id="a", name="run", args={})])
    page = watched.watch(log.key)
    chip = page.locator("article[data-offset='1'] .chip")
    expect(chip).to_have_text("no result yet")

    log.append([TurnEnd(**LINE, turn=0), ToolCall(**LINE, call_id="b", name="run", args={})])
    expect(chip).to_have_text("no result")
    expect(page.locator("article[data-offset='3'] .chip")).to_have_text("no result yet")
    log.system.lease(log.key, 2)

    expect(page.locator("article[data-offset='3'] .chip")).to_have_text("no result")


def test_an_event_has_one_time_on_every_tab_whatever_the_readers_zone(watched: Watched, log: Log) -> None:
    log.append(
        [TurnStart(**LINE, turn=0), UserMessage(**LINE, text="hi", occurred_at=LONG_AGO), TurnEnd(**LINE, turn=0)]
    )
    watched.page.add_init_script("Date.prototype.getTimezoneOffset = () => -480")
    page = watched.watch(log.key)
    times = page.locator("article .gutter time")
    expect(times).to_have_text([re.compile(r"^03:04:0[45]$"), "03:04:05", re.compile(r"^03:04:0[56]$")])
    expect(times.nth(1)).to_have_attribute("title", re.compile(r"2026, 03:04:05 UTC \(.* here\), ingested later: "))
    expect(page.locator(".facts")).to_contain_text("times UTC")

    page.get_by_role("tab", name="Timeline").click()

    expect(page.locator("svg .tl-time").first).to_contain_text("03:04:0")
    assert "2026-01-02T03:04:05.000Z" in titles(page, "user")[0]


def test_enter_right_after_typing_goes_to_the_match(watched: Watched, log: Log) -> None:
    log.append(said(*[f"{'needle' if number == 70 else 'hay'} {number}" for number in range(100)]))
    page = watched.watch(log.key)
    page.keyboard.press("/")
    page.keyboard.type("needle")
    page.keyboard.press("Enter")

    expect(page.locator("article.target")).to_have_attribute("data-offset", "70")
    expect(page.locator(".found")).to_have_text("1 of 1")


def test_keys_that_choose_a_word_of_an_input_method_neither_step_nor_leave(watched: Watched, log: Log) -> None:
    log.append(said("日本 one", "日本 two"))
    page = watched.watch(log.key)
    search = page.get_by_label("Search this session")
    search.fill("日本")
    expect(page.locator(".found")).to_have_text("2")
    for key in ("Enter", "Escape"):
        search.dispatch_event("keydown", {"key": key, "isComposing": True})
    expect(search).to_have_value("日本")
    page.keyboard.press("Enter")

    expect(page.locator(".found")).to_have_text("1 of 2")


def test_a_match_inside_what_is_folded_unfolds_it(watched: Watched, log: Log) -> None:
    deep = {"description": "look", "options": {"kind": {"subagent_type": "explorer"}}, "other": {"quiet": 1}}
    log.append([ToolCall(**LINE, call_id="a", name="Task", args=deep)])
    log.append([ToolResult(**LINE, call_id="a", ok=True, result="\n".join(f"line {n}" for n in range(400)))])
    page = watched.watch(log.key)
    page.keyboard.press("/")
    page.keyboard.type("subagent_type")
    page.keyboard.press("Enter")
    call = page.locator("article[data-offset='0']")
    expect(call.get_by_text("subagent_type").first).to_be_visible()
    expect(call.get_by_text("quiet", exact=True)).not_to_be_visible()

    page.get_by_label("Search this session").fill("line 399")
    page.keyboard.press("Enter")

    expect(page.locator("article[data-offset='1']")).to_contain_text("line 399")


def test_a_tab_and_back_is_the_place_where_one_read(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(400)]))
    page = watched.watch(log.key, at=300)
    expect(page.get_by_text("line 300", exact=True)).to_be_in_viewport()
    page.keyboard.press("3")
    expect(page.get_by_role("heading", name="Incarnations")).to_be_visible()
    page.keyboard.press("1")

    expect(page.get_by_text("line 300", exact=True)).to_be_in_viewport()
    expect(page).to_have_url(watched.base + session_path(log.key, 300))


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("/at/900", "No offset 900 yet: the log ends at 1"),
        ("/at/abc", "names no offset"),
        ("/nothing/here", "nothing at this address"),
    ],
    ids=["beyond", "odd", "unknown"],
)
def test_an_address_that_leads_nowhere_says_so(watched: Watched, log: Log, place: str, told: str) -> None:
    log.append(said("one", "two"))
    page = watched.open(session_path(log.key) + place)

    expect(page.get_by_text(told)).to_be_visible()


def test_an_address_outside_the_sessions_has_a_way_home(chromium: Browser, server: StudioProcess) -> None:
    page = chromium.new_page()
    page.goto(f"{server.url}/no/such")
    page.get_by_role("link", name="All sessions").click()

    expect(page.get_by_text("Pick a session")).to_be_visible()
    page.close()


def test_only_matches_without_one_says_no_match(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    page = watched.watch(log.key)
    page.keyboard.press("/")
    page.keyboard.type("nowhere")
    page.get_by_role("button", name="Only matches").click()

    expect(page.get_by_text("No match.")).to_be_visible()


def test_a_result_reads_as_text_in_the_model_tab_and_to_the_letter_on_demand(watched: Watched, log: Log) -> None:
    log.append(
        [
            ToolCall(**LINE, call_id="a", name="run", args={}),
            AssistantMessage(**LINE, text="meanwhile"),
            ToolResult(**LINE, call_id="a", ok=True, result="first\nsecond"),
        ]
    )
    page = watched.watch(log.key, at=None, tab="model")
    result = page.locator("article.of-tool")
    expect(result.locator("pre")).to_have_text("first\nsecond")
    page.keyboard.press("r")
    expect(result.locator("pre")).to_have_text('"first\\nsecond"')
    result.get_by_role("button", name="Go to the result").click()

    expect(page.locator("article.target")).to_have_attribute("data-offset", "2")


def test_the_state_of_an_open_call_stays_beside_its_name(watched: Watched, log: Log) -> None:
    events: list[SessionEvent] = [
        ToolCall(**LINE, call_id="a", name="run", args={"n": list(range(30))}),
        ToolResult(**LINE, call_id="a", ok=True, result=1),
    ]
    log.append(events)
    page = watched.watch(log.key)
    call = page.locator("article[data-offset='0']")
    call.locator("summary").first.click()
    expect(call.locator(".fold-body .json")).to_be_visible()
    name, chip = (call.locator(one).bounding_box() for one in (".tool-name", ".chip"))

    assert name
    assert chip
    assert abs(name["y"] - chip["y"]) < 8


def test_every_tab_and_kind_is_in_sight_on_a_phone(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.watch(log.key)

    for one in (*page.get_by_role("tab").all(), *page.locator(".kinds button").all()):
        expect(one).to_be_in_viewport(ratio=0.9)


def test_a_bar_that_is_dragged_with_rests_on_the_way_stays_under_the_pointer(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number} " + "word " * (number * 37 % 400) for number in range(2000)]))
    page = watched.watch(log.key)
    expect(page.locator("article[data-offset='0']")).to_contain_text("line 0")
    box = page.locator(".rows").bounding_box()
    assert box is not None
    x, top = box["x"] + box["width"] - 6, box["y"] + 24
    page.mouse.move(x, top)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(x, top + (box["height"] + 40) * step / 8)
        page.evaluate("() => new Promise((done) => setTimeout(done, 200))")  # longer than a list takes to be at rest
    page.mouse.up()

    expect(page.locator("article[data-offset='1999']")).to_be_in_viewport()


def test_a_page_that_is_left_open_tells_how_old_its_session_is_by_now(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    watched.page.clock.install()
    page = watched.watch(log.key)
    told = page.locator(".facts .fact", has_text="updated").locator("time")
    for hours in (3, 6, 9):
        page.clock.fast_forward("03:00:30")
        expect(told).to_have_text(f"{hours} h")
