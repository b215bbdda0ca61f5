"""The wire file of kimi-cli, and what no recording of it shows: retries, sub-agents inside."""

from typing import Any

import pytest

from incarnate.domain.errors import DialectError
from tests.support.told_events import read_records, told

Fields = dict[str, Any]
KIMI = "kimi"


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def call(name: str = "t", arguments: object = '{"x": 1}') -> Fields:
    return {"type": "function", "id": name, "function": {"name": "f", "arguments": arguments}}


def wire(kind: str, **payload: Any) -> Fields:
    return {"timestamp": 1796065834.5, "message": {"type": kind, "payload": payload}}


def called(name: str = "t", arguments: str | None = '{"x": 1}') -> Fields:
    return wire("ToolCall", **call(name, arguments))


def returned(name: str = "t", **value: Any) -> Fields:
    return wire("ToolResult", tool_call_id=name, return_value=value)


BEGIN, END, STEP = wire("TurnBegin", user_input="go"), wire("TurnEnd"), wire("StepBegin", n=1)


def part(words: str) -> Fields:
    return wire("ContentPart", **text(words))


def test_a_call_in_pieces_is_drafted_when_it_is_whole() -> None:
    pieces = [wire("ToolCallPart", arguments_part=piece) for piece in ('{"x"', ": 1}")]

    assert ["turn", "user go"] == told(KIMI, BEGIN, STEP, called(arguments=None), *pieces)
    assert "call t f {'x': 1}" == told(KIMI, BEGIN, STEP, called(arguments=None), *pieces, ended=True)[-1]


def test_a_piece_behind_the_result_of_another_call_is_of_the_last_call() -> None:
    rest = wire("ToolCallPart", arguments_part="1}")
    log = told(KIMI, STEP, called("1"), called("2", '{"x": '), returned("1", output="out"), rest, returned("2"))

    assert ["call 1 f {'x': 1}", "ok 1 out", "call 2 f {'x': 1}"] == log[:3]


def test_a_piece_of_nothing_is_counted() -> None:
    assert {"ToolCallPart": 1} == read_records(KIMI, wire("ToolCallPart", arguments_part="x")).ignored


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"output": "out", "message": "done"}, "ok t <system>done</system>out"),
        ({"output": "", "message": ""}, "ok t <system>Tool output is empty.</system>"),
        ({"output": "half", "message": "no", "is_error": True}, "failed t <system>ERROR: no</system>\nhalf"),
        ({"output": [{"type": "image_url"}]}, "ok t [{'type': 'image_url'}]"),
        ({"output": {"type": "image_url"}}, "ok t [{'type': 'image_url'}]"),
    ],
)
def test_a_saved_result_is_what_the_model_saw(value: Fields, words: str) -> None:
    assert words == told(KIMI, called(), returned(**value))[-1]


def test_a_step_that_is_tried_again_takes_its_words_back() -> None:
    log = told(KIMI, BEGIN, STEP, part("half"), wire("StepRetry"), part("half"), END)

    assert ["turn", "user go", "said half", "retry 2-3", "said half", "end completed"] == log
    assert {"StepBegin": 1, "StepRetry": 1} == read_records(KIMI, BEGIN, STEP, wire("StepRetry")).ignored


def test_a_step_says_nothing_twice() -> None:
    assert ["said a", "said b"] == told(KIMI, STEP, part("a"), part("a"), part("b"))
    assert ["said a", "said a"] == told(KIMI, STEP, part("a"), STEP, part("a"))


def test_a_cut_call_is_made_only_if_its_result_comes() -> None:
    cut = called(arguments='{"x": ')

    assert ["turn", "user go", "end unknown"] == told(KIMI, BEGIN, STEP, cut, END)
    assert ['call t f {"x": ', "ok t out"] == told(KIMI, STEP, cut, part(""), returned(output="out"))


@pytest.mark.parametrize(
    ("records", "outcome"),
    [
        ([part("a")], "completed"),
        ([called()], "interrupted"),
        ([called(), returned(output="x")], "unknown"),
        ([wire("StepInterrupted")], "failed step_interrupted: the step was interrupted by an error"),
    ],
)
def test_a_turn_ends_as_its_last_step_did(records: list[Fields], outcome: str) -> None:
    assert f"end {outcome}" == told(KIMI, BEGIN, STEP, *records, END)[-1]


def test_tokens_are_told_once_a_step() -> None:
    tokens = {"input_other": 3, "output": 4, "input_cache_read": 5, "input_cache_creation": 6}

    assert ["usage 3/4 read 5 written 6"] == told(KIMI, wire("StatusUpdate", token_usage=tokens))
    assert {"StatusUpdate": 1} == read_records(KIMI, wire("StatusUpdate", token_usage=None)).ignored


def test_what_a_sub_agent_did_is_inside_its_call() -> None:
    def inside(kind: str, **payload: Any) -> Fields:
        event = {"type": kind, "payload": payload}
        return wire("SubagentEvent", parent_tool_call_id="t", event=event)

    deeper = inside("SubagentEvent", task_tool_call_id="u", event={"type": "ContentPart", "payload": text("deep")})
    records = [inside("TurnBegin", user_input="sub"), inside("ToolCall", **call("u")), deeper, inside("TurnEnd")]
    reading = read_records(KIMI, BEGIN, called(), *records)

    assert ["[t] user sub", "[u] said deep", "[t] call u f {'x': 1}"] == reading.told[2:]


def test_words_to_a_working_agent_and_a_compaction_are_told() -> None:
    log = told(KIMI, BEGIN, STEP, part("a"), wire("SteerInput", user_input=[text("stop")]), wire("CompactionEnd"))

    assert ["turn", "user go", "said a", "user stop", "auto 0-2"] == log


def test_a_compaction_keeps_the_last_two_messages() -> None:
    asked = wire("TurnBegin", user_input="/compact")
    turn = [BEGIN, STEP, part("a"), part("b"), END]

    # turn 0, user 1, said 2, said 3, end 4; turn 5, user 6, said 7, said 8, end 9
    assert "auto 0-5" == told(KIMI, *turn, *turn, asked, wire("CompactionEnd"))[-1]


def test_the_time_of_the_wire_is_kept() -> None:
    assert "2026-11-30T19:10:34.500Z" == read_records(KIMI, BEGIN).events[0].occurred_at


@pytest.mark.parametrize("message", [{"payload": {}}, {"type": "ToolCall", "payload": {"id": "t"}}])
def test_a_message_of_the_wire_without_what_it_must_have_is_refused(message: Fields) -> None:
    with pytest.raises(DialectError, match=KIMI):
        read_records(KIMI, {"timestamp": 1, "message": message})
