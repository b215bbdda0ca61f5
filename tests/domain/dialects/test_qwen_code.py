"""What the recordings of Qwen Code do not show: several prompts, compactions, lines taken back, running totals."""

from typing import Any

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from tests.support.told_events import read_records, told

Fields = dict[str, Any]
QWEN = "qwen-code"


def line(kind: str, **fields: Any) -> Fields:
    return {"type": kind, "session_id": "s", "parent_tool_use_id": None, **fields}


def usage(prompt: int, output: int, cached: int = 0) -> Fields:
    return {"input_tokens": prompt, "output_tokens": output, "cache_read_input_tokens": cached}


def answer(*blocks: Fields, spent: Fields | None = None, inside: str | None = None) -> Fields:
    message = {"id": "u", "model": "m", "content": list(blocks), "usage": spent or usage(0, 0)}
    return line("assistant", message=message, parent_tool_use_id=inside)


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def thinking(words: str, signature: str = "") -> Fields:
    return {"type": "thinking", "thinking": words, "signature": signature}


def asked(*blocks: Fields, inside: str | None = None) -> Fields:
    return line("user", message={"role": "user", "content": list(blocks)}, parent_tool_use_id=inside)


def tool_result(content: str, *, failed: bool = False) -> Fields:
    return {"type": "tool_result", "tool_use_id": "t", "is_error": failed, "content": content}


def ended(spent: Fields | None = None, **fields: Any) -> Fields:
    return line("result", **{"subtype": "success", "is_error": False, "usage": spent or usage(0, 0), **fields})


INIT = line("system", subtype="init", uuid="s")
RETRY = line("system", subtype="retry", data={"reason": "retry"})
USED = {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}
PIECE = "content_block_delta"


def event(kind: str, **fields: Any) -> Fields:
    return line("stream_event", event={"type": kind, **fields})


# the stream


def test_an_empty_signature_is_none() -> None:
    assert ["thought a", "thought b <sig>"] == told(QWEN, INIT, answer(thinking("a"), thinking("b", "sig")))[1:]


def test_the_cache_is_part_of_the_input_that_a_line_tells() -> None:
    assert ["said a", "usage 300/42 read 900 by m"] == told(QWEN, INIT, answer(text("a"), spent=usage(1200, 42, 900)))[
        1:
    ]


def test_a_process_may_take_several_prompts() -> None:
    assert ["turn", "said a", "end completed", "turn", "user b", "said c", "end completed"] == told(
        QWEN, INIT, answer(text("a")), ended(), asked(text("b")), answer(text("c")), ended()
    )


def test_a_second_process_ends_the_turn_of_the_first() -> None:
    assert ["turn", "said a", "end interrupted", "turn"] == told(QWEN, INIT, answer(text("a")), INIT)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, "completed"),
        ({"subtype": "error_max_turns", "is_error": True}, "step_limit"),
        ({"subtype": "error_during_execution", "error": {"message": "why"}}, "failed error_during_execution: why"),
        ({"subtype": "success", "is_error": True, "result": "no"}, "failed success: no"),
        ({"subtype": "error_during_execution"}, "failed error_during_execution: error_during_execution"),
    ],
)
def test_a_turn_ends_as_its_result_says(fields: Fields, outcome: str) -> None:
    assert f"end {outcome}" == told(QWEN, INIT, ended(**fields))[-1]


def test_an_interrupt_ends_the_turn_with_its_call() -> None:
    cancelled = tool_result("[Operation Cancelled] Reason: User", failed=True)

    assert ["failed t [Operation Cancelled] Reason: User", "end interrupted"] == told(
        QWEN, INIT, answer(USED), asked(cancelled)
    )[-2:]
    assert "end" not in told(QWEN, INIT, answer(USED), asked(tool_result("no file", failed=True)))[-1]


def test_the_error_behind_an_answer_is_no_answer() -> None:
    reading = read_records(QWEN, INIT, answer(text("half[API Error: 400 no]")), ended(subtype="error_during_execution"))

    assert ["turn", "said half", "end failed error_during_execution: [API Error: 400 no]"] == reading.told
    assert {"assistant/api_error": 1} == read_records(QWEN, INIT, answer(text("[API Error: 400 no]"))).ignored


def test_an_answer_that_was_counted_may_end_like_an_error() -> None:
    words = "it said [API Error: x]"

    assert f"said {words}" in told(QWEN, INIT, answer(text(words), spent=usage(5, 5)))


@pytest.mark.parametrize(
    ("tries", "words", "said"),
    [(1, "haha", "haha"), (2, "haha", "ha"), (3, "hahaha", "ha"), (2, "haho", "haho"), (2, "hahah", "hahah")],
)
def test_tries_in_one_line_are_said_once(tries: int, words: str, said: str) -> None:
    assert f"said {said}" == told(QWEN, INIT, *[RETRY] * (tries - 1), answer(text(words)))[-1]


def test_tries_in_several_lines_are_said_once() -> None:
    tries = [answer(thinking("hm")), RETRY, answer(text("half")), answer(thinking("hm")), answer(text("half"))]
    reading = read_records(QWEN, INIT, *tries, answer(text("half and whole"), spent=usage(5, 5)))

    assert ["turn", "thought hm", "said half", "said half and whole", "usage 5/5 by m"] == reading.told
    assert 2 == reading.ignored["assistant/repeated"]


@pytest.mark.parametrize("between", [asked(tool_result("out")), answer(USED, spent=usage(5, 5))])
def test_the_same_words_of_another_call_are_said_again(between: Fields) -> None:
    log = told(QWEN, INIT, answer(text("again")), between, answer(text("again")))

    assert 2 == log.count("said again")


def test_what_was_streamed_of_a_block_counts_only_where_the_block_never_came() -> None:
    streamed = [
        event("content_block_start", content_block={"type": "text"}),
        event(PIECE, delta={"type": "text_delta", "text": "hal"}),
        event(PIECE, delta={"type": "text_delta", "text": "f"}),
    ]

    assert ["turn", "said half"] == told(QWEN, INIT, *streamed, ended=True)
    assert ["turn", "said half", "end interrupted", "turn"] == told(QWEN, INIT, *streamed, INIT)
    assert ["turn", "said half"] == told(QWEN, INIT, *streamed, answer(text("half")), ended=True)


def test_a_thought_in_the_making_is_kept_and_a_call_in_the_making_is_none() -> None:
    thought = event(PIECE, delta={"type": "thinking_delta", "thinking": "h"})
    call = event(PIECE, delta={"type": "input_json_delta", "partial_json": "{"})

    assert ["turn", "thought h"] == told(QWEN, INIT, thought, call, ended=True)


def test_a_result_counts_the_session_and_what_it_has_more_is_added_where_the_base_is_known() -> None:
    first, second = [answer(text(one), spent=usage(10, 1)) for one in "ab"]
    log = told(QWEN, INIT, first, ended(usage(30, 3)), INIT, second, ended(usage(45, 5)))

    assert ["usage 10/1 by m", "usage 30/3 of session", "usage 10/1 by m", "usage 5/1"] == [
        one for one in log if one.startswith("usage")
    ]


def test_a_result_that_says_no_more_than_the_lines_adds_nothing() -> None:
    assert ["usage 10/1 by m", "end completed"] == told(
        QWEN, INIT, answer(text("a"), spent=usage(10, 1)), ended(usage(10, 1))
    )[-2:]


def test_what_a_background_agent_spent_is_inside_its_call() -> None:
    data = {"tool_use_id": "t", "usage": {"total_tokens": 22}}
    note = line("system", subtype="task_notification", data=data)

    assert "[t] usage 20/2" == told(QWEN, INIT, answer(text("a"), spent=usage(10, 1)), note, ended(usage(30, 3)))[-2]


def test_another_session_in_the_stream_has_totals_of_its_own() -> None:
    other = {**INIT, "session_id": "other"}
    log = told(QWEN, INIT, ended(usage(30, 3)), other, ended(usage(30, 3)))

    assert 2 == log.count("usage 30/3 of session")


def test_what_a_sub_agent_says_is_inside_its_call_and_begins_no_turn() -> None:
    assert ["[t] user go", "[t] said a", "[t] usage 5/5 by m"] == told(
        QWEN, asked(text("go"), inside="t"), answer(text("a"), spent=usage(5, 5), inside="t")
    )


def test_a_compaction_in_the_stream_has_no_summary() -> None:
    compacted = line("system", subtype="compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 9})

    assert ["turn", "said a", "auto 0-2"] == told(QWEN, INIT, answer(text("a")), compacted)


def test_a_conversation_that_was_compressed_by_command_is_a_compaction() -> None:
    note = "Context compressed (1200 -> ~1042)."

    assert ["turn", "manual 0-1"] == told(QWEN, INIT, answer(text(note)))
    assert f"said {note}" in told(QWEN, INIT, answer(text(note), spent=usage(5, 5)))


def test_the_list_that_one_flag_prints_is_the_same_stream() -> None:
    reading = read_records(QWEN, [INIT, answer(text("a")), ended()])

    assert (["turn", "said a", "end completed"], {"json": 1}) == (reading.told, reading.ignored)


@pytest.mark.parametrize(
    "record",
    [
        line("assistant"),
        line("user", message={}),
        answer({"type": "tool_use", "id": "t"}),
        asked({"type": "tool_result"}),
    ],
)
def test_a_line_without_what_it_must_have_is_refused(record: Fields) -> None:
    with pytest.raises(DialectError, match=QWEN):
        read_records(QWEN, record)


# saved chats


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


def test_a_line_is_named_by_its_uuid_but_not_the_first_one() -> None:
    dialect = find_dialect(QWEN)

    records: list[object] = [INIT, {"type": "user", "uuid": "u"}, []]

    assert [None, "u", None] == [dialect.record_id(record) for record in records]
    assert ["s", "s"] == [dialect.session_id(one) for one in (INIT, [INIT])]
