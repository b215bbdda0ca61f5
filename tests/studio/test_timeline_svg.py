"""The drawing of a timeline: all that is in the log, bounded, and nothing in it that could run or reach out."""

import re
import time
from collections import Counter
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate import AppendedEvent, SessionEvent, ToolCall, ToolResult, TurnEnd, TurnStart, Usage, UserMessage
from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.rewinds import Rewind
from incarnate.studio.svg import element, safe_text
from incarnate.studio.timeline import SessionTimeline, Timeline
from incarnate.studio.timeline_scene import Scene, make_scene
from incarnate.studio.timeline_svg import draw_timeline
from tests.support.told_sessions import TOLD, Told

LINK: dict[str, Any] = {"id": "e", "parent_id": None}
ELEMENTS = {"svg", "g", "rect", "line", "path", "text", "title", "desc"}
ATTRIBUTES = {
    *("class", "role", "aria-label", "tabindex", "data-offset", "viewBox", "width", "height", "x", "y", "x1", "x2"),
    *("y1", "y2", "rx", "d", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"),
    *("font-family", "font-size", "font-weight", "font-style", "text-anchor", "color"),
}
WIDTHS = st.sampled_from([0, 320, 360, 1200, 9999])


def timeline_of(events: list[AppendedEvent]) -> Timeline:
    timeline = SessionTimeline()
    for appended in events:
        timeline.apply(appended)
    return timeline.value


def scene_of(told: Told, width: int = 1200) -> Scene:
    return make_scene(timeline_of(told.events), width, told.checkpoints, told.rewinds, headed=True)


def drawing(told: Told, width: int = 1200, heading: str | None = "a/b") -> str:
    timeline = timeline_of(told.events)
    named: dict[str, Any] = {"checkpoints": told.checkpoints, "rewinds": told.rewinds, "fence": 3}
    return draw_timeline(timeline, width=width, heading=heading, **named)


def session(events: list[SessionEvent], step_ms: int = 1000) -> Told:
    return Told([AppendedEvent(number, 1, number * step_ms, event) for number, event in enumerate(events)], [], [])


def name_of(node: ET.Element) -> str:
    space, _, name = node.tag.rpartition("}")
    assert "{http://www.w3.org/2000/svg" == space
    return name


@given(TOLD, WIDTHS, st.sampled_from([None, "a/b", "<script>"]))
def test_it_is_well_formed_and_holds_known_elements_and_attributes_alone(
    told: Told, width: int, heading: str | None
) -> None:
    root = ET.fromstring(drawing(told, width, heading))
    nodes = list(root.iter())

    assert {name_of(node) for node in nodes} <= ELEMENTS
    assert {name for node in nodes for name in node.attrib} <= ATTRIBUTES
    assert not [value for node in nodes for value in node.attrib.values() if "url(" in value and node is not root]


@given(TOLD, WIDTHS)
def test_everything_lies_on_the_drawing_and_leads_to_an_event_of_the_log(told: Told, width: int) -> None:
    root = ET.fromstring(drawing(told, width))
    right, bottom = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [node for node in root.iter() if name_of(node) == "rect"]
    links = [int(node.attrib["data-offset"]) for node in root.iter() if "data-offset" in node.attrib]

    assert all(0 <= float(box.get("x", 0)) <= right and 0 <= float(box.get("y", 0)) <= bottom for box in boxes)
    assert all(float(box.attrib["width"]) >= 0 and float(box.attrib["height"]) >= 0 for box in boxes)
    assert all(0 <= offset < max(1, len(told.events)) for offset in links)


def shapes(scene: Scene) -> Counter[str]:
    """How many things are drawn, those that share a shape counted."""
    drawn: Counter[str] = Counter()
    for bar in scene.bars:
        # A narrow band stands for the calls inside it.
        drawn["call" if bar.part == "agent" else bar.part] += bar.many
    for mark in scene.marks:
        drawn[mark.part] += mark.many
    return drawn


def things(told: Told) -> Counter[str]:
    """How many there are in the log."""
    timeline = timeline_of(told.events)
    words = Counter(word.kind for word in timeline.words if word.lane == 0)
    return words + Counter(
        call=len(timeline.calls),
        turn=sum(turn.lane == 0 for turn in timeline.turns),
        writer=len(timeline.writers),
        checkpoint=sum(one.offset <= len(told.events) for one in told.checkpoints),
        rewind=len(told.rewinds),
    )


@given(TOLD, st.sampled_from([320, 1200]))
def test_each_thing_is_drawn_once_alone_or_in_one_with_others(told: Told, width: int) -> None:
    assert things(told) == shapes(scene_of(told, width))


def test_each_thing_of_a_long_log_is_drawn_in_one_with_others() -> None:
    told = Told(large(20_000), [], [])
    scene = scene_of(told)

    assert things(told) == shapes(scene)
    assert len(scene.bars) + len(scene.marks) + len(scene.columns) < 3000


@given(TOLD)
def test_what_leads_somewhere_is_a_link_with_a_title(told: Told) -> None:
    links = [node for node in ET.fromstring(drawing(told)).iter() if "data-offset" in node.attrib]

    assert all("link" == node.attrib["role"] and node.attrib["tabindex"] in {"0", "-1"} for node in links)
    assert all("title" == name_of(node[0]) and node[0].text for node in links)


@pytest.mark.parametrize("text", ["<a>&\"'", "\x00\x1b\u202e\ud800\ufffe", "plain é世界"])
def test_any_text_can_be_written(text: str) -> None:
    markup = element("text", {"class": text, "left_out": None}, [safe_text(text)])
    found = ET.fromstring(markup)

    assert found.attrib == {"class": found.text}
    assert not re.search("[\x00-\x08\u202e\ud800\ufffe]", markup)
    assert found.text in {text, "\\u0000\\u001b\\u202e\\ud800\\ufffe"}


def test_a_failed_call_is_red_and_says_why() -> None:
    calls: list[SessionEvent] = [
        ToolCall(**LINK, call_id="c", name="Bash", args={"command": "make <all>"}),
        ToolResult(**LINK, call_id="c", ok=False, result=None, error="exit 2"),
    ]
    [bar] = [node for node in ET.fromstring(drawing(session(calls))).iter() if node.get("class") == "tl-call"]

    assert "Bash: make <all> · failed after 1.0 s: exit 2 · offsets 0 to 1 · 1970-01-01T00:00:00.000Z" == bar[0].text
    assert "#d1443c" == bar[1].attrib["fill"]


def test_a_call_that_a_take_over_left_without_a_result_is_dashed_up_to_it() -> None:
    call = ToolCall(**LINK, call_id="c", name="Bash", args=None)
    said = UserMessage(**LINK, text="hi")
    events = [AppendedEvent(0, 1, 0, call), AppendedEvent(1, 2, 9000, said), AppendedEvent(2, 2, 9100, said)]
    scene = scene_of(Told(events, [], []))
    [bar] = [bar for bar in scene.bars if bar.part == "call"]

    assert "lost" == bar.state
    assert scene.axis.xs[1] == bar.right
    assert [scene.axis.xs[1]] == [rule.x for rule in scene.rules if rule.part == "takeover"]


def test_an_incarnation_that_has_written_nothing_yet_is_a_line_at_the_end() -> None:
    timeline = timeline_of(session([UserMessage(**LINK, text="hi")]).events)
    scenes = [make_scene(timeline, 800, (), (), fence=fence, headed=False) for fence in (None, 1, 2)]

    assert [[], [], [scenes[2].axis.xs[-1]]] == [[rule.x for rule in scene.rules] for scene in scenes]


def test_a_call_of_the_last_writer_may_still_run() -> None:
    scene = scene_of(session([ToolCall(**LINK, call_id="c", name="Bash", args=None), UserMessage(**LINK, text="hi")]))

    assert ["open"] == [bar.state for bar in scene.bars if bar.part == "call"]


def test_calls_at_once_lie_in_rows_of_their_own() -> None:
    events: list[SessionEvent] = [ToolCall(**LINK, call_id=str(n), name="Task", args=None) for n in range(3)]
    events += [ToolResult(**LINK, call_id=str(n), ok=True) for n in range(3)]
    scene = scene_of(session(events))

    assert 3 == len({bar.top for bar in scene.bars if bar.part == "call"})


def test_what_happens_inside_a_call_is_drawn_in_a_band_that_names_it() -> None:
    inside: dict[str, Any] = LINK | {"parent_call_id": "task"}
    events: list[SessionEvent] = [
        ToolCall(**LINK, call_id="task", name="Task", args={"description": "look for races"}),
        ToolCall(**inside, call_id="c", name="Grep", args=None),
        ToolResult(**inside, call_id="c", ok=True),
        ToolResult(**LINK, call_id="task", ok=True),
    ]
    scene = scene_of(session(events))
    [band] = [bar for bar in scene.bars if bar.part == "agent"]
    [call] = [bar for bar in scene.bars if bar.part == "call" and bar.tone == scene_tone(scene, "Grep")]

    assert "look for races" == band.label
    assert band.left <= call.left < call.right <= band.right
    assert band.top < call.top < band.top + band.height


def scene_tone(scene: Scene, tool: str) -> str:
    return next(tone for tone, name in scene.tones.items() if name == tool)


def test_running_totals_are_drawn_by_how_much_they_grow() -> None:
    totals = [(100, 10), (300, 30), (50, 5)]
    usages: list[SessionEvent] = [
        Usage(**LINK, input_tokens=read, output_tokens=wrote, scope="session") for read, wrote in totals
    ]
    columns = scene_of(session(usages)).columns

    assert ["100 input", "200 input", "50 input"] == [column.title.split(",")[0][8:] for column in columns]


def large(events: int) -> list[AppendedEvent]:
    """A log of many turns of many calls with sub-agents, each thing a moment after the other."""
    log: list[SessionEvent] = []
    turn = 0
    while len(log) < events:
        turn += 1
        log.append(TurnStart(**LINK, turn=turn))
        for number in range(turn % 23):
            call_id = f"c{len(log)}"
            inside: dict[str, Any] = LINK | ({"parent_call_id": f"t{turn - turn % 5}"} if number % 3 == 0 else {})
            log.append(
                ToolCall(**inside, call_id=call_id, name=f"tool{number % 9}", args={"command": f"make {number}"})
            )
            if number % 7 != 6:
                log.append(ToolResult(**inside, call_id=call_id, ok=number % 5 != 4, result="out"))
            log.append(Usage(**LINK, input_tokens=number, output_tokens=1))
        log.append(UserMessage(**LINK, text="go on"))
        if turn % 4:
            log.append(TurnEnd(**LINK, turn=turn, outcome="cancelled" if turn % 11 == 0 else "completed"))
    return [AppendedEvent(at, 1 + at // 997, at * 700 * (1 + at % 13), event) for at, event in enumerate(log[:events])]


@pytest.mark.parametrize("width", [360, 1200, 2400])
def test_a_hundred_thousand_events_are_a_bounded_number_of_shapes(width: int) -> None:
    timeline = timeline_of(large(100_000))
    began = time.process_time()
    drawn = draw_timeline(timeline, width=width)
    took = time.process_time() - began

    assert len(drawn) < 1_000_000
    assert drawn.count("<") // 2 < 12_000
    assert took < 25  # 0.2 s, and 2.5 under coverage on a busy machine; a quadratic one takes a thousand times it


def legend_of(text: str) -> list[str]:
    return re.findall(r'class="tl-legend">.*?<text[^>]*>(.*?)</text>', text)


def test_what_is_drawn_beside_the_bars_is_in_the_legend() -> None:
    calls: list[SessionEvent] = []
    for number in range(3000):
        calls += [ToolCall(**LINK, call_id=f"c{number}", name="run", args=None)]
        calls += [ToolResult(**LINK, call_id=f"c{number}", ok=True)]
    told = session(calls)
    saved = Checkpoint(id="cp", offset=10, commit_sha="abc", effect_ledger=(), incarnation=1, at="2026-01-01T00:00:00Z")

    assert "run" in legend_of(drawing(told))
    assert {"several in one, as most are", "checkpoint"} <= set(legend_of(drawing(told._replace(checkpoints=[saved]))))


def test_a_rewind_by_who_took_over_is_beside_its_line() -> None:
    events: list[Any] = [AppendedEvent(n, 1 + n // 5, n, UserMessage(**LINK, text="x")) for n in range(10)]
    rewind = Rewind(generation=1, cut=5, head=8, incarnation=2, at_ms=5)
    lines = {rule.part: rule.x for rule in scene_of(Told(events, [], [rewind])).rules}

    assert 2 <= abs(lines["takeover"] - lines["rewind"]) <= 4
