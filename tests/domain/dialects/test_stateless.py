"""What the vectors of the stateless dialects do not show: other envelopes, lacking fields, reasons of failures."""

from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from incarnate.domain.events import Reasoning, ToolCall, ToolResult, Usage

Fields = dict[str, Any]


def feed(harness: str, record: object) -> Normalized:
    return find_dialect(harness).normalizer().feed(record)


def draft(harness: str, record: object) -> Any:
    [only] = feed(harness, record).drafts
    return only


@pytest.mark.parametrize(
    ("harness", "record", "kind"),
    [
        ("@github/copilot", {"type": "session.idle", "data": {}}, "session.idle"),
        ("qwen-code", {"type": "assistant", "message": {"content": []}}, "assistant"),
        ("kimi", {"type": "task", "category": "agent", "title": "done"}, "task"),
        ("pi", {"type": "session", "id": "s"}, "session"),
        ("pi", {"type": "queue_update", "result": {}}, "queue_update"),
    ],
)
def test_what_the_command_lines_print_is_counted_by_kind(harness: str, record: Fields, kind: str) -> None:
    assert Normalized((), kind) == feed(harness, record)


@pytest.mark.parametrize("answer", [{"result": {}}, {"error": {"code": -32000}}])
def test_an_answer_to_a_request_is_counted_as_one(answer: Fields) -> None:
    assert Normalized((), "response") == feed("pi", {"jsonrpc": "2.0", "id": 1, **answer})


@pytest.mark.parametrize("params", [None, [], "text"])
def test_a_notification_that_carries_nothing_is_counted(params: object) -> None:
    assert Normalized((), "session/toolCall") == feed("pi", {"method": "session/toolCall", "params": params})


@pytest.mark.parametrize(
    ("harness", "record"),
    [
        ("qwen-code", {"type": "content", "role": "user", "text": ""}),
        ("kimi", {"event": "text", "role": "user", "text": ""}),
        ("pi", {"method": "session/message", "params": {"role": "user", "text": ""}}),
        ("deepseek", {"kind": "message", "role": "user", "content": ""}),
    ],
)
def test_a_message_of_nothing_is_counted(harness: str, record: Fields) -> None:
    [kind] = [record[field] for field in ("type", "event", "method", "kind") if field in record]

    assert Normalized((), kind) == feed(harness, record)


@pytest.mark.parametrize(
    ("harness", "record", "reason"),
    [
        ("@github/copilot", {}, "a record without type"),
        ("qwen-code", {"type": 5}, "a record without type"),
        ("qwen-code", {"type": "tool_call_response"}, "tool_call_response without callId"),
        ("qwen-code", {"type": "content", "role": "user"}, "content is a text or a list"),
        ("kimi", {}, "a record without event"),
        ("kimi", {"event": "tool", "id": "t"}, "tool without name"),
        ("kimi", {"event": "tool", "phase": "weird", "id": "t"}, "phase call or result, not 'weird'"),
        ("pi", {"jsonrpc": "2.0"}, "a record without method"),
        ("pi", {"method": "session/toolResult", "params": {}}, "session/toolResult without id"),
        ("deepseek", {"role": "user"}, "a record without kind"),
        ("deepseek", {"kind": "tool", "id": 5, "name": "f"}, "tool without id"),
        ("deepseek", [], "a record is a JSON object, not list"),
    ],
)
def test_a_refused_record_says_what_it_lacks(harness: str, record: object, reason: str) -> None:
    with pytest.raises(DialectError, match=f"{harness}: .*{reason}"):
        feed(harness, record)


@pytest.mark.parametrize(
    ("harness", "record"),
    [
        ("qwen-code", {"type": "tool_call_response", "callId": "t", "error": "no space"}),
        ("kimi", {"event": "tool", "phase": "result", "id": "t", "ok": False, "output": "no space"}),
        ("pi", {"method": "session/toolResult", "params": {"id": "t", "ok": False, "result": "no space"}}),
        ("deepseek", {"kind": "tool_result", "id": "t", "ok": False, "output": "no space"}),
    ],
)
def test_a_failed_result_says_why(harness: str, record: Fields) -> None:
    expected = ToolResult(id="result:t", parent_id=None, call_id="t", ok=False, result="no space", error="no space")

    assert expected == draft(harness, record)


def test_a_reason_that_is_no_text_is_the_result_alone() -> None:
    result = draft("qwen-code", {"type": "tool_call_response", "callId": "t", "error": {"code": 5}})

    assert (False, {"code": 5}, UNSET) == (result.ok, result.result, result.error)


def test_parts_beside_an_error_are_kept() -> None:
    response = {"type": "tool_call_response", "callId": "t", "responseParts": [{"text": "half"}], "error": "cut"}
    result = draft("qwen-code", response)

    assert (False, [{"text": "half"}], "cut") == (result.ok, result.result, result.error)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"subject": "Plan", "description": "first the tests"}, "Plan: first the tests"),
        ({"subject": "Plan", "description": ""}, "Plan"),
        ({"description": "first the tests"}, "first the tests"),
        ({}, UNSET),
    ],
)
def test_a_thought_of_qwen_is_its_subject_and_description(parts: Fields, text: object) -> None:
    expected = Reasoning(id="", parent_id=None, text=text, provider_continuation="sig")  # type: ignore[arg-type]

    assert expected == draft("qwen-code", {"type": "thought", **parts, "thoughtSignature": "sig"})


@pytest.mark.parametrize("named", [{"phase": "call", "arguments": [1]}, {"args": [1]}])
def test_a_tool_of_kimi_without_a_phase_is_a_call(named: Fields) -> None:
    expected = ToolCall(id="call:t", parent_id=None, call_id="t", name="f", args=[1])

    assert expected == draft("kimi", {"event": "tool", "id": "t", "name": "f", **named})


@pytest.mark.parametrize("spent", [{"input": 3, "output": "many"}, {"inputTokens": 3, "outputTokens": -1}])
def test_counts_of_deepseek_are_read_under_either_name(spent: Fields) -> None:
    assert Usage(id="", parent_id=None, input_tokens=3, output_tokens=0) == draft(
        "deepseek", {"kind": "usage", **spent}
    )


@pytest.mark.parametrize("harness", ["@github/copilot", "qwen-code", "kimi", "pi", "deepseek"])
def test_a_session_is_named_by_either_field(harness: str) -> None:
    records: list[object] = [{"sessionId": "a"}, {"session_id": "b"}, {"id": "c"}, []]

    assert ["a", "b", None, None] == [find_dialect(harness).session_id(record) for record in records]
