"""Whatever a log says is text: it runs nothing, breaks nothing, and nobody outside hears of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from incarnate import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    UnencodableEventError,
    Usage,
    UserMessage,
)
from tests.support.studio_browser import Log, Watched, session_path

OUTSIDE = "https://outside.example/"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="hacked=1"><script>hacked=1</script><image href="{OUTSIDE}s"/>'
STRINGS = (
    "<script>hacked=1</script>",
    f'<img src="{OUTSIDE}i" onerror="hacked=1">',
    f"<style>@import url({OUTSIDE}c)</style>",
    SVG,
    "[run](javascript:hacked=1) [run](JaVaScRiPt:hacked=1) <javascript:hacked=1>",
    "[d](data:text/html,<script>hacked=1</script>) [a](vbscript:x) [b]( javascript:hacked=1)",
    "[c](java\tscript:hacked=1) [d](file:///etc/passwd) [e](//outside.example)",
    f"![picture]({OUTSIDE}p.png) and [a fair link]({OUTSIDE}fair) and {OUTSIDE}bare",
    f'[quotes](https://x.example/"onmouseover="hacked=1) ![x](data:image/svg+xml;base64,{"A" * 400})',
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \x00 \x08\x08 \x7f \x9b31m",
    "\u202ereversed\u202c \u2066isolated\u2069 \u200b\u200d\ufeff \u2028 \U000e0041 \ufffd",
    "__proto__ constructor toString hasOwnProperty",
    "`" * 3000 + "*_~" * 3000 + "[" * 3000 + "![" * 3000 + "](" * 1000,
    "> " * 400 + "deep\n" + "".join(" " * depth + "- item\n" for depth in range(0, 300, 2)),
    "|a" * 2000 + "\n" + "|-" * 2000 + "\n" + "|b" * 2000,
    "{{7*7}} ${7*7} <%= 7*7 %> &lt;b&gt; &#x3C;script&#x3E;",
    "e\u0301" + "\u0301" * 2000,
)
PROTO = {"__proto__": {"polluted": True}, "constructor": {"prototype": {"polluted": True}}, "<b>": "</details>"}


def deep(depth: int) -> object:
    value: object = "the bottom"
    for level in range(depth):
        value = [value] if level % 2 else {"__proto__": value}
    return value


def hostile_events() -> Iterator[SessionEvent | Opaque]:
    for text in STRINGS:
        yield from saying(text)
    yield ToolCall(id="p", parent_id=None, call_id="__proto__", name="constructor", args=PROTO)
    yield ToolResult(id="q", parent_id=None, call_id="__proto__", ok=True, result=PROTO)
    yield ToolResult(id="r", parent_id=None, call_id="toString", ok=False, result=deep(250), error=SVG)
    yield Opaque(
        "__proto__", "x", None, b'{"type":"__proto__","id":"x","parentId":null,"text":"<script>hacked=1</script>"}'
    )


def saying(text: str) -> Iterator[SessionEvent]:
    """Every event that holds a text, with this one wherever it can stand."""
    link: dict[str, Any] = {"id": text[:40], "parent_id": text[:40], "occurred_at": text[:40]}
    yield SystemMessage(**link, text=text)
    yield UserMessage(**link, text=text, parent_call_id=text[:40])
    yield AssistantMessage(**link, text=text)
    yield Reasoning(**link, text=text, provider_continuation=text)
    yield ToolCall(
        **link,
        call_id=text[:40],
        name=text[:90],
        args={text[:90]: text, "command": text, "old_string": text, "new_string": "new"},
    )
    yield ToolResult(
        **link,
        call_id=text[:40],
        ok=True,
        result=[{"type": "text", "text": text}, {"type": "image", "data": text, "mimeType": text}],
    )
    yield ToolResult(**link, call_id=text[:40], ok=False, result=text, error=text)
    yield Compaction(**link, reason=text, replaces_from=0, replaces_to=1, summary=text)
    yield Usage(**link, input_tokens=1, output_tokens=1, model=text)
    yield TurnStart(**link, turn=0, label=text[:90])
    yield TurnEnd(**link, turn=0, label=text[:90], outcome=FailedOutcome(TurnError(text, text)))


@pytest.fixture(scope="module")
def hostile(another_log: Any) -> Log:
    log: Log = another_log(STRINGS[0])
    log.append(hostile_events())
    log.append([UserMessage(id="t", parent_id=None, text=STRINGS[0])], at=log.size - 6)
    return log


def nothing_ran(page: Page) -> bool:
    return bool(
        page.evaluate(
            "() => !('hacked' in globalThis) && !('polluted' in {}) && !document.querySelector('#app script')"
        )
    )


@pytest.mark.timeout(180)
def test_nothing_in_a_transcript_runs_or_asks_for_anything(watched: Watched, hostile: Log) -> None:
    page = watched.watch(hostile.key)
    page.set_viewport_size({"width": 1280, "height": 6000})
    seen: set[int] = set()
    while left := set(range(hostile.size)) - seen:
        place = min(left)
        page.goto(f"{watched.base}{session_path(hostile.key, place)}")
        expect(page.locator(f"article[data-offset='{place}']")).to_be_visible()
        page.evaluate("() => document.querySelectorAll('article details').forEach((one) => { one.open = true; })")
        page.evaluate("() => document.querySelectorAll('article button.more').forEach((one) => one.click())")
        seen |= set(
            page.evaluate(
                "() => [...document.querySelectorAll('article:not(.waiting)')].map((row) => Number(row.dataset.offset))"
            )
        )
        assert nothing_ran(page)


@pytest.mark.parametrize("tab", ["timeline", "history", "superseded", "model", "frames"])
def test_nothing_in_another_tab_runs_or_asks_for_anything(watched: Watched, hostile: Log, tab: str) -> None:
    page = watched.watch(hostile.key, at=None, tab=tab)
    marks = {
        "timeline": "svg",
        "history": "section h3",
        "superseded": ".beside article",
        "model": "article",
        "frames": "article",
    }
    expect(page.locator(f"#tab-panel {marks[tab]}").first).to_be_visible()
    page.evaluate("() => document.querySelectorAll('#tab-panel details').forEach((one) => { one.open = true; })")

    assert nothing_ran(page)
    assert 0 == page.locator("[onload], [onerror], [style*=url], image, foreignObject, iframe, object").count()


def test_links_lead_only_where_they_say(watched: Watched, log: Log) -> None:
    log.append(AssistantMessage(id=str(at), parent_id=None, text=text) for at, text in enumerate(STRINGS))
    page = watched.watch(log.key)
    page.get_by_role("tabpanel").get_by_text("a fair link").scroll_into_view_if_needed()
    links = page.evaluate(
        "() => [...document.querySelectorAll('.markdown a')].map((a) => [a.getAttribute('href'), a.rel, a.textContent])"
    )

    assert [f"{OUTSIDE}fair", "noopener noreferrer nofollow", "a fair link (outside.example)"] in links
    assert [] == [href for href, _, _ in links if not href.startswith(("https://", "http://", "mailto:"))]


def test_what_cannot_be_seen_is_shown_as_an_escape(watched: Watched, log: Log) -> None:
    log.append([AssistantMessage(id="a", parent_id=None, text="x\x1b[31mred\u202eb\x00\ufffdy")])
    page = watched.watch(log.key)
    row = page.locator("article .markdown")

    expect(row).to_have_text("x\\x1b[31mred\\u202eb\\x00\ufffdy")
    expect(row.locator(".escape")).to_have_text(["\\x1b[31m", "\\u202e", "\\x00"])
    expect(row.locator(".mended")).to_have_count(1)


def test_a_text_of_five_megabytes_and_a_diff_of_ten_thousand_lines_are_folded(watched: Watched, log: Log) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,9999 +1,9999 @@\n" + "".join(
        f"{'+-'[line % 2]}line {line}\n" for line in range(10_000)
    )
    log.append([ToolCall(id="c", parent_id=None, call_id="c", name="read", args={})])
    log.append([ToolResult(id="d", parent_id=None, call_id="c", ok=True, result=diff)])
    log.append([AssistantMessage(id="m", parent_id=None, text="A line of it.\n" * 375_000)])
    page = watched.watch(log.key)
    expect(page.locator("article .diff-line")).to_have_count(24)

    page.get_by_role("button", name="Show 9,979 more lines").click()
    expect(page.locator("article .diff-line")).to_have_count(424)
    page.keyboard.press("G")
    page.get_by_role("button", name="Load it whole").click()
    expect(page.get_by_text("Long texts were cut here")).to_have_count(0)
    expect(page.get_by_role("button", name="more lines (5.0 MB)")).to_be_visible()


def test_a_table_of_any_width_leaves_what_is_below_it_in_reach_on_a_phone(watched: Watched, log: Log) -> None:
    cells = "|".join(["a long cell of some words"] * 300)
    table = f"{'h|' * 300}\n{'--|' * 300}\n" + f"{cells}\n" * 40
    log.append([UserMessage(id="u", parent_id=None, text=table)])
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.watch(log.key)
    button = page.get_by_role("button", name="Load it whole")
    expect(button).to_be_visible()
    button.scroll_into_view_if_needed()

    box = button.bounding_box()
    assert box is not None
    assert 0 < box["x"] < box["x"] + box["width"] <= 360


def test_a_mark_for_a_letter_that_turns_text_round_is_not_turned_round_itself(watched: Watched, log: Log) -> None:
    log.append([UserMessage(id="u", parent_id=None, text="שלום \u202eevil\u202c עולם")])
    page = watched.watch(log.key)
    marks = page.locator("article .escape")

    expect(marks).to_have_text(["\\u202e", "\\u202c"])
    for mark in marks.all():
        expect(mark).to_have_css("unicode-bidi", "isolate")
        expect(mark).to_have_css("direction", "ltr")


def test_a_lone_surrogate_comes_no_further_than_the_library(log: Log) -> None:
    with pytest.raises(UnencodableEventError):
        log.append([AssistantMessage(id="s", parent_id=None, text="\ud800")])

    assert [] == log.events()


def test_integers_beyond_what_javascript_holds_are_shown_exactly(watched: Watched, log: Log) -> None:
    log.append([ToolCall(id="c", parent_id=None, call_id="c", name="count", args={"n": 2**70 + 1, "f": 0.1})])
    page = watched.watch(log.key)
    page.locator("article .call summary").first.click()

    expect(page.locator(".json-bigint")).to_have_text(str(2**70 + 1))
    watched.show_raw()
    expect(page.locator("article .raw pre")).to_be_visible()
    assert log.events() == watched.raw_events()


def test_a_session_that_says_it_spent_more_tokens_than_a_number_holds_takes_no_other_from_the_list(
    watched: Watched, log: Log
) -> None:
    most = 2**53 - 1
    log.append([Usage(id="u", parent_id=None, input_tokens=most, output_tokens=most, cache_read_tokens=most)] * 2)
    page = watched.watch(log.key)

    expect(page.locator(".session-row", has_text=str(log.key))).to_contain_text("tokens")
    expect(page.locator(".facts")).to_contain_text("36,028.8T in, 18,014.4T out")
