"""The frames of a streaming client, as the reference sent them."""

import msgspec
import pytest
from hypothesis import given

from incarnate import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
)
from incarnate.domain.projections.frames import ClientFrames, Frame, StatusPayload, TurnEndPayload
from tests.support.projections import STEPS, fold, hold_against_replay, recorded_logs


def frames(*events: SessionEvent | Opaque) -> list[Frame]:
    return list(fold(ClientFrames(), events))


def test_the_frames_of_every_recorded_log_are_the_references_byte_for_byte() -> None:
    for log in recorded_logs():
        expected = [msgspec.json.encode(frame) for frame in log["sse"]]

        assert expected == [msgspec.json.encode(frame) for frame in frames(*log["events"])]


@given(STEPS)
def test_i7_the_frames_equal_the_fold_of_a_fresh_replay(steps: list[SessionEvent | Opaque | float]) -> None:
    hold_against_replay(ClientFrames(), steps)


def test_a_failed_turn_says_kind_and_message() -> None:
    end = TurnEnd(id="a", parent_id=None, turn=0, outcome=FailedOutcome(TurnError("stream", "cut off")))

    assert [TurnEndPayload("error", "stream: cut off"), StatusPayload("error", "stream: cut off")] == [
        frame.data.payload for frame in frames(end)
    ]


def test_the_calls_of_a_sub_agent_are_seen_and_its_words_are_not() -> None:
    events: list[SessionEvent] = [
        TurnStart(id="a", parent_id=None, parent_call_id="c0", turn=0),
        Reasoning(id="b", parent_id="a", parent_call_id="c0", text="hm"),
        ToolCall(id="c", parent_id="b", parent_call_id="c0", call_id="c1", name="run"),
        AssistantMessage(id="d", parent_id="c", parent_call_id="c0", text="found it"),
        TurnEnd(id="e", parent_id="d", parent_call_id="c0", turn=0),
    ]

    assert ["tool"] == [frame.event for frame in frames(*events)]


@pytest.mark.parametrize(
    "event",
    [
        SystemMessage(id="a", parent_id=None, text="be kind"),
        Usage(id="a", parent_id=None, input_tokens=1, output_tokens=1),
        Compaction(id="a", parent_id=None, reason="full", replaces_from=0, replaces_to=0),
        Reasoning(id="a", parent_id=None, provider_continuation="blob"),
        Opaque("novel", "a", None, b'{"type":"novel","id":"a","parentId":null}'),
    ],
)
def test_what_a_client_never_saw_has_no_frame(event: SessionEvent | Opaque) -> None:
    assert [] == frames(event)


def test_frames_after_a_rewind_go_on_from_the_turn_before_it() -> None:
    frames = ClientFrames()
    events: list[SessionEvent] = [
        TurnStart(id="a", parent_id=None, turn=0),
        TurnStart(id="b", parent_id="a", turn=1),
        AssistantMessage(id="c", parent_id="a", text="hi"),
    ]
    hold_against_replay(frames, [events[0], events[1], 0.5, events[2]])

    assert (1, 1) == (frames.value[-1].data.turn, frames.value[-1].data.seq)
