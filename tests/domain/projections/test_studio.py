"""The transcript for people: the reference's items, and those that it lacks."""

import copy
import pickle

import msgspec
from hypothesis import given

from incarnate import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.projections.studio import (
    StudioCompaction,
    StudioItem,
    StudioResult,
    StudioText,
    StudioTranscript,
)
from tests.support.projections import STEPS, fold, hold_against_replay, recorded_logs


def items(*events: SessionEvent | Opaque) -> list[StudioItem]:
    return list(fold(StudioTranscript(), events))


def test_the_items_of_every_recorded_log_are_the_references_byte_for_byte() -> None:
    for log in recorded_logs():
        expected = [msgspec.json.encode(item) for item in log["studio"]]

        assert expected == [msgspec.json.encode(item) for item in items(*log["events"])]


@given(STEPS)
def test_i7_the_transcript_equals_the_fold_of_a_fresh_replay(steps: list[SessionEvent | Opaque | float]) -> None:
    hold_against_replay(StudioTranscript(), steps)


def test_an_item_leads_back_to_its_event() -> None:
    events: list[SessionEvent] = [
        TurnStart(id="a", parent_id=None, turn=0),
        UserMessage(id="b", parent_id="a", text="hi"),
        Usage(id="c", parent_id="b", input_tokens=1, output_tokens=1),
        ToolCall(id="d", parent_id="c", call_id="c0", name="run"),
    ]

    assert [1, 3] == [item.offset for item in items(*events)]


def test_an_item_keeps_its_offset_when_it_is_copied_or_sent() -> None:
    transcript = StudioTranscript()
    transcript.apply(AppendedEvent(0, 1, 0, TurnStart(id="a", parent_id=None, turn=0)))
    transcript.apply(AppendedEvent(1, 1, 0, UserMessage(id="b", parent_id="a", text="hi")))
    item = transcript.value[0]

    sent = pickle.loads(pickle.dumps(item))

    assert (item, 1, 1, 1) == (sent, sent.offset, copy.copy(item).offset, copy.deepcopy(item).offset)


def test_turn_marks_usage_and_unknown_events_have_no_item() -> None:
    events: list[SessionEvent | Opaque] = [
        TurnStart(id="a", parent_id=None, turn=0),
        TurnEnd(id="b", parent_id="a", turn=0),
        Usage(id="c", parent_id="b", input_tokens=1, output_tokens=1),
        Opaque("novel", "d", "c", b'{"type":"novel","id":"d","parentId":"c"}'),
    ]

    assert [] == items(*events)


def test_system_text_is_shown() -> None:
    assert [StudioText(role="system", content="be kind")] == items(
        SystemMessage(id="a", parent_id=None, text="be kind")
    )


def test_a_compaction_is_a_mark_and_hides_nothing() -> None:
    events: list[SessionEvent] = [
        UserMessage(id="a", parent_id=None, text="hi"),
        Compaction(id="b", parent_id="a", reason="full", replaces_from=0, replaces_to=1, summary="they said hi"),
    ]
    mark = StudioCompaction(content="they said hi", reason="full", replaces_from=0, replaces_to=1)

    assert [StudioText(role="user", content="hi"), mark] == items(*events)


def test_words_of_a_sub_agent_name_their_call() -> None:
    inside = AssistantMessage(id="a", parent_id=None, parent_call_id="c0", text="found it")

    assert [StudioText(role="assistant", content="found it", tool_parent_id="c0")] == items(inside)


def test_a_thought_without_text_is_shown_empty() -> None:
    thought = Reasoning(id="a", parent_id=None, provider_continuation="blob")

    assert [StudioText(role="thinking", content="")] == items(thought)


def test_a_failure_without_words_is_still_a_failure() -> None:
    events = [
        ToolResult(id="a", parent_id=None, call_id="c0", ok=False),
        ToolResult(id="b", parent_id=None, call_id="c0", ok=True, error="ignored"),
    ]
    errors = [item.tool_error for item in items(*events) if isinstance(item, StudioResult)]

    assert ["", None] == errors
