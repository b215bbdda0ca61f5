"""What both Kimi command lines print, and what no recording of it shows."""

from typing import Any

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from tests.support.told_events import read_records, told

Fields = dict[str, Any]
KIMI = "kimi"


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def think(words: str, blob: str | None = None) -> Fields:
    return {"type": "think", "think": words, "encrypted": blob}


def call(name: str = "t", arguments: object = '{"x": 1}') -> Fields:
    return {"type": "function", "id": name, "function": {"name": "f", "arguments": arguments}}


def answer(content: object, *calls: Fields) -> Fields:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def result(content: object, name: str = "t") -> Fields:
    return {"role": "tool", "tool_call_id": name, "content": content}


VERSION = {"role": "meta", "type": "system.version", "version": "2.1.0"}
HINT = {"role": "meta", "type": "session.resume_hint", "session_id": "session_1"}
BOTH = [answer("a", call()), result("out"), answer("b")]


def test_a_turn_of_kimi_cli_ends_with_an_answer_without_calls() -> None:
    whole = ["turn", "said a", "call t f {'x': 1}", "ok t out", "said b"]

    assert whole == told(KIMI, *BOTH)
    assert [*whole, "end completed"] == told(KIMI, *BOTH, ended=True)
    assert [*whole, "end completed", "turn", "said c"] == told(KIMI, *BOTH, answer("c"))


def test_an_error_behind_the_last_word_is_the_end_of_its_turn() -> None:
    assert ["turn", "said a", "end failed error: peer closed\nread)"] == told(
        KIMI, answer("a"), "peer closed", "read)", ended=True
    )


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("Error code: 400", "failed error: Error code: 400"),
        ("Max number of steps reached: 2", "step_limit"),
        ("Interrupted by user", "interrupted"),
    ],
)
def test_plain_lines_tell_why_a_process_ended(words: str, outcome: str) -> None:
    assert f"end {outcome}" == told(KIMI, answer("a", call()), words, ended=True)[-1]


def test_a_process_that_could_not_begin_is_a_turn_that_failed() -> None:
    assert ["turn", "end failed error: no key"] == told(KIMI, "no key", ended=True)
    assert ["turn", "end failed error: no key", "turn", "said a"] == told(KIMI, "no key", answer("a"))


def test_an_answer_while_calls_are_open_is_another_process() -> None:
    assert ["turn", "call t f {'x': 1}", "end interrupted", "turn", "said b"] == told(
        KIMI, answer(None, call()), answer("b")
    )


def test_a_call_that_was_cut_and_tried_again_is_none() -> None:
    reading = read_records(KIMI, answer("aa", call("1", '{"x": '), call("2")), result("out", "2"), answer("b"))

    assert ["turn", "said a", "call 2 f {'x': 1}", "ok 2 out", "said b"] == reading.told
    assert {"assistant/cut_call": 1} == reading.ignored


def test_a_call_that_was_cut_may_have_been_made_after_all() -> None:
    assert ["turn", 'call t f {"x": ', "failed t <system>ERROR: bad</system>"] == told(
        KIMI, answer([], call("t", '{"x": ')), result("<system>ERROR: bad</system>")
    )


def test_the_last_call_in_the_making_is_taken_where_its_process_died() -> None:
    printed = [answer("a", call("1"), call("2", '{"x": ')), result("out", "1")]
    before = ["turn", "said a", "call 1 f {'x': 1}", "ok 1 out"]

    assert before == told(KIMI, *printed)
    assert [*before, 'call 2 f {"x": '] == told(KIMI, *printed, ended=True)
    assert [*before, 'call 2 f {"x": ', "end interrupted", "turn", "said b"] == told(KIMI, *printed, answer("b"))
    assert [*before, "end failed error: cut"] == told(KIMI, *printed, "cut", ended=True)
    assert [*before, 'call 2 f {"x": ', "end interrupted"] == told(KIMI, *printed, "Interrupted by user")


@pytest.mark.parametrize(
    ("arguments", "args"),
    [("", "{}"), (None, "None"), ({"x": 1}, "{'x': 1}"), ('{"x": "a\tb"}', "{'x': 'a\\tb'}"), ("[NaN]", "[NaN]")],
)
def test_arguments_are_json_where_they_can_be(arguments: object, args: str) -> None:
    assert f"call t f {args}" == told(KIMI, answer(None, call(arguments=arguments)), result("out"))[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([text("a"), text("b")], ["said ab"]),
        ([think("hm", "blob"), text("a")], ["thought hm <blob>", "said a"]),
        ([think("hm"), text("ha"), think("hm"), text("half")], ["thought hm", "said half"]),
        ([think("hm"), text("a"), think("so"), text("b")], ["thought hm", "said a", "thought so", "said b"]),
        ([text("a"), think("a"), text("a")], ["said a", "thought a", "said a"]),
        ([text("x")] * 100, ["said " + "x" * 100]),
        ([None, "x"], []),
    ],
)
def test_tries_in_one_message_are_said_once(content: object, said: list[str]) -> None:
    assert said == [one for one in told(KIMI, answer(content)) if one != "turn"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([text("<system>ok</system>"), text("out")], "ok t <system>ok</system>out"),
        ([text("<system>ERROR: no</system>"), text("out")], "failed t <system>ERROR: no</system>\nout"),
        ([text("a"), {"type": "image_url"}], "ok t [{'type': 'text', 'text': 'a'}, {'type': 'image_url'}]"),
        (None, "ok t None"),
    ],
)
def test_a_result_is_what_the_model_saw(content: object, words: str) -> None:
    assert words == told(KIMI, answer(None, call()), result(content))[-1]


def test_kimi_code_marks_where_a_process_begins_and_ends_well() -> None:
    assert ["turn", "said a", "end completed", "turn", "said b", "end interrupted", "turn"] == told(
        KIMI, VERSION, answer("a"), HINT, VERSION, answer("b"), VERSION, ended=True
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("out\nCommand failed with exit code: 3.", "failed t out\nCommand failed with exit code: 3."),
        ("Command failed with exit code: 3. Or so", "ok t Command failed with exit code: 3. Or so"),
        ("<system>ERROR", "failed t <system>ERROR"),
    ],
)
def test_a_failure_of_kimi_code_is_in_its_words_alone(content: str, words: str) -> None:
    assert words == told(KIMI, VERSION, answer(None, call()), result(content))[-1]


def test_a_session_that_was_closed_was_interrupted() -> None:
    assert ["failed t Session closed", "end interrupted"] == told(
        KIMI, VERSION, answer(None, call()), result("Session closed")
    )[-2:]


def test_a_line_beside_kimi_codes_records_is_counted() -> None:
    assert {"text": 1} == read_records(KIMI, VERSION, "a warning").ignored


def test_the_context_file_tells_prompts_too() -> None:
    reading = read_records(
        KIMI,
        *({"role": "_checkpoint", "id": 0}, {"role": "user", "content": "a"}, answer("b")),
        *({"role": "user", "content": "<system-reminder>x"}, {"role": "user", "content": [text("c")]}),
    )

    assert ["turn", "user a", "said b", "user <system-reminder>x", "end completed", "turn", "user c"] == reading.told
    assert {"_checkpoint": 1} == reading.ignored


@pytest.mark.parametrize(
    "record", [{"role": "assistant", "tool_calls": [{"id": "t"}]}, {"role": "tool", "content": ""}, {"no": "role"}, 5]
)
def test_a_record_without_what_it_must_have_is_refused(record: object) -> None:
    with pytest.raises(DialectError, match=KIMI):
        read_records(KIMI, record)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"id": "n", "category": "task", "type": "done", "title": "x"}, "done"),
        ({"content": "plan", "file_path": "p"}, "plan"),
        ({"sessionDir": "/x/session_1", "workDir": "/y"}, "session_index"),
        ({"role": "assistant", "content": []}, "assistant/empty"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "user/image_url"),
    ],
)
def test_what_maps_to_nothing_is_counted(record: Fields, kind: str) -> None:
    assert {kind: 1} == read_records(KIMI, record).ignored


def test_the_session_is_named_by_the_hint_and_the_index() -> None:
    dialect = find_dialect(KIMI)

    assert ["session_1"] * 2 == [dialect.session_id(one) for one in (HINT, {"sessionDir": "/x/session_1/"})]
