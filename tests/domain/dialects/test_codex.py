"""What the recordings do not show: other versions, other tools, damaged records."""

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
THREAD = {"type": "thread.started", "thread_id": "t"}
STARTED = {"type": "turn.started"}


@pytest.fixture
def read(session_of: Read) -> Read:
    return lambda *records: session_of(records, find_dialect("codex").normalizer())


def item(kind: str, of: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{of}", "item": {"id": "item_0", "type": kind, **fields}}


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-30T00:00:00.000Z", "type": kind, "payload": payload}


def response(kind: str, **payload: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **payload)


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return line("event_msg", type=kind, **payload)


def said(role: str, text: str) -> dict[str, Any]:
    return response("message", role=role, content=[{"type": "text", "text": text}])


def tokens(whole: int, cached: int, output: int) -> dict[str, int]:
    return {"input_tokens": whole, "cached_input_tokens": cached, "output_tokens": output}


def only(session: Any, kind: type[Any]) -> list[Any]:
    return [found for found in session.events if isinstance(found, kind)]


def kinds(session: Any) -> list[str]:
    return [type(found).__name__ for found in session.events]


# the stream


def test_a_failed_command_tells_its_exit_code_and_its_output(read: Read) -> None:
    started = item("command_execution", "started", command="ls x", status="in_progress")
    ended = item("command_execution", aggregated_output="no x", exit_code=2, status="failed")
    [result] = only(read(THREAD, STARTED, started, ended), ToolResult)
    assert (False, "no x", "exit code 2\nno x") == (result.ok, result.result, result.error)


def test_a_tool_that_only_completes_is_a_call_too(read: Read) -> None:
    session = read(THREAD, STARTED, item("file_change", changes=[{"path": "a", "kind": "add"}], status="completed"))
    assert ["TurnStart", "ToolCall", "ToolResult"] == kinds(session)


@pytest.mark.parametrize(
    ("fields", "name", "ok", "error"),
    [
        ({"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}}, "mcp__s__t", True, UNSET),
        (
            {"type": "mcp_tool_call", "server": "s", "tool": "t", "error": {"message": "gone"}, "status": "failed"},
            "mcp__s__t",
            False,
            "gone",
        ),
        ({"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "p"}, "spawn_agent", True, UNSET),
        ({"type": "web_search", "query": "q"}, "web_search", True, UNSET),
        ({"type": "command_execution", "status": "declined"}, "command_execution", False, "declined"),
        ({"type": "command_execution", "status": "in_progress"}, "command_execution", False, "in_progress"),
    ],
)
def test_every_tool_of_the_stream_is_a_call_with_its_result(
    fields: dict[str, Any], name: str, error: object, read: Read, *, ok: bool
) -> None:
    session = read(THREAD, STARTED, {"type": "item.completed", "item": {"id": "item_0", **fields}})
    [call], [result] = only(session, ToolCall), only(session, ToolResult)
    assert (name, ok, error) == (call.name, result.ok, result.error)


def test_a_process_that_died_leaves_its_call_open_and_its_turn_interrupted(read: Read) -> None:
    begun = item("command_execution", "started", command="sleep 9")
    session = read(THREAD, STARTED, begun, THREAD, STARTED, begun, item("command_execution", exit_code=0))
    assert ["interrupted"] == [end.outcome for end in only(session, TurnEnd)]
    assert (2, 1) == (len(only(session, ToolCall)), len(only(session, ToolResult)))


def test_an_error_before_a_turn_that_succeeds_is_none(read: Read) -> None:
    session = read(THREAD, STARTED, {"type": "error", "message": "Reconnecting... 1/5"}, {"type": "turn.completed"})
    assert ["completed"] == [end.outcome for end in only(session, TurnEnd)]
    assert 1 == session.ignored["error"]


def test_a_stream_that_lost_its_head_has_a_turn_too(read: Read) -> None:
    session = read(item("agent_message", text="so"), {"type": "turn.completed", "usage": tokens(10, 4, 2)})
    assert ["TurnStart", "AssistantMessage", "Usage", "TurnEnd"] == kinds(session)


def test_the_total_of_the_thread_is_marked_as_one(read: Read) -> None:
    [usage] = only(read(THREAD, STARTED, {"type": "turn.completed", "usage": tokens(10, 4, 2)}), Usage)
    assert ("session", 6, 4, 2) == (usage.scope, usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)


# rollouts


def test_usage_of_old_rollouts_grows_with_the_total(read: Read) -> None:
    rows = [(10, 4, 2), (10, 4, 2), (25, 8, 5), (12, 0, 1)]
    infos = [{"total_token_usage": tokens(*row), "last_token_usage": tokens(*row)} for row in rows]
    usages = only(read(*[event("token_count", info=info) for info in [*infos, None]]), Usage)
    assert [(6, 2), (11, 3), (12, 1)] == [(usage.input_tokens, usage.output_tokens) for usage in usages]


def test_an_answer_that_a_fork_repeats_is_counted_once(read: Read) -> None:
    record = line("token_usage_record", response_id="r", usage=tokens(10, 4, 2))
    session = read(line("turn_context", model="gpt"), record, record, event("token_count", info={}))
    assert ["gpt"] == [usage.model for usage in only(session, Usage)]


def test_turns_of_old_rollouts_begin_with_their_prompts(read: Read) -> None:
    session = read(said("user", "a"), said("assistant", "b"), said("user", "c"), said("user", "d"))
    assert ["completed", "interrupted"] == [end.outcome for end in only(session, TurnEnd)]
    assert 3 == len(only(session, TurnStart))


def test_a_prompt_inside_a_marked_turn_begins_none(read: Read) -> None:
    session = read(event("task_started"), said("user", "a"), said("user", "b"), event("task_complete"))
    assert ["TurnStart", "UserMessage", "UserMessage", "TurnEnd"] == kinds(session)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (event("turn_aborted", reason="interrupted"), "interrupted"),
        (event("turn_aborted", reason="review_ended"), "cancelled"),
        (event("task_complete", error={"message": "m"}), FailedOutcome(TurnError("error", "m"))),
        (
            event("task_complete", error={"message": "m", "codex_error_info": {"usage_limit": {}}}),
            FailedOutcome(TurnError("usage_limit", "m")),
        ),
        (event("task_complete", error={}), FailedOutcome(TurnError("error", "error"))),
        (event("task_started"), "interrupted"),
    ],
)
def test_a_turn_ends_as_its_event_says(end: dict[str, Any], outcome: object, read: Read) -> None:
    assert [outcome] == [found.outcome for found in only(read(event("task_started"), end), TurnEnd)]


@pytest.mark.parametrize(
    ("beside", "ok", "error"),
    [
        (event("exec_command_end", call_id="c", exit_code=1), False, "out"),
        (event("patch_apply_end", call_id="c", success=False), False, "out"),
        (event("mcp_tool_call_end", call_id="c", result={"Err": "no"}), False, "out"),
        (event("mcp_tool_call_end", call_id="c", result={"Ok": {"isError": True}}), False, "out"),
        (event("mcp_tool_call_end", call_id="c", result={"Ok": {}}), True, UNSET),
        (event("item_completed", item={"id": "c", "status": "failed", "exit_code": 3}), False, "out"),
        (event("item_completed", item={"id": "c", "status": "completed", "exit_code": 0}), True, UNSET),
        (event("item_completed", item={"id": "c", "type": "UserMessage"}), True, UNSET),
    ],
)
def test_the_event_beside_an_output_tells_how_it_went(
    beside: dict[str, Any], error: object, read: Read, *, ok: bool
) -> None:
    [result] = only(read(beside, response("function_call_output", call_id="c", output="out")), ToolResult)
    assert (ok, error) == (result.ok, result.error)


@pytest.mark.parametrize(
    ("output", "result", "ok"),
    [
        ("Exit code: 1\nWall time: 0 s\nOutput:\nx", "Exit code: 1\nWall time: 0 s\nOutput:\nx", False),
        (
            "Process exited with code 0\nOutput:\nExit code: 1",
            "Process exited with code 0\nOutput:\nExit code: 1",
            True,
        ),
        ("aborted", "aborted", False),
        ({"content": "no", "success": False}, "no", False),
        ({"content": "yes", "success": True}, "yes", True),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "ab", True),
        ({"type": "input_text", "text": "a"}, "a", True),
        ([{"type": "input_image", "image_url": "u"}], [{"type": "input_image", "image_url": "u"}], True),
        (None, None, True),
    ],
)
def test_an_output_alone_tells_it_in_its_first_lines(output: object, result: object, read: Read, *, ok: bool) -> None:
    [found] = only(read(response("function_call_output", call_id="c", output=output)), ToolResult)
    assert (result, ok) == (found.result, found.ok)


@pytest.mark.parametrize(
    ("record", "call", "results"),
    [
        (response("function_call", call_id="c", name="f", arguments='{"a": 1}'), ("c", "f", {"a": 1}), 0),
        (response("function_call", call_id="c", name="f", arguments='{"a": '), ("c", "f", '{"a": '), 0),
        (response("function_call", call_id="c", name="f", namespace="n", arguments="{}"), ("c", "n.f", {}), 0),
        (response("custom_tool_call", call_id="c", name="f", input="patch"), ("c", "f", "patch"), 0),
        (response("local_shell_call", call_id="c", action={"command": []}), ("c", "local_shell", {"command": []}), 0),
        (response("tool_search_call", call_id="c", arguments={"query": "q"}), ("c", "tool_search", {"query": "q"}), 0),
        (response("web_search_call", id="c", action={"query": "q"}), ("c", "web_search", {"query": "q"}), 1),
        (response("web_search_call"), ("web_search_call:0", "web_search", None), 1),
        (response("image_generation_call", id="c", result="b64"), ("c", "image_generation", None), 1),
    ],
)
def test_every_kind_of_call_maps(record: dict[str, Any], call: tuple[Any, ...], results: int, read: Read) -> None:
    session = read(record)
    [found] = only(session, ToolCall)
    assert call == (found.call_id, found.name, found.args)
    assert results == len(only(session, ToolResult))


def test_items_without_an_envelope_map_as_those_with_one(read: Read) -> None:
    bare = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
    session = read({"id": "s", "timestamp": "t", "instructions": None}, bare, {"record_type": "state"})
    assert ["TurnStart", "UserMessage"] == kinds(session)
    assert {"header": 1, "record/state": 1} == session.ignored


def test_notes_of_the_harness_are_known_by_their_words_where_nothing_else_tells(read: Read) -> None:
    session = read(said("user", "<environment_context>x"), said("developer", "rules"), said("user", "do it"))
    assert ["<environment_context>x", "rules"] == [found.text for found in only(session, SystemMessage)]
    assert ["do it"] == [found.text for found in only(session, UserMessage)]


def test_a_thought_without_a_summary_has_its_raw_text_or_its_blob_alone(read: Read) -> None:
    raw = response("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "raw"}])
    blob = response("reasoning", summary=[], content=None, encrypted_content="b")
    thoughts = only(read(raw, blob), Reasoning)
    assert [("raw", UNSET), (UNSET, "b")] == [(found.text, found.provider_continuation) for found in thoughts]


def test_a_compaction_is_the_conversation_that_replaced_the_history(read: Read) -> None:
    kept = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "asked"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "so far"}]},
        {"type": "compaction", "encrypted_content": "blob"},
    ]
    session = read(said("user", "asked"), line("compacted", message="", replacement_history=kept))
    [found] = only(session, Compaction)
    assert (0, 2, "asked\n\nso far") == (found.replaces_from, found.replaces_to, found.summary)
    assert ["blob"] == [thought.provider_continuation for thought in only(session, Reasoning)]


def test_an_old_compaction_has_its_message_as_summary(read: Read) -> None:
    [found] = only(read(line("compacted", message="so far")), Compaction)
    assert "so far" == found.summary


def test_turns_that_were_taken_back_leave_the_history(read: Read) -> None:
    turn = [event("task_started"), said("user", "a"), said("assistant", "b"), event("task_complete")]
    session = read(*turn, *turn, event("thread_rolled_back", num_turns=1), event("thread_rolled_back", num_turns=9))
    [found] = only(session, Compaction)
    assert ("rollback", 4, 8) == (found.reason, found.replaces_from, found.replaces_to)


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {"item": {}},
        {"type": "item.completed"},
        {"type": "item.completed", "item": {"type": "command_execution"}},
        {"type": "item.completed", "item": {"type": "agent_message", "id": "item_0"}},
        response("function_call", name="f"),
        response("function_call_output", output="x"),
        line("response_item"),
        line("event_msg"),
    ],
)
def test_a_malformed_record_is_refused_and_forgotten(broken: object) -> None:
    normalizer, fresh = (find_dialect("codex").normalizer() for _ in range(2))
    with pytest.raises(DialectError, match="codex: "):
        normalizer.feed(broken)
    assert fresh.feed(said("user", "a")) == normalizer.feed(said("user", "a"))


def test_unknown_kinds_are_counted_by_kind(read: Read) -> None:
    session = read({"type": "mood"}, item("todo_list"), event("new"), line("world_state"), {"id": "0", "msg": {}})
    expected = {"mood": 1, "item.completed/todo_list": 1, "event_msg/new": 1, "world_state": 1, "msg": 1}
    assert expected == session.ignored


def test_the_first_line_of_either_form_names_the_session() -> None:
    records = [THREAD, line("session_meta", id="m", session_id="root"), line("session_meta"), STARTED, 3]
    assert ["t", "m", None, None, None] == [find_dialect("codex").session_id(record) for record in records]


def test_a_session_resumes_by_its_thread() -> None:
    codex = find_dialect("codex")
    assert ("codex", "resume", "t") == codex.resume_command("t")
    asked = ("codex", "exec", "--json", "--skip-git-repo-check", "resume", "t", "go on")
    assert asked == codex.resume_command("t", "go on")


def test_an_answer_is_an_answer(read: Read) -> None:
    assert ["so"] == [found.text for found in only(read(said("assistant", "so")), AssistantMessage)]
