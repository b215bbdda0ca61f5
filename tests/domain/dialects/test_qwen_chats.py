"""What no recorded chat of Qwen Code shows: lines taken back, agents that report late, histories that keep a tail."""

from typing import Any

import pytest

from incarnate.domain.errors import DialectError
from tests.support.told_events import read_records, told

Fields = dict[str, Any]
QWEN = "qwen-code"


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def saved(kind: str, name: str, parent: str | None = None, *parts: Fields, **fields: Any) -> Fields:
    message = {"message": {"parts": list(parts)}} if kind != "system" else {}
    return {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", **message, **fields}


def user(name: str, words: str, parent: str | None = None, **fields: Any) -> Fields:
    return saved("user", name, parent, text(words), **fields)


def model(name: str, *parts: Fields, parent: str | None = None, **fields: Any) -> Fields:
    return saved("assistant", name, parent, *parts, **fields)


def said(words: str) -> Fields:
    return {"text": words}


CALL = {"functionCall": {"id": "t", "name": "f", "args": {}}}


def answered(response: Fields, told_beside: Fields | None = None, name: str = "r", **fields: Any) -> Fields:
    part = {"functionResponse": {"id": "t", "name": "f", "response": response}}
    return saved("tool_result", name, None, part, toolCallResult=told_beside or {}, **fields)


def system(subtype: str, payload: Fields, name: str = "x") -> Fields:
    return saved("system", name, subtype=subtype, systemPayload=payload)


def telemetry(kind: str, **fields: Any) -> Fields:
    return system("ui_telemetry", {"uiEvent": {"event.name": f"qwen-code.{kind}", **fields}})


def test_an_answer_without_calls_ends_the_turn() -> None:
    thoughts = {"text": "hm", "thought": True, "thoughtSignature": "sig"}
    log = told(QWEN, user("1", "a"), model("2", thoughts, CALL), answered({"output": "out"}), model("3", said("b")))

    assert ["turn", "user a", "thought hm <sig>", "call t f {}", "ok t out", "said b", "end completed"] == log


@pytest.mark.parametrize(
    ("response", "beside", "words"),
    [
        ({"error": "no file"}, {}, "failed t no file"),
        ({"output": "exit 3"}, {"status": "error"}, "failed t exit 3"),
        ({"output": "a", "more": 1}, {"status": "success"}, "ok t {'output': 'a', 'more': 1}"),
        ({"error": "odd"}, {"status": "success"}, "ok t odd"),
    ],
)
def test_a_saved_result_says_whether_it_failed(response: Fields, beside: Fields, words: str) -> None:
    assert [words] == told(QWEN, answered(response, beside))


def test_a_cancelled_call_ends_the_turn() -> None:
    log = told(QWEN, user("1", "a"), model("2", CALL), answered({"error": "stop"}, {"status": "cancelled"}))

    assert ["failed t stop", "end interrupted"] == log[-2:]


def test_a_prompt_ends_a_turn_that_was_not_answered() -> None:
    assert ["turn", "user a", "end interrupted", "turn", "user b"] == told(QWEN, user("1", "a"), user("2", "b"))


def test_a_turn_fails_with_its_last_request() -> None:
    failed = telemetry("api_error", error_type="T", error_message="why")

    assert "end failed T: why" == told(QWEN, user("1", "a"), failed, ended=True)[-1]
    assert "end failed T: why" == told(QWEN, user("1", "a"), failed, user("2", "b"))[2]
    assert "end completed" == told(QWEN, user("1", "a"), failed, model("2", said("b")), ended=True)[-1]


def test_a_background_agent_keeps_the_turn_open_until_it_reports() -> None:
    launched = answered({"output": "on it"}, {"status": "success", "resultDisplay": {"executionMode": "background"}})
    note = user("4", "agent done", subtype="notification")
    log = told(QWEN, user("1", "a"), model("2", CALL), launched, model("3", said("b")), note, model("5", said("c")))

    assert ["said b", "user agent done", "said c", "end completed"] == log[-4:]


def test_a_notification_behind_a_turn_begins_one() -> None:
    assert ["turn", "user done"] == told(QWEN, user("1", "done", subtype="notification"))


COUNTED = {"promptTokenCount": 100, "candidatesTokenCount": 5, "cachedContentTokenCount": 60, "thoughtsTokenCount": 2}
MEASURED = {
    "input_token_count": 100,
    "output_token_count": 5,
    "cached_content_token_count": 60,
    "thoughts_token_count": 2,
}


def test_tokens_of_a_sub_agent_are_counted_once_whoever_tells_them() -> None:
    by_file = model("a", said("x"), isSidechain=True, agentId="kind-t", agentName="kind", usageMetadata=COUNTED)
    measured = telemetry("api_response", subagent_id="kind-t", subagent_name="kind", model="m", **MEASURED)
    begun = [user("1", "a"), model("2", CALL)]

    assert ["[t] usage 40/5 read 60 thought 2 by m", "[t] said x"] == told(QWEN, *begun, measured, by_file)[3:]
    assert ["[t] said x", "[t] usage 40/5 read 60 thought 2"] == told(QWEN, *begun, by_file, measured)[3:]


def test_a_call_that_made_no_message_is_counted_too() -> None:
    measured = telemetry("api_response", model="m", **MEASURED)
    counted = model("2", said("b"), usageMetadata=COUNTED)
    log = told(QWEN, user("1", "a"), measured, counted, measured)

    assert ["usage 40/5 read 60 thought 2 by m", "said b", "end completed", "usage 40/5 read 60 thought 2 by m"] == log[
        2:
    ]


def test_an_agent_of_the_harness_itself_is_named() -> None:
    measured = telemetry("api_response", subagent_id="memory-1", subagent_name="memory", **MEASURED)

    assert "[agent:memory-1] usage 40/5 read 60 thought 2" == told(QWEN, user("1", "a"), measured)[-1]


def test_a_sub_agents_file_alone_tells_its_call() -> None:
    record = user("1", "go", isSidechain=True, agentId="general-purpose-t", agentName="general-purpose")

    assert ["[t] user go"] == told(QWEN, record)
    assert ["[agent:t] user go"] == told(QWEN, {**record, "agentId": "t"})


def test_a_compaction_keeps_what_the_new_history_ends_with() -> None:
    history = [
        {"role": "user", "parts": [said("the story so far")]},
        {"role": "model", "parts": [said("Got it.")]},
        {"role": "model", "parts": [said("b")]},
    ]
    compacted = system("chat_compression", {"compressedHistory": history})
    log = told(QWEN, user("1", "a"), model("2", {"text": "hm", "thought": True}, said("b")), compacted)

    # turn 0, user 1, thought 2, said 3, end 4
    assert "compression 0-2 the story so far" == log[-1]
    assert (
        "compression 0-5 other"
        == told(
            QWEN,
            *(user("1", "a"), model("2", {"text": "hm", "thought": True}, said("b"))),
            system("chat_compression", {"compressedHistory": [{"parts": [said("other")]}, {"parts": [said("else")]}]}),
        )[-1]
    )


def test_a_line_that_names_an_older_one_takes_back_what_stood_behind_it() -> None:
    log = told(QWEN, user("1", "a"), model("2", said("b"), parent="1"), user("3", "c", "2"), user("4", "d", "1"))

    # turn 0, user 1 | said 2, end 3 | turn 4, user 5
    assert ["rewind 2-6", "end interrupted", "turn", "user d"] == log[-4:]


def test_fragments_of_a_message_take_nothing_back() -> None:
    log = told(QWEN, user("1", "a"), model("2", said("b"), parent="1"), model("2", CALL, parent="1"))

    assert not [words for words in log if words.startswith("rewind")]


@pytest.mark.parametrize(
    "record",
    [
        saved("system", "1", subtype="custom_title"),
        {"type": "user", "sessionId": "s", "uuid": "1", "message": {"parts": [{"inlineData": {}}]}},
        model("1"),
    ],
)
def test_what_maps_to_nothing_is_counted(record: Fields) -> None:
    reading = read_records(QWEN, record)

    assert ([], 1) == (reading.told, reading.ignored.total())


@pytest.mark.parametrize("record", [{"type": "user", "sessionId": "s"}, model("1", {"functionCall": {"name": "f"}})])
def test_a_saved_message_without_what_it_must_have_is_refused(record: Fields) -> None:
    with pytest.raises(DialectError, match=QWEN):
        read_records(QWEN, record)
