"""What the recordings of Gemini CLI do not show: tries that differ, calls that fail, histories that are replaced."""

from typing import Any

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from tests.support.told_events import read_records, told

Fields = dict[str, Any]
GEMINI = "gemini-cli"


def at(second: float) -> str:
    return f"2026-11-30T19:10:{second:06.3f}Z"


def piece(text: str, second: float = 0) -> Fields:
    return {"type": "message", "timestamp": at(second), "role": "assistant", "content": text, "delta": True}


def result(**fields: Any) -> Fields:
    return {"type": "result", "timestamp": at(9), **fields}


INIT: Fields = {"type": "init", "timestamp": at(0), "session_id": "s", "model": "m"}
ASKED: Fields = {"type": "message", "role": "user", "content": "go"}
USED: Fields = {"type": "tool_use", "tool_name": "f", "tool_id": "t", "parameters": {"x": 1}}


# the stream


def test_an_answer_in_pieces_is_one_message() -> None:
    assert ["turn", "user go", "said one two", "call t f {'x': 1}", "said three"] == told(
        GEMINI, INIT, ASKED, piece("one "), piece("two"), USED, piece("three"), ended=True
    )


def test_pieces_wait_for_the_end_of_their_message() -> None:
    assert ["turn", "user go"] == told(GEMINI, INIT, ASKED, piece("one "))


def test_a_warning_between_pieces_does_not_cut_them() -> None:
    warning = {"type": "error", "severity": "warning", "message": "loop"}
    reading = read_records(GEMINI, piece("one "), warning, piece("two"), ended=True)

    assert (["said one two"], {"error/warning": 1}) == (reading.told, reading.ignored)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([("Hello w", 0), ("Hello wor", 1), ("ld", 1.01)], "Hello world"),
        ([("Hello w", 0), ("Hel", 1), ("lo world", 1.01)], "Hello world"),
        ([("Hello w", 0), ("Hel", 1)], "Hello w"),
        ([("Hello", 0), ("Hello", 1), ("Hello", 2)], "Hello"),
        ([("Hello", 0), ("Hello", 0.1)], "HelloHello"),
        ([("Hello ", 0), ("world", 5), (", again", 9)], "Hello world, again"),
        ([(" ", 0), (" x", 1)], "  x"),
    ],
)
def test_a_try_that_repeats_what_was_said_replaces_it(pieces: list[tuple[str, float]], text: str) -> None:
    assert [f"said {text}"] == told(GEMINI, *[piece(*one) for one in pieces], ended=True)


@pytest.mark.parametrize("when", ["", "never", "2026-11-30T19:10:09"])
def test_pieces_without_a_time_are_no_tries(when: str) -> None:
    odd = {**piece("Hello", 5), "timestamp": when}

    assert ["said HelloHello"] == told(GEMINI, piece("Hello"), odd, ended=True)


def test_a_second_process_ends_the_turn_of_the_first() -> None:
    assert ["turn", "user go", "said half", "end interrupted", "turn", "user go"] == told(
        GEMINI, INIT, ASKED, piece("half"), INIT, ASKED
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": "success", "output": "out"}, "ok t out"),
        ({"status": "success"}, "ok t None"),
        ({"status": "error", "error": {"type": "e", "message": "no such file"}}, "failed t no such file"),
        ({"status": "error", "output": "half"}, "failed t half"),
    ],
)
def test_a_result_says_whether_it_failed(fields: Fields, words: str) -> None:
    assert [words] == told(GEMINI, {"type": "tool_result", "tool_id": "t", **fields})


def test_tokens_are_told_by_model_and_thoughts_are_what_the_total_has_more() -> None:
    stats = {
        "a": {"total_tokens": 130, "input_tokens": 100, "output_tokens": 20, "cached": 60},
        "b": {"total_tokens": 5, "input_tokens": 5},
        "c": {"total_tokens": 0},
    }

    assert ["usage 40/20 read 60 thought 10 by a", "usage 5/0 by b"] == told(GEMINI, result(stats={"models": stats}))
    assert ["usage 7/1 by m"] == told(GEMINI, INIT, result(stats={"input_tokens": 7, "output_tokens": 1}))[1:2]


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"status": "success"}, "completed"),
        ({"status": "error", "error": {"type": "FatalTurnLimitedError", "message": "enough"}}, "step_limit"),
        ({"status": "error", "error": {"type": "FatalCancellationError", "message": "stop"}}, "interrupted"),
        ({"status": "error", "error": {"type": "X", "message": "why"}}, "failed X: why"),
        ({"status": "error"}, "failed error: error"),
    ],
)
def test_a_turn_ends_as_its_result_says(fields: Fields, outcome: str) -> None:
    assert ["turn", f"end {outcome}"] == told(GEMINI, INIT, result(**fields))


@pytest.mark.parametrize(
    "record",
    [
        {"type": "message", "role": "assistant"},
        {"type": "message", "content": "x"},
        {"type": "tool_use", "tool_name": "f"},
        {"type": "tool_use", "tool_id": "t"},
        {"type": "tool_result", "output": "x"},
        {"no": "type"},
        [],
    ],
)
def test_a_refused_record_leaves_what_was_held(record: object) -> None:
    normalizer: Any = find_dialect(GEMINI).normalizer()
    normalizer.feed(piece("held"))
    with pytest.raises(DialectError, match=GEMINI):
        normalizer.feed(record)

    assert ["held"] == [draft.text for draft in normalizer.finish().drafts]


# saved chats


def header(**fields: Any) -> Fields:
    return {"sessionId": "s", "projectHash": "h", "startTime": at(0), **fields}


def user(name: str, text: str) -> Fields:
    return {"id": name, "timestamp": at(0), "type": "user", "content": [{"text": text}]}


def model(name: str, text: str = "", **fields: Any) -> Fields:
    return {"id": name, "timestamp": at(0), "type": "gemini", "content": text, **fields}


def call(name: str = "t", **fields: Any) -> Fields:
    return {"id": name, "name": "f", "args": {}, **fields}


def responded(response: object, name: str = "t") -> list[Fields]:
    return [{"functionResponse": {"id": name, "name": "f", "response": response}}]


def snapshot(*messages: Fields, **fields: Any) -> Fields:
    return {"$set": {"messages": list(messages), **fields}}


def test_a_message_that_fills_up_is_drafted_as_far_as_it_is_new() -> None:
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 2}
    thoughts = [{"subject": "Plan", "description": "first"}]
    done = call(status="success", result=responded({"output": "out"}))

    assert [
        *("thought Plan: first", "said Hel", "usage 40/5 read 60 thought 2 by m"),
        *("said lo", "call t f {}", "usage 0/3 by m"),
        "ok t out",
    ] == told(
        GEMINI,
        model("a", "Hel", thoughts=thoughts, tokens=tokens, model="m"),
        model("a", "Hello", thoughts=thoughts, tokens={**tokens, "output": 8}, model="m", toolCalls=[call()]),
        model("a", "Hello", thoughts=thoughts, tokens={**tokens, "output": 8}, model="m", toolCalls=[done]),
    )


def test_a_result_that_stands_twice_is_told_once() -> None:
    done = call(status="success", result=responded({"output": "out"}))
    again = {"id": "u", "type": "user", "content": responded({"output": "out"})}
    reading = read_records(GEMINI, model("a", toolCalls=[done]), again)

    assert (["call t f {}", "ok t out"], {"user/empty": 1}) == (reading.told, reading.ignored)


def test_a_result_may_come_as_the_users_alone_and_an_id_be_used_again() -> None:
    first = [model("a", toolCalls=[call()]), {"id": "u", "type": "user", "content": responded({"error": "no"})}]
    second = [model("b", toolCalls=[call()]), {"id": "v", "type": "user", "content": responded({"output": "yes"})}]

    assert ["call t f {}", "failed t no", "call t f {}", "ok t yes"] == told(GEMINI, *first, *second)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": "error", "result": responded({"error": "no file"})}, "failed t no file"),
        (
            {"status": "cancelled", "result": responded({"output": "half"}), "resultDisplay": "stopped"},
            "failed t stopped",
        ),
        ({"status": "cancelled"}, "failed t cancelled"),
        ({"status": "error", "resultDisplay": "no"}, "failed t no"),
        ({"status": "success", "result": responded({"output": 1, "more": 2})}, "ok t {'output': 1, 'more': 2}"),
        ({"status": "success", "result": "text"}, "ok t text"),
    ],
)
def test_a_saved_result_says_whether_it_failed(fields: Fields, words: str) -> None:
    assert ["call t f {}", words] == told(GEMINI, model("a", toolCalls=[call(**fields)]))


def test_a_call_that_runs_has_no_result_yet() -> None:
    assert ["call t f {}"] == told(GEMINI, model("a", toolCalls=[call(status="executing")]))


def test_calls_side_by_side_stand_before_their_results() -> None:
    calls = [call(name, status="success", result=responded({"output": name}, name)) for name in "ab"]

    assert ["call a f {}", "call b f {}", "ok a a", "ok b b"] == told(GEMINI, model("m", toolCalls=calls))


def test_parts_of_a_loaded_history_are_read_like_the_fields() -> None:
    content = [
        {"text": "hm", "thought": True, "thoughtSignature": "sig"},
        {"text": "Hello"},
        {"functionCall": {"name": "f", "args": {}}},
        {"inlineData": {}},
    ]
    reading = read_records(GEMINI, model("a", content))  # type: ignore[arg-type]

    assert ["thought hm <sig>", "said Hello", "call f f {}"] == reading.told
    assert {"gemini/inlineData": 1} == reading.ignored


def test_a_prompt_ends_the_turn_before_it() -> None:
    assert ["turn", "user a", "said b", "end completed", "turn", "user c", "end interrupted", "turn", "user d"] == told(
        GEMINI, header(), user("1", "a"), model("2", "b"), user("3", "c"), user("4", "d")
    )


@pytest.mark.parametrize("restart", [header(), {"$set": {"sessionId": "s"}}])
def test_how_a_turn_before_a_restart_ended_is_known_only_without_an_answer(restart: Fields) -> None:
    answered = told(GEMINI, header(), user("1", "a"), model("2", "b"), restart, user("3", "c"))
    asked = told(GEMINI, header(), user("1", "a"), restart, user("3", "c"))

    assert ["end unknown", "end interrupted"] == [answered[3], asked[2]]


@pytest.mark.parametrize(
    ("kind", "text", "outcome"),
    [
        ("error", "quota", "failed error: quota"),
        ("info", "Request cancelled.", "interrupted"),
        ("info", "Update available", "interrupted"),
    ],
)
def test_a_note_of_the_harness_may_tell_how_a_turn_ended(kind: str, text: str, outcome: str) -> None:
    note = {"id": "n", "type": kind, "content": text}
    reading = read_records(GEMINI, user("1", "a"), note, user("2", "b"))

    assert f"end {outcome}" == reading.told[2]
    assert {f"{kind}/seen": 1} == reading.ignored


def test_an_error_that_was_overcome_is_none() -> None:
    note = {"id": "n", "type": "error", "content": "quota"}

    assert "end completed" == told(GEMINI, user("1", "a"), note, model("2", "b"), user("3", "c"))[3]


SETTING = user("ctx", "<session_context>\nToday is Monday.")


def test_what_tells_the_model_where_it_is_is_no_prompt() -> None:
    reading = read_records(GEMINI, header(), SETTING, snapshot(SETTING), user("1", "a"))

    assert ["turn", "user a"] == reading.told
    assert {"session": 1, "user/session_context": 1, "$set/messages": 1} == reading.ignored


def test_a_snapshot_while_a_session_is_loaded_changes_nothing() -> None:
    old = [user("1", "a"), model("2", "b")]
    loaded = told(GEMINI, header(), *old, header(), snapshot(SETTING), snapshot(SETTING, *old), user("3", "c"))

    assert ["turn", "user a", "said b", "end unknown", "turn", "user c"] == loaded


def test_a_process_that_has_not_read_its_session_yet_forgets_nothing() -> None:
    old = [user("1", "a"), model("2", "b")]
    log = told(GEMINI, header(), *old, snapshot(*old), header(), snapshot(SETTING), user("3", "c"))

    assert ["turn", "user a", "said b", "end unknown", "turn", "user c"] == log


def test_a_snapshot_without_the_prompt_takes_the_turn_back() -> None:
    taken = told(
        GEMINI, header(), user("1", "a"), model("2", "b"), user("3", "c"), snapshot(*[user("1", "a"), model("2", "b")])
    )
    then = told(
        GEMINI,
        *(header(), user("1", "a"), model("2", "b"), user("3", "c")),
        *(snapshot(user("1", "a"), model("2", "b")), user("4", "d")),
    )

    assert "end failed taken_back: the harness took the turn out of its history" == taken[-1]
    assert ["user c", taken[-1], "rewind 3-7", "turn", "user d"] == then[-5:]


def test_new_messages_in_a_snapshot_stand_for_the_old_ones_that_are_gone() -> None:
    summary = [user("s", "the story so far"), model("ack", "Got it.")]
    old = [user("1", "a"), model("2", "b"), user("3", "c"), model("4", "d")]
    kept = snapshot(SETTING, *summary, user("3", "c"), model("4", "d"))
    log = told(GEMINI, header(), *old, kept, user("5", "e"))

    # turn 0, user 1, said 2, end 3, turn 4, user 5: what was kept begins with the end of the turn before it
    assert ["compression 0-3 the story so far"] == [line for line in log if line.startswith("compression")]
    assert not [line for line in log if "Got it" in line]


def test_a_history_without_anything_old_is_all_summary() -> None:
    log = told(GEMINI, header(), user("1", "a"), model("2", "b"), snapshot(user("s", "story")), user("3", "c"))

    assert ["compression 0-3 story", "end completed", "turn", "user c"] == log[3:]


def test_a_history_that_was_loaded_from_elsewhere_is_told() -> None:
    assert ["turn", "user a", "said b", "end completed", "turn", "user c"] == told(
        GEMINI, header(), snapshot(SETTING, user("1", "a"), model("2", "b")), user("3", "c")
    )


@pytest.mark.parametrize(("name", "span"), [("3", "3-6"), ("unknown", "0-6")])
def test_a_rewind_takes_back_a_message_and_all_behind_it(name: str, span: str) -> None:
    log = told(GEMINI, user("1", "a"), model("2", "b"), user("3", "c"), {"$rewindTo": name})

    assert ["user c", f"rewind {span}"] == log[-2:]


def test_a_rewind_of_nothing_is_counted() -> None:
    assert {"session": 1, "$rewindTo": 1} == read_records(GEMINI, header(), {"$rewindTo": "x"}).ignored


def test_a_chat_of_old_is_one_object() -> None:
    assert ["turn", "user a", "said b"] == told(GEMINI, header(messages=[user("1", "a"), model("2", "b")]))


def test_what_a_sub_agent_did_is_inside_its_name() -> None:
    alone = told(GEMINI, header(kind="subagent", sessionId="ag"), user("1", "a"), model("2", "b"))
    normalizer: Any = find_dialect(GEMINI).normalizer()
    followed = normalizer.agent("ag").feed(user("1", "a")).drafts

    assert ["[agent:ag] user a", "[agent:ag] said b"] == alone
    assert ["agent:ag"] == [draft.parent_call_id for draft in followed]


@pytest.mark.parametrize(
    "record", [{"id": "a"}, model("a", toolCalls=[{"id": "t"}]), snapshot(model("a", toolCalls=[{"name": "f"}]))]
)
def test_a_saved_message_without_what_it_must_have_is_refused(record: Fields) -> None:
    with pytest.raises(DialectError, match=GEMINI):
        read_records(GEMINI, record)
