"""What the recordings of Copilot do not show."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
    UserMessage,
)

Read = Callable[..., Any]


@pytest.fixture
def read(session_of: Read) -> Read:
    return lambda *records: session_of(records, find_dialect("@github/copilot").normalizer())


def event(kind: str, envelope: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "parentId": None, **(envelope or {})}


def only(session: Any, kind: type[Any]) -> list[Any]:
    return [found for found in session.events if isinstance(found, kind)]


def kinds(session: Any) -> list[str]:
    return [type(found).__name__ for found in session.events]


def outcomes(session: Any) -> list[object]:
    return [end.outcome for end in only(session, TurnEnd)]


ASKED = event("user.message", content="do it")
ANSWER = event("assistant.message", content="done", toolRequests=[])
CALL = {"toolCallId": "c", "name": "bash", "arguments": '{"command": "ls"}'}
CALLING = event("assistant.message", content="", toolRequests=[CALL])
MODEL_CALL_ENDS = event("assistant.turn_end", turnId="0")


def done(**data: Any) -> dict[str, Any]:
    return event("tool.execution_complete", toolCallId="c", **data)


@pytest.mark.parametrize(
    ("data", "ok", "result", "error"),
    [
        ({"success": True, "result": {"content": "out"}}, True, "out", UNSET),
        ({"success": True, "result": {"content": "no"}, "shellExecution": {"exitCode": 3}}, False, "no", "no"),
        ({"success": True, "shellExecution": {"exitCode": 3}}, False, "exit code 3", "exit code 3"),
        ({"success": False, "error": {"message": "gone", "code": "x"}}, False, "gone", "gone"),
        ({"success": False, "result": {"content": "out"}}, False, "out", "out"),
        ({"success": False}, False, "failed", "failed"),
        ({}, True, None, UNSET),
        ({"result": {"structured": 1}}, True, {"structured": 1}, UNSET),
    ],
)
def test_a_result_fails_however_it_is_marked(
    data: dict[str, Any], result: object, error: object, read: Read, *, ok: bool
) -> None:
    [found] = only(read(ASKED, CALLING, done(**data)), ToolResult)
    assert (ok, result, error) == (found.ok, found.result, found.error)


def test_arguments_may_be_the_text_of_an_object_or_half_of_it(read: Read) -> None:
    cut = event("assistant.message", toolRequests=[{**CALL, "arguments": '{"comm'}])
    assert [{"command": "ls"}, '{"comm'] == [call.args for call in only(read(CALLING, cut), ToolCall)]


def test_a_call_whose_message_was_lost_is_told_by_its_start(read: Read) -> None:
    start = event("tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "ls"})
    assert ["TurnStart", "ToolCall"] == kinds(read(start, start))
    assert 1 == read(CALLING, start).ignored["tool.execution_start"]


def test_results_come_in_any_order(read: Read) -> None:
    both = event("assistant.message", toolRequests=[CALL, {**CALL, "toolCallId": "d"}])
    session = read(ASKED, both, event("tool.execution_complete", toolCallId="d"), done())
    assert ["d", "c"] == [result.call_id for result in only(session, ToolResult)]


def test_every_blob_of_a_thought_is_kept(read: Read) -> None:
    data: dict[str, Any] = {"reasoningText": "hm", "reasoningOpaque": "o", "encryptedContent": "e"}
    thoughts = only(read(event("assistant.message", content="a", **data)), Reasoning)
    assert [("hm", "o"), (UNSET, "e")] == [(found.text, found.provider_continuation) for found in thoughts]


def test_a_thought_by_itself_is_told_once(read: Read) -> None:
    alone = event("assistant.reasoning", reasoningId="r", content="hm")
    said = event("assistant.message", content="a", reasoningText="hm")
    sealed = event("assistant.message", content="a", reasoningText="hm", reasoningOpaque="o")
    for records in ([alone, said], [said, alone], [alone, alone]):
        assert ["hm"] == [found.text for found in only(read(*records), Reasoning)]
    thoughts = only(read(alone, sealed), Reasoning)
    assert [("hm", UNSET), (UNSET, "o")] == [(found.text, found.provider_continuation) for found in thoughts]


def test_a_turn_ends_with_the_model_call_that_asks_for_no_tool(read: Read) -> None:
    session = read(ASKED, CALLING, MODEL_CALL_ENDS, done(), ANSWER, MODEL_CALL_ENDS, ASKED)
    assert ["completed"] == outcomes(session)
    assert ["TurnEnd", "TurnStart", "UserMessage"] == kinds(session)[-3:]


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (event("abort", reason="user_abort"), "interrupted"),
        (event("session.resume"), "interrupted"),
        (event("session.shutdown"), "interrupted"),
        (event("session.error", errorType="quota", message="no more"), FailedOutcome(TurnError("quota", "no more"))),
        (event("session.error"), FailedOutcome(TurnError("error", "error"))),
        ({"type": "result", "exitCode": 0}, "completed"),
        ({"type": "result", "exitCode": 7}, FailedOutcome(TurnError("exit", "exit code 7"))),
        (ASKED, "interrupted"),
    ],
)
def test_a_turn_that_did_not_answer_ends_as_it_was_told(end: dict[str, Any], outcome: object, read: Read) -> None:
    assert [outcome] == outcomes(read(ASKED, CALLING, end))


def test_a_message_in_the_middle_of_a_turn_begins_none(read: Read) -> None:
    steering = event("user.message", content="rather so", delivery="steering")
    assert ["TurnStart", "UserMessage", "ToolCall", "UserMessage"] == kinds(read(ASKED, CALLING, steering))


def test_the_end_of_a_sub_agent_ends_no_turn(read: Read) -> None:
    inside = {"agentId": "a"}
    started = event("subagent.started", inside, toolCallId="c")
    nested = [{**record, **inside} for record in (ASKED, ANSWER, MODEL_CALL_ENDS)]
    failed = [event("session.error", inside, message="x"), event("abort", inside)]
    session = read(ASKED, CALLING, started, *nested, *failed)
    assert [] == outcomes(session)
    assert ["c"] == [found.parent_call_id for found in only(session, AssistantMessage)]


def test_a_sub_agent_whose_start_was_lost_has_its_own_name(read: Read) -> None:
    [found] = only(read({**ANSWER, "agentId": "a"}), AssistantMessage)
    assert "agent:a" == found.parent_call_id


def test_tokens_of_the_whole_session_count_where_no_answer_told_its_own(read: Read) -> None:
    tokens: dict[str, Any] = {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 60}
    left = event("session.shutdown", modelMetrics={"gpt": {"usage": tokens}, "odd": {"usage": None}, "none": 3})
    [total] = only(read(ANSWER, left), Usage)
    assert ("session", "gpt", 40, 60, 7) == (
        total.scope,
        total.model,
        total.input_tokens,
        total.cache_read_tokens,
        total.output_tokens,
    )
    [single] = only(read(event("assistant.usage", model="gpt", **tokens), left), Usage)
    assert (UNSET, 40) == (single.scope, single.input_tokens)


def test_an_input_smaller_than_the_cache_is_without_it(read: Read) -> None:
    [found] = only(read(event("session.usage_record", usage={"inputTokens": 5, "cacheReadTokens": 60})), Usage)
    assert (5, 60) == (found.input_tokens, found.cache_read_tokens)


def test_compactions_and_rewinds_take_the_place_of_events(read: Read) -> None:
    compacted = event("session.compaction_complete", success=True, summaryContent="so far")
    failed = event("session.compaction_complete", success=False)
    asked = event("user.message", {"id": "u2"}, content="again")
    rewound = event("session.snapshot_rewind", upToEventId="u2")
    lost = event("session.snapshot_rewind", upToEventId="unknown")
    session = read(ASKED, ANSWER, compacted, failed, asked, ANSWER, rewound, lost, event("session.context_cleared"))
    assert [("auto", 0, 3, "so far"), ("rewind", 4, 8, UNSET), ("cleared", 0, 9, UNSET)] == [
        (found.reason, found.replaces_from, found.replaces_to, found.summary) for found in only(session, Compaction)
    ]


def test_what_the_system_says_is_the_systems(read: Read) -> None:
    session = read(event("system.message", content="rules"), event("system.notification", content="ready"))
    assert ["rules", "ready"] == [found.text for found in only(session, SystemMessage)]


def test_a_stream_without_its_head_has_a_turn(read: Read) -> None:
    assert ["TurnStart", "AssistantMessage", "TurnEnd"] == kinds(read(ANSWER, MODEL_CALL_ENDS))
    assert 1 == len(only(read(ANSWER), TurnStart))
    assert [] == only(read(done()), TurnStart)


@pytest.mark.parametrize(
    "broken",
    [
        event("user.message"),
        event("assistant.message", content=5),
        event("assistant.message", toolRequests=["x"]),
        event("assistant.message", toolRequests=[{"toolCallId": "c"}]),
        event("tool.execution_start"),
        event("tool.execution_complete", success=True),
        {"data": {}},
        {"type": 5},
        [],
    ],
)
def test_a_malformed_event_is_refused_and_forgotten(broken: object) -> None:
    normalizer, fresh = (find_dialect("@github/copilot").normalizer() for _ in range(2))
    with pytest.raises(DialectError, match="@github/copilot: "):
        normalizer.feed(broken)
    assert [fresh.feed(record) for record in (ASKED, ANSWER)] == [normalizer.feed(record) for record in (ASKED, ANSWER)]


def test_signs_of_life_are_counted_by_kind(read: Read) -> None:
    session = read(event("session.idle"), event("model.call_start"), event("session.truncation"), {"type": "mood"})
    assert {"session.idle": 1, "model.call_start": 1, "session.truncation": 1, "mood": 1} == session.ignored


def test_a_prompt_is_a_prompt(read: Read) -> None:
    assert ["do it"] == [found.text for found in only(read(ASKED), UserMessage)]
