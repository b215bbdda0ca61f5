"""What no recorded stream of Qwen Code shows: several prompts, tries that differ, running totals."""

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


def test_a_line_is_named_by_its_uuid_but_not_the_first_one() -> None:
    dialect = find_dialect(QWEN)

    records: list[object] = [INIT, {"type": "user", "uuid": "u"}, []]

    assert [None, "u", None] == [dialect.record_id(record) for record in records]
    assert ["s", "s"] == [dialect.session_id(one) for one in (INIT, [INIT])]
