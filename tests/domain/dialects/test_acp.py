from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.base import Finishing
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


@pytest.fixture
def read(session_of: Read, linker: Callable[..., Any]) -> Read:
    """The session of some records, read to its end: what is held is in it."""

    def load(*records: object) -> Any:
        normalizer = find_dialect("acp").normalizer()
        assert isinstance(normalizer, Finishing)
        session = session_of(records, normalizer)
        session.events.extend(linker().link(normalizer.finish().drafts))
        return session

    return load


def update(kind: str, **fields: Any) -> dict[str, Any]:
    inner = {"sessionUpdate": kind, **fields}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": inner}}


def piece(kind: str, text: str, **fields: Any) -> dict[str, Any]:
    return update(f"{kind}_chunk", content={"type": "text", "text": text}, **fields)


def request(method: str, name: object = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "method": method, "params": params}


def response(name: object = 1, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "result": result}


def refusal(name: object = 1, **error: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "error": error}


def prompt(text: str = "do it", name: object = 1) -> dict[str, Any]:
    return request("session/prompt", name, sessionId="s", prompt=[{"type": "text", "text": text}])


def call(**fields: Any) -> dict[str, Any]:
    return update("tool_call", toolCallId="c", title="ls", **fields)


def changed(**fields: Any) -> dict[str, Any]:
    return update("tool_call_update", toolCallId="c", **fields)


def only(session: Any, *kinds: type[Any]) -> list[Any]:
    return [event for event in session.events if isinstance(event, kinds)]


def kinds(session: Any) -> list[str]:
    return [type(event).__name__ for event in session.events]


DONE = response(stopReason="end_turn")


# messages


def test_the_pieces_of_a_message_are_one_message(read: Read) -> None:
    pieces = [piece("agent_thought", "h"), piece("agent_thought", "m"), piece("agent_message", "a")]
    session = read(prompt(), *pieces, piece("agent_message", "b", messageId="2"), DONE)
    assert [("Reasoning", "hm"), ("AssistantMessage", "a"), ("AssistantMessage", "b")] == [
        (type(event).__name__, event.text) for event in only(session, Reasoning, AssistantMessage)
    ]


def test_what_was_coming_when_the_agent_died_is_kept(read: Read) -> None:
    assert ["hal"] == [event.text for event in only(read(prompt(), piece("agent_message", "hal")), AssistantMessage)]


def test_a_message_that_comes_whole_again_replaces_itself(read: Read) -> None:
    whole = [
        update("agent_message", messageId="1", content=[{"type": "text", "text": text}]) for text in ("hal", "half")
    ]
    assert ["half"] == [event.text for event in only(read(prompt(), *whole, DONE), AssistantMessage)]


def test_a_prompt_that_is_echoed_is_one_prompt(read: Read) -> None:
    session = read(prompt(), piece("user_message", "do "), piece("user_message", "it"), DONE)
    assert ["TurnStart", "UserMessage", "TurnEnd"] == kinds(session)


def test_images_and_plans_are_counted(read: Read) -> None:
    image = update("agent_message_chunk", content={"type": "image", "data": ""})
    session = read(image, update("plan", entries=[]), update("usage_update", used=1, size=2), update("toString"))
    expected = {"agent_message_chunk": 1, "plan": 1, "usage_update": 1, "toString": 1}
    assert (expected, []) == (session.ignored, session.events)


# calls


def test_a_call_waits_for_the_arguments_that_an_update_brings(read: Read) -> None:
    records = [call(status="pending", rawInput={}), changed(rawInput={"cmd": "ls"}), changed(status="in_progress")]
    session = read(prompt(), *records, changed(status="completed", rawOutput="out"), DONE)
    assert ["TurnStart", "UserMessage", "ToolCall", "ToolResult", "TurnEnd"] == kinds(session)
    assert ({"cmd": "ls"}, "out") == (only(session, ToolCall)[0].args, only(session, ToolResult)[0].result)


def test_a_request_for_permission_brings_arguments_too(read: Read) -> None:
    asked = request("session/request_permission", 0, toolCall={"toolCallId": "c", "rawInput": {"cmd": "ls"}})
    assert [{"cmd": "ls"}] == [found.args for found in only(read(prompt(), call(), asked), ToolCall)]


def test_a_request_for_permission_announces_a_call_that_nothing_else_does(read: Read) -> None:
    asked = request("session/request_permission", 0, toolCall={"toolCallId": "c", "title": "ls", "status": "pending"})
    session = read(prompt(), asked, response(0, outcome={}), changed(status="completed"))
    assert ["TurnStart", "UserMessage", "ToolCall", "ToolResult"] == kinds(session)


def test_a_request_for_permission_in_fewer_words_changes_no_arguments(read: Read) -> None:
    asked = request("session/request_permission", 0, toolCall={"toolCallId": "c", "rawInput": {"commands": ["ls"]}})
    session = read(prompt(), call(rawInput={"command": "ls", "why": "x"}), asked)
    assert [{"command": "ls", "why": "x"}] == [found.args for found in only(session, ToolCall)]


def test_arguments_that_an_announcement_has_in_part_are_waited_for(read: Read) -> None:
    told = changed(status="in_progress", title="ls -la", rawInput={"cwd": "/", "command": "ls"})
    [found] = only(read(prompt(), call(status="pending", rawInput={"cwd": "/"}), told), ToolCall)
    assert ("ls", {"cwd": "/", "command": "ls"}) == (found.name, found.args)


def test_a_call_is_told_before_what_is_said_after_it(read: Read) -> None:
    session = read(prompt(), piece("agent_message", "a"), call(), piece("agent_message", "b"), DONE)
    expected = ["TurnStart", "UserMessage", "AssistantMessage", "ToolCall", "AssistantMessage", "TurnEnd"]
    assert expected == kinds(session)


@pytest.mark.parametrize(
    ("fields", "ok", "result", "error"),
    [
        ({"status": "completed", "rawOutput": {"a": 1}}, True, {"a": 1}, UNSET),
        ({"status": "completed"}, True, None, UNSET),
        ({"status": "failed", "rawOutput": "no"}, False, "no", "no"),
        (
            {"status": "failed", "rawOutput": {"formatted_output": "no x", "exit_code": 1}},
            False,
            {"formatted_output": "no x", "exit_code": 1},
            "no x",
        ),
        (
            {"status": "failed", "content": [{"type": "content", "content": {"type": "text", "text": "x"}}]},
            False,
            [{"type": "content", "content": {"type": "text", "text": "x"}}],
            "x",
        ),
        ({"status": "failed"}, False, None, "failed"),
        ({"status": "completed", "rawOutput": {"exit_code": 0}}, True, {"exit_code": 0}, UNSET),
        ({"status": "completed", "rawOutput": {"exitCode": 3}}, False, {"exitCode": 3}, "exit code 3"),
        (
            {"status": "completed", "rawOutput": {"metadata": {"exit": 3}}},
            False,
            {"metadata": {"exit": 3}},
            "exit code 3",
        ),
        (
            {"status": "completed", "rawOutput": {"contents": [{}, {"exitCode": 3}]}},
            False,
            {"contents": [{}, {"exitCode": 3}]},
            "exit code 3",
        ),
        ({"status": "cancelled"}, False, None, "cancelled"),
    ],
)
def test_a_result_is_what_its_update_says(
    fields: dict[str, Any], result: object, error: object, read: Read, *, ok: bool
) -> None:
    [found] = only(read(prompt(), call(status="in_progress"), changed(**fields)), ToolResult)
    assert (ok, result, error) == (found.ok, found.result, found.error)


def test_content_that_came_earlier_is_the_result_of_a_call_that_only_ends(read: Read) -> None:
    [found] = only(read(call(status="in_progress"), changed(content=[1]), changed(status="completed")), ToolResult)
    assert [1] == found.result


def test_an_end_that_is_told_twice_is_one(read: Read) -> None:
    session = read(call(), changed(status="completed"), changed(status="completed"), changed(status="in_progress"))
    assert (1, 1) == (len(only(session, ToolCall)), len(only(session, ToolResult)))
    assert {"tool_call_update": 2} == session.ignored


def test_a_call_that_is_born_ended_waits_for_its_output(read: Read) -> None:
    later = read(call(status="completed"), changed(rawOutput="out"))
    never = read(call(status="completed"), piece("agent_message", "a"))
    assert ["out"] == [found.result for found in only(later, ToolResult)]
    assert ["TurnStart", "ToolCall", "ToolResult", "AssistantMessage"] == kinds(never)


def test_a_resume_answers_the_call_of_a_dead_process_once(read: Read) -> None:
    session = read(prompt(), call(status="in_progress"), request("initialize"), prompt(), changed(status="failed"))
    assert (1, 1) == (len(only(session, ToolCall)), len(only(session, ToolResult)))


def test_a_call_whose_id_a_dead_process_used_too_is_another(read: Read) -> None:
    again = [call(status="in_progress"), changed(status="completed")]
    session = read(prompt(), call(status="in_progress"), request("initialize"), prompt(), *again)
    assert (2, 1) == (len(only(session, ToolCall)), len(only(session, ToolResult)))


def test_an_update_of_an_unknown_call_that_ended_is_call_and_result(read: Read) -> None:
    session = read(prompt(), changed(status="in_progress"), changed(status="completed", rawOutput="out"))
    assert ["c"] == [found.name for found in only(session, ToolCall)]
    assert ["out"] == [found.result for found in only(session, ToolResult)]
    assert {"tool_call_update": 1} == session.ignored


def test_what_an_adapter_adds_names_the_tool_and_the_call_around_it(read: Read) -> None:
    meta = {"claudeCode": {"toolName": "Bash", "parentToolUseId": "task"}}
    session = read(call(rawInput={"a": 1}, _meta=meta), changed(status="completed"))
    assert [("Bash", "task")] == [(found.name, found.parent_call_id) for found in only(session, ToolCall)]
    assert ["task"] == [found.parent_call_id for found in only(session, ToolResult)]


# turns


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (DONE, "completed"),
        ({"stopReason": "end_turn"}, "completed"),
        (response(stopReason="cancelled"), "cancelled"),
        (response(stopReason="max_turn_requests"), "step_limit"),
        (response(stopReason="max_tokens"), "step_limit"),
        (response(stopReason="refusal"), FailedOutcome(TurnError("refusal", "stopped: refusal"))),
        (refusal(code=-32603, message="overloaded"), FailedOutcome(TurnError("-32603", "overloaded"))),
        (refusal(), FailedOutcome(TurnError("error", "error"))),
        (refusal(code=1, message="no", data={"errorName": "APIError"}), FailedOutcome(TurnError("APIError", "no"))),
        (
            refusal(code=400, message='{"error":{"message":"no","status":"INVALID_ARGUMENT"}}'),
            FailedOutcome(TurnError("INVALID_ARGUMENT", "no")),
        ),
        (request("initialize", 0), "interrupted"),
        (prompt("go on", 2), "interrupted"),
    ],
)
def test_a_turn_ends_as_its_prompt_is_answered(end: dict[str, Any], outcome: object, read: Read) -> None:
    assert [outcome] == [found.outcome for found in only(read(prompt(), end), TurnEnd)]


def test_the_answers_to_what_the_agent_asks_end_no_turn(read: Read) -> None:
    session = read(prompt(), request("fs/read_text_file", 1), refusal(code=-1), response(7), refusal(8))
    assert [] == only(session, TurnEnd)
    assert {"fs/read_text_file": 1, "response": 3} == session.ignored


def test_notifications_alone_have_turns_from_prompt_to_prompt(read: Read) -> None:
    one = [piece("user_message", "a"), piece("agent_message", "b")]
    session = read(*one, piece("user_message", "c"), call(rawInput={"x": 1}), piece("user_message", "d"))
    assert ["completed", "interrupted"] == [found.outcome for found in only(session, TurnEnd)]
    assert 3 == len(only(session, TurnStart))


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {"totalTokens": 2500, "inputTokens": 1500, "cachedReadTokens": 500, "outputTokens": 450}
            | {"thoughtTokens": 50},
            (1500, 500, 500, 50),
        ),
        (
            {"totalTokens": 1242, "inputTokens": 1200, "cachedReadTokens": 900, "outputTokens": 42},
            (300, 900, 42, UNSET),
        ),
        ({"inputTokens": 1200, "outputTokens": 42}, (1200, UNSET, 42, UNSET)),
    ],
)
def test_usage_is_the_sessions_total(usage: dict[str, int], counts: tuple[object, ...], read: Read) -> None:
    [found] = only(read(prompt(), response(stopReason="end_turn", usage=usage)), Usage)
    told = (found.input_tokens, found.cache_read_tokens, found.output_tokens, found.reasoning_tokens)
    assert ("session", counts) == (found.scope, told)


def test_what_a_prompt_spent_is_told_by_model(read: Read) -> None:
    models = [{"model": "m", "token_count": {"input_tokens": 10, "output_tokens": 2}}, {"model": "n"}, 3]
    usages = only(read(prompt(), response(stopReason="end_turn", _meta={"quota": {"model_usage": models}})), Usage)
    assert [(UNSET, "m", 10, 2), (UNSET, "n", 0, 0)] == [
        (found.scope, found.model, found.input_tokens, found.output_tokens) for found in usages
    ]


# replays and compactions

REPLAYED = [piece("user_message", "a"), piece("agent_message", "b"), call(status="completed", rawOutput="out")]


def test_a_replay_of_what_the_stream_told_is_passed_over(read: Read) -> None:
    session = read(prompt("a"), DONE, request("session/load", 2), *REPLAYED, response(2), piece("agent_message", "c"))
    assert ["c"] == [found.text for found in only(session, AssistantMessage)]
    assert 1 == session.ignored["replayed/tool_call"]


def test_a_replay_at_the_beginning_is_the_session(read: Read) -> None:
    loaded = [request("session/load", 0, sessionId="s"), *REPLAYED, response(0)]
    session = read(*loaded, prompt("c"), DONE)
    expected = ["TurnStart", "UserMessage", "AssistantMessage", "ToolCall", "ToolResult", "TurnEnd"]
    assert expected == kinds(session)[:6]
    assert ["a", "c"] == [found.text for found in only(session, UserMessage)]


def test_a_replay_in_the_midst_of_the_next_turn_is_known_by_its_words(read: Read) -> None:
    first = [prompt("a"), piece("agent_message", "b"), call(status="in_progress"), changed(status="completed"), DONE]
    note = piece("user_message", "[Function Response: ls]")
    replay = [piece("user_message", "a"), piece("agent_message", "b"), call(status="completed"), note]
    late = [request("session/load", 2), response(2), prompt("c", 3), *replay, piece("agent_message", "d"), DONE]
    session = read(*first, *late, prompt("e", 4), piece("agent_message", "b"), DONE)
    assert ["b", "d", "b"] == [found.text for found in only(session, AssistantMessage)]
    assert ["a", "c", "e"] == [found.text for found in only(session, UserMessage)]
    assert 1 == len(only(session, ToolCall))


def test_compactions_are_told_by_their_summary(read: Read) -> None:
    records = [
        update("compaction_update", compactionId="1", status="in_progress"),
        update("compaction_summary_chunk", compactionId="1", content={"type": "text", "text": "so far"}),
        update("compaction_update", compactionId="1", status="completed"),
        update("compaction_update", compactionId="2", status="completed", summary="again"),
    ]
    assert ["so far", "again"] == [found.summary for found in only(read(prompt(), *records), Compaction)]


def test_a_compaction_that_is_shown_as_a_call_is_none(read: Read) -> None:
    session = read(prompt(), call(status="in_progress", _meta={"contextCompaction": {}}), changed(status="completed"))
    assert ["TurnStart", "UserMessage", "Compaction"] == kinds(session)


# records


@pytest.mark.parametrize("broken", [[], "x", 5, None])
def test_what_is_no_object_is_refused(broken: object) -> None:
    with pytest.raises(DialectError, match="acp: a record is a JSON object"):
        find_dialect("acp").normalizer().feed(broken)


def test_other_records_are_counted(read: Read) -> None:
    session = read({}, {"type": "x"}, request("session/new"), request("session/cancel"), update(5))  # type: ignore[arg-type]
    expected = {"unknown": 1, "x": 1, "session/new": 1, "session/cancel": 1, "session/update": 1}
    assert expected == session.ignored


def test_an_update_may_stand_without_its_envelope(read: Read) -> None:
    bare: dict[str, Any] = piece("agent_message", "a")["params"]
    assert ["aa"] == [found.text for found in only(read(bare, bare["update"]), AssistantMessage)]


def test_the_session_is_named_by_either_side() -> None:
    records: list[object] = [prompt(), response(sessionId="n"), {"sessionId": "b", "update": {}}, {}, 3]
    assert ["s", "n", "b", None, None] == [find_dialect("acp").session_id(record) for record in records]


def test_a_session_resumes_by_a_call_of_the_protocol() -> None:
    acp = find_dialect("acp")
    assert ("session/load", ("s",)) == (acp.resume("s").call, acp.resume("s").args)
    assert acp.resume_command("s", "go on") is None


def test_its_messages_are_known() -> None:
    records: list[object] = [update("plan"), prompt(), DONE, {"stopReason": "end_turn"}, {"sessionUpdate": "plan"}]
    others: list[object] = [{"type": "result", "stopReason": "x"}, {"jsonrpc": "2.0", "method": "session/message"}, 3]
    assert [2] * 5 == [find_dialect("acp").likeness(record) for record in records]
    assert [0] * 3 == [find_dialect("acp").likeness(record) for record in others]
    assert 1 == find_dialect("acp").likeness(response(5))
