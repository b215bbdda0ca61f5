"""What the recordings of pi do not show: parallel calls, lost lines, branches, compactions, older versions."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from incarnate.domain.events import AssistantMessage, Compaction, Reasoning, ToolCall, ToolResult, TurnEnd, Usage

HEADER = {"type": "session", "version": 3, "id": "s", "cwd": "/"}


def read(records: Iterable[Any]) -> list[Any]:
    normalizer = find_dialect("pi").normalizer()
    counts = {"id": 0, "turn": 0}

    def count(name: str) -> int:
        counts[name] += 1
        return counts[name] - 1

    linker = Linker(None, 0, lambda: f"n-{count('id')}", lambda: count("turn"))
    return [event for record in records for event in linker.link(normalizer.feed(record).drafts)]


def answer(*content: Any, stop: str = "toolUse", **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content), "stopReason": stop, **fields}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": name, "name": "bash", "arguments": {"command": name}}


def result(name: str, **fields: Any) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": name, "content": [text(f"{name} done")], "isError": False, **fields}


def ended(name: str) -> dict[str, Any]:
    return {"type": "tool_execution_end", "toolCallId": name, "result": {"content": [text(f"{name} done")]}}


def message(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message_end", "message": value}


def entry(name: str, parent: str | None, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": name, "parentId": parent, "message": value}


def kinds(events: Iterable[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def outcomes(events: Iterable[Any]) -> list[Any]:
    return [event.outcome for event in events if isinstance(event, TurnEnd)]


def test_parallel_results_come_as_the_tools_answer_and_once() -> None:
    events = read(
        [
            {"type": "agent_start"},
            message(answer(call("a"), call("b"))),
            ended("b"),
            ended("a"),
            message(result("a")),
            message(result("b")),
        ]
    )

    assert ["b", "a"] == [event.call_id for event in events if isinstance(event, ToolResult)]
    assert ["b done", "a done"] == [event.result for event in events if isinstance(event, ToolResult)]


def test_ids_that_repeat_are_answered_each_time() -> None:
    step = [message(answer(call("a"))), ended("a"), message(result("a"))]

    assert ["ToolCall", "ToolResult"] * 2 == kinds(read([{"type": "agent_start"}, *step, *step]))[1:]


def test_a_failed_tool_tells_its_reason() -> None:
    [failed] = read([message(result("a", isError=True))])

    assert (False, "a done") == (failed.ok, failed.error)


def test_a_call_whose_message_was_lost_is_known_by_its_start() -> None:
    update = {
        "type": "message_update",
        "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "o"},
    }
    start = {"type": "tool_execution_start", "toolCallId": "a", "toolName": "bash", "args": {"command": "a"}}
    events = read([{"type": "agent_start"}, update, start, ended("a")])

    assert ["TurnStart", "AssistantMessage", "ToolCall", "ToolResult"] == kinds(events)


def test_an_answer_whose_line_was_lost_is_taken_from_the_end_of_its_step() -> None:
    events = read(
        [{"type": "agent_start"}, {"type": "turn_start"}, {"type": "turn_end", "message": answer(text("hi"))}]
    )

    assert ["TurnStart", "AssistantMessage"] == kinds(events)


def test_a_process_that_was_killed_while_it_streamed_leaves_what_came() -> None:
    updates = [
        {"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": at, name: words}}
        for kind, at, name, words in [
            ("thinking_delta", 0, "delta", "hal"),
            ("thinking_end", 0, "content", "half a thought"),
            ("text_delta", 1, "delta", "so "),
            ("text_delta", 1, "delta", "far"),
            ("toolcall_delta", 2, "delta", "{"),
        ]
    ]
    events = read([HEADER, {"type": "agent_start"}, *updates, HEADER, {"type": "agent_start"}])

    assert ["TurnStart", "Reasoning", "AssistantMessage", "TurnEnd", "TurnStart"] == kinds(events)
    assert ("half a thought", "so far") == (events[1].text, events[2].text)
    assert ["interrupted"] == outcomes(events)


def test_an_older_version_repeats_the_whole_answer_with_each_delta() -> None:
    updates = [{"type": "message_update", "message": answer(text("so far"[:end]))} for end in (2, 6)]
    events = read([HEADER, {"type": "agent_start"}, *updates, HEADER])

    assert ["so far"] == [event.text for event in events if isinstance(event, AssistantMessage)]


def test_an_older_version_says_behind_the_end_that_it_tries_again() -> None:
    failed = message(answer(text("cut"), stop="error", errorMessage="gone"))
    whole = message(answer(text("whole"), stop="stop"))
    begin, end = {"type": "agent_start"}, {"type": "agent_end", "messages": []}
    events = read([HEADER, begin, failed, end, {"type": "auto_retry_start"}, begin, whole, end, HEADER])

    assert ["whole"] == [event.text for event in events if isinstance(event, AssistantMessage)]
    assert ["completed"] == outcomes(events)


def test_an_error_of_the_provider_is_named() -> None:
    told = '400: {"type":"invalid_request_error","message":"no"}'
    begin, end = {"type": "agent_start"}, {"type": "agent_end", "willRetry": False}
    for words, kind in [(told, "invalid_request_error"), ("529: busy", "529"), ("gone", "error")]:
        [outcome] = outcomes(read([begin, message(answer(stop="error", errorMessage=words)), end]))
        assert (kind, words) == (outcome.error.kind, outcome.error.message)


def test_the_calls_of_an_answer_that_failed_never_ran() -> None:
    begin, end = {"type": "agent_start"}, {"type": "agent_end", "willRetry": False}
    events = read([begin, message(answer(text("I will"), call("a"), stop="aborted")), end])

    assert ["TurnStart", "AssistantMessage", "TurnEnd"] == kinds(events)
    assert ["interrupted"] == outcomes(events)


def test_signatures_are_kept_untouched() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}
    spoken, called = {**text("hi"), "textSignature": "id-1"}, {**call("a"), "thoughtSignature": "dGg="}
    events = read([{"type": "agent_start"}, message(answer(thinking, spoken, called))])

    assert ["c2ln"] == [event.provider_continuation for event in events if isinstance(event, Reasoning)]
    assert [{"textSignature": "id-1"}] == [json.loads(str(e.native)) for e in events if isinstance(e, AssistantMessage)]
    assert [{"thoughtSignature": "dGg="}] == [json.loads(str(e.native)) for e in events if isinstance(e, ToolCall)]


def test_usage_is_told_kind_by_kind_and_not_where_there_is_none() -> None:
    usage = {"input": 3, "output": 5, "cacheRead": 7, "cacheWrite": 11, "reasoning": 2}
    events = read([message(answer(usage=usage, model="m")), message(answer(usage={"input": 0, "output": 0}))])
    [spent] = [event for event in events if isinstance(event, Usage)]

    assert (3, 5, 7, 11, 2, "m") == (
        spent.input_tokens,
        spent.output_tokens,
        spent.cache_read_tokens,
        spent.cache_write_tokens,
        spent.reasoning_tokens,
        spent.model,
    )


def session(*entries: dict[str, Any]) -> list[Any]:
    return read([HEADER, *entries])


def test_what_the_user_went_back_from_is_taken_out_of_the_history() -> None:
    events = session(
        entry("1", None, {"role": "user", "content": "first"}),
        entry("2", "1", answer(text("one"), stop="stop")),
        entry("3", "2", {"role": "user", "content": "second"}),
        entry("4", "3", answer(text("two"), stop="stop")),
        entry("5", "2", {"role": "user", "content": "other"}),
    )
    [(place, back)] = [(at, event) for at, event in enumerate(events) if isinstance(event, Compaction)]

    assert ("branch", UNSET) == (back.reason, back.summary)
    assert ["TurnStart", "UserMessage", "AssistantMessage", "TurnEnd"] == kinds(
        events[back.replaces_from : back.replaces_to]
    )
    assert place == back.replaces_to


def test_a_branch_may_be_summed_up() -> None:
    events = session(
        entry("1", None, {"role": "user", "content": "first"}),
        entry("2", "1", answer(text("one"), stop="stop")),
        {"type": "branch_summary", "id": "3", "parentId": "1", "fromId": "2", "summary": "tried one"},
    )

    assert ["tried one"] == [event.summary for event in events if isinstance(event, Compaction)]


def test_a_compaction_leaves_the_system_prompt_and_what_it_keeps() -> None:
    events = session(
        entry("0", None, {"role": "system", "content": "be brief"}),
        entry("1", "0", {"role": "user", "content": "first"}),
        entry("2", "1", answer(text("one"), stop="stop")),
        entry("3", "2", {"role": "user", "content": "second"}),
        {"type": "compaction", "id": "4", "parentId": "3", "summary": "so far", "firstKeptEntryId": "3"},
    )
    [compaction] = [event for event in events if isinstance(event, Compaction)]

    assert (1, 5, "so far") == (compaction.replaces_from, compaction.replaces_to, compaction.summary)
    assert ["TurnStart", "UserMessage"] == kinds(events[5:-1])


def test_a_compaction_of_the_stream_stands_for_all_before_it() -> None:
    events = read(
        [message({"role": "user", "content": "hi"}), {"type": "compaction_end", "result": {"summary": "sum"}}]
    )

    assert (0, 2) == (events[-1].replaces_from, events[-1].replaces_to)
    assert [] == read([{"type": "compaction_end", "aborted": True}])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"role": "bashExecution", "command": "ls", "output": "a"}, "Ran `ls`\n```\na\n```"),
        ({"role": "custom", "content": "note"}, "note"),
        ({"role": "branchSummary", "summary": "tried"}, "tried"),
    ],
)
def test_what_was_put_before_the_model_otherwise_is_the_users(value: dict[str, Any], words: str) -> None:
    [event] = session(entry("1", None, value))

    assert words == event.text


def test_a_failed_answer_of_a_file_waits_for_what_takes_it_back() -> None:
    failed = entry("2", "1", answer(text("cut"), stop="error", errorMessage="gone"))
    edit = {"type": "context_edit", "id": "3", "parentId": "2", "targetId": "2", "replacement": None}
    whole = entry("4", "3", answer(text("whole"), stop="stop"))
    prompt = entry("1", None, {"role": "user", "content": "go"})

    assert ["whole"] == [e.text for e in session(prompt, failed, edit, whole) if isinstance(e, AssistantMessage)]
    again = session(prompt, failed, entry("5", "2", {"role": "user", "content": "again"}))
    assert ["TurnStart", "UserMessage", "AssistantMessage", "TurnEnd", "TurnStart", "UserMessage"] == kinds(again)


@pytest.mark.parametrize(
    "record",
    [
        {"type": "message_end"},
        {"type": "message", "message": {"content": []}},
        message({"role": "toolResult"}),
        message(answer({"type": "toolCall", "id": "a"})),
        {"type": "tool_execution_end", "result": {}},
        {"type": "tool_execution_start", "toolCallId": "a"},
        {},
        [],
    ],
)
def test_a_record_that_lacks_what_it_must_have_is_refused(record: object) -> None:
    with pytest.raises(DialectError):
        read([record])


def test_a_record_is_named_by_its_entry_and_the_session_by_its_header() -> None:
    pi = find_dialect("pi")

    assert ("1", None) == (pi.record_id(entry("1", None, {})), pi.record_id(HEADER))
    assert ("s", None) == (pi.session_id(HEADER), pi.session_id(message({})))
