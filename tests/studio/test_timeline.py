"""The model of a timeline: what happened in a log, each thing once, whatever the log holds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from incarnate import AppendedEvent, SessionEvent, ToolCall, ToolResult, TurnEnd, TurnStart, UserMessage
from incarnate.studio.masking import mask_text
from incarnate.studio.timeline import Call, SessionTimeline, Timeline, Turn
from tests.support.projections import EVENTS, STEPS, hold_against_replay
from tests.support.told_sessions import TOLD, Told

LINK: dict[str, Any] = {"id": "e", "parent_id": None}
INSIDE: dict[str, Any] = LINK | {"parent_call_id": "task"}


def call(call_id: str = "c", name: str = "Bash", **fields: Any) -> ToolCall:
    told: dict[str, Any] = LINK | {"args": None} | fields
    return ToolCall(**told, call_id=call_id, name=name)


def result(call_id: str = "c", *, ok: bool = True, **fields: Any) -> ToolResult:
    told: dict[str, Any] = LINK | fields
    return ToolResult(**told, call_id=call_id, ok=ok)


def timeline_of(*events: SessionEvent, at: tuple[int, ...] = ()) -> Timeline:
    timeline = SessionTimeline()
    for offset, event in enumerate(events):
        timeline.apply(AppendedEvent(offset, 1, at[offset] if at else 1000 * offset, event))
    return timeline.value


@given(STEPS)
def test_it_equals_that_of_a_fresh_replay_whatever_happened(steps: list[Any]) -> None:  # I7
    hold_against_replay(SessionTimeline(), steps)


@given(TOLD)
def test_each_turn_and_call_of_a_log_is_in_it_once(told: Told) -> None:
    timeline = SessionTimeline()
    for appended in told.events:
        timeline.apply(appended)
    found = timeline.value
    begun = [each.offset for each in told.events if isinstance(each.event, ToolCall)]
    ended = [each.offset for each in told.events if isinstance(each.event, ToolResult)]
    marks = [each.offset for each in told.events if isinstance(each.event, TurnStart | TurnEnd)]

    assert begun == [one.start for one in found.calls if one.name is not None]
    assert ended == sorted(one.stop for one in found.calls if one.stop is not None)
    assert marks == sorted(
        [one.start for one in found.turns if one.has_start] + [one.stop for one in found.turns if one.stop is not None]
    )
    assert len(told.events) == len(found.moments)


@given(st.lists(EVENTS, max_size=20), st.data())
def test_a_rewind_forgets_what_it_cut_and_no_more(events: list[SessionEvent], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    timeline, shorter = SessionTimeline(), SessionTimeline()
    for offset, event in enumerate(events):
        timeline.apply(AppendedEvent(offset, 1 + offset // 7, offset, event))
    for offset, event in enumerate(events[:cut]):
        shorter.apply(AppendedEvent(offset, 1 + offset // 7, offset, event))
    timeline.rewind(cut)

    assert shorter.value == timeline.value


def test_a_result_answers_the_latest_call_of_its_id() -> None:
    found = timeline_of(call(), call(), result(), result(ok=False, error="boom"), result())

    assert [(0, 3, False), (1, 2, True), (4, 4, True)] == [(one.start, one.stop, one.ok) for one in found.calls]
    assert ["Bash", "Bash", None] == [one.name for one in found.calls]
    assert "boom" == found.calls[0].error


def test_a_call_without_a_result_has_no_end() -> None:
    [found] = timeline_of(call(args={"command": "make  bench\nnow"})).calls

    assert Call(0, None, 0, "c", "Bash", "make bench now", None, None) == found


def test_turns_of_a_sub_agent_are_in_its_own_lane() -> None:
    found = timeline_of(
        TurnStart(**LINK, turn=1),
        call("task", "Task"),
        TurnStart(**INSIDE, turn=1),
        TurnEnd(**INSIDE, turn=1),
        TurnEnd(**LINK, turn=1, outcome="cancelled"),
    )

    assert [
        Turn(0, 4, 0, "1", "cancelled", None, has_start=True),
        Turn(2, 3, 1, "1", "completed", None, has_start=True),
    ] == list(found.turns)
    assert [(None, 0), ("task", 2)] == list(found.lanes)


def test_an_event_lies_where_its_harness_says_that_it_happened() -> None:
    def said(moment: str) -> UserMessage:
        return UserMessage(**LINK, text="hi", occurred_at=moment)

    first, second = said("2026-11-30T19:00:00Z"), said("2026-11-30T19:00:09.5Z")
    ingested_later = (1_800_000_000_000, 1_800_000_000_000, 1_800_000_000_003, 1_800_000_000_003)
    found = timeline_of(TurnStart(**LINK, turn=0), first, TurnEnd(**LINK, turn=0), second, at=ingested_later)
    begin = 1_796_065_200_000

    assert (begin, begin, begin + 3, begin + 9500) == found.moments


def test_a_turn_begins_with_what_follows_not_with_what_came_before() -> None:
    def said(moment: str) -> UserMessage:
        return UserMessage(**LINK, text="hi", occurred_at=f"1970-01-01T{moment}Z")

    evening, morning = said("00:00:01"), said("12:00:00")
    ingested_at_once = timeline_of(
        evening, TurnEnd(**LINK, turn=0), TurnStart(**LINK, turn=1), morning, at=(9, 9, 9, 9)
    )
    live = timeline_of(evening, TurnStart(**LINK, turn=1), morning, at=(0, 43_190_000, 43_199_000))

    assert (1000, 1000, 43_200_000, 43_200_000) == ingested_at_once.moments
    assert (1000, 43_191_000, 43_200_000) == live.moments


def test_a_time_that_cannot_be_read_is_none() -> None:
    found = timeline_of(UserMessage(**LINK, text="hi", occurred_at="yesterday"), at=(5,))

    assert (5,) == found.moments


def test_secrets_are_masked_before_they_are_shortened() -> None:
    secret = "sk-" + "a1" * 40
    timeline = SessionTimeline(mask_text)
    events: list[SessionEvent] = [
        call(args={"command": "x" * 100 + " " + secret}),
        result(ok=False, error=f"refused {secret}"),
        TurnStart(**LINK, turn=0, label=secret),
    ]
    for offset, event in enumerate(events):
        timeline.apply(AppendedEvent(offset, 1, 0, event))
    found = timeline.value

    assert "refused [masked]" == found.calls[0].error
    assert "sk-" not in repr(found)


def test_the_mask_is_part_of_the_name() -> None:
    assert SessionTimeline().name != SessionTimeline(mask_text).name
    assert SessionTimeline(mask_text).name == SessionTimeline(mask_text).fresh().name
