"""What the recordings do not show: other versions, damaged records, rare records."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import UsageLedger
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
    UserMessage,
)

Read = Callable[..., Any]
INIT = {"type": "system", "subtype": "init", "session_id": "s"}
TOKENS = {
    "input_tokens": 200,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 900,
    "output_tokens": 1,
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def called(call_id: str, **args: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Agent", "input": args}


def answered(call_id: str, content: object = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def stream(role: str, *content: dict[str, Any], name: str = "m1", **more: object) -> dict[str, Any]:
    message: dict[str, Any] = {"id": name, "role": role, "model": "opus", "content": list(content)}
    if role == "assistant":
        message["usage"] = TOKENS
    return {"type": role, "message": message, "parent_tool_use_id": None, "session_id": "s", **more}


def disk(role: str, *content: dict[str, Any], name: str = "m1", stop: str | None = None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"id": name, "role": role, "model": "opus", "content": list(content), "stop_reason": stop}
    if role == "assistant":
        message["usage"] = {**TOKENS, "output_tokens": more.pop("output", 42)}
    return {"type": role, "message": message, "isSidechain": False, "sessionId": "s", **more}


def done(**more: object) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", **more}


def kinds(session: Any) -> list[str]:
    return [type(event).__name__ for event in session.events]


def only(session: Any, kind: type[Any]) -> list[Any]:
    return [event for event in session.events if isinstance(event, kind)]


@pytest.mark.parametrize("envelope", [{}, {"session_id": "s"}, {"sessionId": "s"}])
@pytest.mark.parametrize(
    "broken",
    [
        {"type": "assistant"},
        {"type": "user", "message": "hello"},
        {"type": "user", "message": {"role": "user"}},
        {"type": "assistant", "message": {"content": 5}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": "x"}]}},
        {"uuid": "no type"},
    ],
)
def test_a_malformed_record_is_refused_and_forgotten(broken: dict[str, Any], envelope: dict[str, Any]) -> None:
    normalizer, fresh = (find_dialect("claude-code").normalizer() for _ in range(2))
    with pytest.raises(DialectError, match="claude-code: "):
        normalizer.feed({**broken, **envelope, "uuid": "u"})
    sound = {**stream("user", text("hi")), "uuid": "u"}
    assert fresh.feed(sound) == normalizer.feed(sound)


def test_records_of_unknown_kinds_are_counted_by_kind(session_of: Read) -> None:
    records = [{"type": "mood", "session_id": "s"}, {"type": "system", "subtype": "new", "sessionId": "s"}, INIT]
    assert {"mood": 1, "system/new": 1} == session_of(records).ignored


def test_a_message_of_nothing_is_counted(session_of: Read) -> None:
    assert {"user/empty": 1} == session_of([disk("user")]).ignored


def test_parallel_calls_keep_the_order_of_the_file(session_of: Read) -> None:
    records = [
        stream("assistant", called("a")),
        stream("user", answered("a")),
        stream("assistant", called("b")),
        stream("user", answered("b")),
    ]
    session = session_of([INIT, *records])
    assert ["TurnStart", "ToolCall", "Usage", "ToolResult", "ToolCall", "ToolResult"] == kinds(session)


def test_a_turn_of_many_messages_is_accounted_for_in_bounded_memory() -> None:
    ledger = UsageLedger()
    total = 10_000
    for number in range(total):
        ledger.message({"id": f"m{number}", "model": "opus", "usage": TOKENS}, Stamp())

    [rest] = ledger.result({"usage": {name: total * count + 7 for name, count in TOKENS.items()}}, Stamp())

    assert isinstance(rest, Usage)
    assert (7, 7) == (rest.input_tokens, rest.output_tokens)
    assert len(pickle.dumps(ledger)) < 1_000_000


def test_usage_that_grows_from_line_to_line_is_counted_in_full(session_of: Read) -> None:
    lines = [disk("assistant", text("a"), output=output) for output in (3, 3, 8, 322)]
    assert 322 == sum(usage.output_tokens for usage in only(session_of(lines), Usage))


def test_an_old_result_tells_the_main_agents_tokens_alone(session_of: Read) -> None:
    inner = stream("assistant", text("inner"), name="m2", parent_tool_use_id="t")
    result = done(usage={**TOKENS, "output_tokens": 42})
    usages = only(session_of([INIT, stream("assistant", text("outer")), inner, result]), Usage)
    assert [(200, 1), (200, 1), (0, 41)] == [(usage.input_tokens, usage.output_tokens) for usage in usages]
    assert [UNSET, "t", UNSET] == [usage.parent_call_id for usage in usages]


@pytest.mark.parametrize("key", ["opus", "opus[1m]", "opus-20261130"])
def test_a_result_may_name_the_model_more_exactly(key: str, session_of: Read) -> None:
    truth = {"inputTokens": 200, "outputTokens": 42, "cacheReadInputTokens": 900, "cacheCreationInputTokens": 100}
    helper = {"inputTokens": 7, "outputTokens": 5}
    result = done(model_usage_since_last_result={"haiku": helper, key: truth})
    usages = only(session_of([INIT, stream("assistant", text("a")), result]), Usage)
    assert [("opus", 200, 1), ("haiku", 7, 5), (key, 0, 41)] == [
        (u.model, u.input_tokens, u.output_tokens) for u in usages
    ]


def test_counts_that_make_no_sense_are_nothing(session_of: Read) -> None:
    odd = stream("assistant", text("a"))
    odd["message"]["usage"] = {"input_tokens": -1, "output_tokens": "many", "cache_read_input_tokens": 1e300}
    [usage] = only(session_of([odd]), Usage)
    assert (0, 0, UNSET) == (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({}, "completed"),
        ({"subtype": "error_max_turns", "is_error": True}, "step_limit"),
        ({"subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}, "interrupted"),
        (
            {"subtype": "error_during_execution", "errors": ["out of", "luck"]},
            FailedOutcome(TurnError("error_during_execution", "out of; luck")),
        ),
        (
            {"is_error": True, "api_error": "connection_failed", "result": "lost"},
            FailedOutcome(TurnError("connection_failed", "lost")),
        ),
    ],
)
def test_a_result_tells_the_outcome(result: dict[str, Any], outcome: object, session_of: Read) -> None:
    assert [outcome] == [end.outcome for end in only(session_of([INIT, done(**result)]), TurnEnd)]


def test_an_old_result_after_an_interruption_is_one(session_of: Read) -> None:
    records = [INIT, stream("user", text("[Request interrupted by user]")), done(subtype="error_during_execution")]
    assert ["interrupted"] == [end.outcome for end in only(session_of(records), TurnEnd)]


def test_a_stream_that_begins_in_the_middle_has_a_turn_too(session_of: Read) -> None:
    assert ["TurnStart", "AssistantMessage", "Usage", "TurnEnd"] == kinds(
        session_of([stream("assistant", text("so")), done()])
    )


def test_a_prompt_echoed_before_its_init_begins_one_turn(session_of: Read) -> None:
    records = [stream("user", text("go")), INIT, stream("assistant", text("ok")), done()]
    session = session_of([*records, INIT, stream("assistant", text("more"), name="m2"), done()])
    assert [0, 1] == [start.turn for start in only(session, TurnStart)]
    assert ["completed", "completed"] == [end.outcome for end in only(session, TurnEnd)]


def test_a_repeated_record_is_counted_once(session_of: Read) -> None:
    record = disk("user", text("hi"), uuid="u1")
    session = session_of([record, record])
    assert ["TurnStart", "UserMessage"] == kinds(session)
    assert 1 == session.ignored["user/duplicate"]


def test_what_is_no_text_in_a_prompt_is_counted(session_of: Read) -> None:
    session = session_of([disk("user", {"type": "image"}, text("what is this?"))])
    assert ["TurnStart", "UserMessage"] == kinds(session)
    assert 1 == session.ignored["user/image"]


def test_tools_of_the_provider_are_calls_and_results(session_of: Read) -> None:
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]}
    session = session_of([disk("assistant", call, found)])
    assert [("s1", "web_search")] == [(event.call_id, event.name) for event in only(session, ToolCall)]
    assert [("s1", [{"url": "u"}])] == [(event.call_id, event.result) for event in only(session, ToolResult)]


def test_a_redacted_thought_keeps_its_blob_alone(session_of: Read) -> None:
    [thought] = only(session_of([disk("assistant", {"type": "redacted_thinking", "data": "blob"})]), Reasoning)
    assert (UNSET, "blob") == (thought.text, thought.provider_continuation)


def test_an_old_sidechain_in_the_main_file_is_found_by_its_prompt(session_of: Read) -> None:
    side = {"isSidechain": True, "parentUuid": None}
    root = {**disk("user", uuid="r"), **side, "message": {"role": "user", "content": "look"}}
    child = {**disk("assistant", text("looked"), name="m2", uuid="c"), **side, "parentUuid": "r"}
    session = session_of([disk("assistant", called("t", prompt="look"), uuid="a"), root, child])
    assert ["t"] == [event.parent_call_id for event in only(session, UserMessage)]
    assert ["t"] == [event.parent_call_id for event in only(session, AssistantMessage)]


def test_a_prompt_queued_in_the_middle_of_a_turn_is_in_it(session_of: Read) -> None:
    queued = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and b"}, "sessionId": "s"}
    session = session_of([disk("user", text("a")), queued])
    assert ["TurnStart", "UserMessage", "UserMessage"] == kinds(session)


def test_a_command_of_the_harness_is_no_turn(session_of: Read) -> None:
    session = session_of(
        [disk("user", text("<command-name>/cost</command-name>")), disk("user", text("a"), isMeta=True)]
    )
    assert ["UserMessage", "UserMessage"] == kinds(session)


def test_a_turn_is_completed_when_the_harness_leaves_after_an_answer(session_of: Read) -> None:
    left = {"type": "cost-state", "sessionId": "s"}
    asked, answer = disk("user", text("a")), disk("assistant", text("b"), stop="end_turn")
    calling = disk("assistant", called("t"), name="m2", stop="tool_use")
    assert [["completed"], []] == [
        [end.outcome for end in only(session_of([asked, last, left]), TurnEnd)] for last in (answer, calling)
    ]


BOUNDARY = {
    "type": "system",
    "subtype": "compact_boundary",
    "session_id": "s",
    "compact_metadata": {"trigger": "auto", "pre_tokens": 9},
}


def test_a_compaction_waits_for_its_summary(session_of: Read) -> None:
    summary = stream("user", text("so far"), isSynthetic=True)
    session = session_of([INIT, stream("assistant", text("a")), BOUNDARY, summary])
    [compaction] = only(session, Compaction)
    assert ("auto", 0, 3, "so far") == (
        compaction.reason,
        compaction.replaces_from,
        compaction.replaces_to,
        compaction.summary,
    )
    assert [] == only(session, UserMessage)


@pytest.mark.parametrize("after", [stream("assistant", text("b"), name="m2"), done(), BOUNDARY, INIT])
def test_a_compaction_without_a_summary_is_one_all_the_same(after: dict[str, Any], session_of: Read) -> None:
    session = session_of([INIT, stream("user", text("a")), BOUNDARY, after])
    assert [(0, 2, UNSET)] == [(c.replaces_from, c.replaces_to, c.summary) for c in only(session, Compaction)]


def test_a_summary_without_a_boundary_is_a_compaction(session_of: Read) -> None:
    session = session_of([disk("user", text("a")), disk("user", text("so far"), isCompactSummary=True)])
    assert [(0, 2, "so far")] == [(c.replaces_from, c.replaces_to, c.summary) for c in only(session, Compaction)]
