"""The analysis of a log, as the reference makes it, kept up to date."""

import json
from typing import Any

import pytest
from hypothesis import given

from incarnate import (
    AppendedEvent,
    AssistantMessage,
    OffsetError,
    Opaque,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnStart,
    UserMessage,
)
from incarnate.domain.projections.analysis import Analysis, DanglingCall, NonMonotonicTurn, ReplayAnalysis
from tests.support.projections import STEPS, appended, fold, hold_against_replay, recorded_logs


def analysis(*events: SessionEvent | Opaque) -> Analysis:
    return fold(ReplayAnalysis(), events)


def call(call_id: str, name: str = "run") -> ToolCall:
    return ToolCall(id="e", parent_id=None, call_id=call_id, name=name)


def result(call_id: str) -> ToolResult:
    return ToolResult(id="e", parent_id=None, call_id=call_id, ok=True)


def start(turn: int) -> TurnStart:
    return TurnStart(id="e", parent_id=None, turn=turn)


def test_the_analysis_of_every_recorded_log_is_the_references() -> None:
    for log in recorded_logs():
        expected = log["analysis"] | {"nextTurn": log["nextTurn"]}

        assert json.dumps(expected) == json.dumps(analysis(*log["events"]).as_json())


@given(STEPS)
def test_i7_the_analysis_equals_the_fold_of_a_fresh_replay(steps: list[SessionEvent | Opaque | float]) -> None:
    hold_against_replay(ReplayAnalysis(), steps)


def test_a_value_stays_as_it_was_when_it_was_read() -> None:
    live = ReplayAnalysis()
    live.apply(AppendedEvent(0, 1, 0, call("c0")))
    value, before = live.value, json.dumps(live.value.as_json())
    for each in appended([call("c0"), start(3), result("c0"), result("c1")])[1:]:
        live.apply(each)
    live.rewind(0)

    assert before == json.dumps(value.as_json())


def test_calls_without_results_keep_the_order_of_the_log_through_a_rewind() -> None:
    live = ReplayAnalysis()
    for each in appended([call("c0"), call("c1"), call("c0", "read"), result("c0")]):
        live.apply(each)
    live.rewind(3)

    assert (DanglingCall("c0", "read"), DanglingCall("c1", "run")) == live.value.dangling_tool_calls


def test_a_result_that_came_before_its_call_is_an_orphan_only_until_then() -> None:
    assert ("c0",) == analysis(result("c0")).orphan_tool_results
    assert () == analysis(result("c0"), call("c0")).orphan_tool_results


def test_the_audit_names_turns_that_fall_and_turns_that_come_again() -> None:
    audit = analysis(start(2), start(1), start(2)).turn_ids

    assert ([NonMonotonicTurn(1, "turn-2", "turn-1")], ["turn-2"]) == (
        list(audit.non_monotonic),
        list(audit.duplicates),
    )


def test_the_words_and_turns_of_a_sub_agent_are_its_own_but_its_turn_numbers_are_taken() -> None:
    inside: dict[str, Any] = {"id": "e", "parent_id": None, "parent_call_id": "c0"}
    found = analysis(
        UserMessage(**inside, text="look"), AssistantMessage(**inside, text="done"), TurnStart(**inside, turn=6)
    )

    assert (0, 0, 0, 7) == (found.user_messages, found.assistant_messages, found.turn_starts, found.next_turn)


def test_an_event_out_of_its_turn_is_refused_and_changes_nothing() -> None:
    live = ReplayAnalysis()

    with pytest.raises(OffsetError, match="ReplayAnalysis has come to offset 0; it cannot take 1"):
        live.apply(AppendedEvent(1, 1, 0, call("c0")))
    with pytest.raises(OffsetError):
        live.rewind(1)

    assert (live.fresh().value, 0) == (live.value, live.generation)


def test_a_rewind_of_ten_looks_at_ten() -> None:
    live = ReplayAnalysis()
    for each in appended([call(f"c{number}") for number in range(1000)]):
        live.apply(each)
    looked_at = CountingList(live._undo)  # noqa: SLF001
    live._undo = looked_at  # noqa: SLF001
    live.rewind(990)

    assert (10, 990) == (looked_at.popped, live.value.tool_calls)


class CountingList(list[Any]):
    popped = 0

    def pop(self, *args: Any) -> Any:
        self.popped += 1
        return super().pop(*args)
