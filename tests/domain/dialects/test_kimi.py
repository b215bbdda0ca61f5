"""What the recordings of kimi-cli and kimi-code do not show: retries, sub-agents inside, undo, compactions."""

from typing import Any

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from tests.support.told_events import read_records, tell, told

Fields = dict[str, Any]
KIMI = "kimi"


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def think(words: str, blob: str | None = None) -> Fields:
    return {"type": "think", "think": words, "encrypted": blob}


def call(name: str = "t", arguments: object = '{"x": 1}') -> Fields:
    return {"type": "function", "id": name, "function": {"name": "f", "arguments": arguments}}


# as printed


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


# the wire file of kimi-cli


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


# the wire file of kimi-code


def code(kind: str, **fields: Any) -> Fields:
    return {"type": kind, "time": 1796065858446, **fields}


def loop(kind: str, **fields: Any) -> Fields:
    return code("context.append_loop_event", event={"type": kind, **fields})


def message(role: str, words: str = "", **fields: Any) -> Fields:
    content = [text(words)] if words else []
    return code("context.append_message", message={"role": role, "content": content, **fields})


def content(words: str) -> Fields:
    return loop("content.part", part=text(words))


PROMPT = [code("turn.prompt", origin={"kind": "user"}), message("user", "go")]
TRY, FAILED, DONE = (
    loop("step.begin"),
    loop("step.end", finishReason="error"),
    loop("step.end", finishReason="end_turn"),
)
TOOL = [
    loop("tool.call", toolCallId="t", name="f", args={"prompt": "sub"}),
    loop("tool.result", toolCallId="t", result={"output": "out"}),
]


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"reason": "completed"}, "completed"),
        ({"reason": "cancelled"}, "interrupted"),
        ({"reason": "failed", "error": {"code": "c", "message": "why"}}, "failed c: why"),
        ({"reason": "blocked"}, "failed blocked: blocked"),
    ],
)
def test_a_turn_of_kimi_code_ends_as_it_says(fields: Fields, outcome: str) -> None:
    assert ["turn", "user go", "said a", f"end {outcome}"] == told(
        KIMI, *PROMPT, TRY, content("a"), code("turn.ended", **fields)
    )


def test_a_cancelled_turn_without_an_end_ends_with_the_next_prompt() -> None:
    assert ["turn", "user go", "end interrupted", "turn", "user go"] == told(
        KIMI, *PROMPT, code("turn.cancel"), *PROMPT
    )


@pytest.mark.parametrize(
    ("tries", "said"),
    [
        (["ha", "ha", "half"], ["said half"]),
        (["one", "two"], ["said one", "said two"]),
        (["half", "ha"], ["said half", "said ha"]),
    ],
)
def test_what_a_failed_try_said_is_said_once(tries: list[str], said: list[str]) -> None:
    failed = [record for words in tries[:-1] for record in (TRY, content(words), FAILED)]

    assert said == told(KIMI, *PROMPT, *failed, TRY, content(tries[-1]), DONE)[2:]
    assert said == told(KIMI, *PROMPT, *failed, TRY, content(tries[-1]), FAILED, ended=True)[2:]


def test_a_call_after_a_failed_try_keeps_its_words() -> None:
    assert ["said one", "call t f {'prompt': 'sub'}", "ok t out"] == told(
        KIMI, *PROMPT, TRY, content("one"), FAILED, TRY, *TOOL
    )[2:]


@pytest.mark.parametrize(
    ("result", "words"),
    [({"output": "no", "isError": True}, "failed t no"), ({"output": [text("a")]}, "ok t a"), ("odd", "ok t odd")],
)
def test_a_result_of_kimi_code_says_whether_it_failed(result: object, words: str) -> None:
    assert [words] == told(KIMI, loop("tool.result", toolCallId="t", result=result))


TOKENS = {"inputOther": 3, "output": 4, "inputCacheRead": 5, "inputCacheCreation": 0}


@pytest.mark.parametrize("first", [True, False])
def test_tokens_that_stand_twice_are_told_once(first: bool) -> None:  # noqa: FBT001 - a parameter of the test
    record, end = code("usage.record", model="m", usage=TOKENS), loop("step.end", usage=TOKENS)
    step = [record, end] if first else [end, record]
    by = " by m" if first else ""

    assert [f"usage 3/4 read 5{by}"] * 2 == told(KIMI, TRY, *step, TRY, *step)


def test_words_that_the_harness_puts_in_the_users_name_are_the_systems() -> None:
    assert ["system today is Monday"] == told(KIMI, message("user", "today is Monday", origin={"kind": "injection"}))


def test_messages_of_a_context_that_was_copied_are_told() -> None:
    copied = [
        message("assistant", "a", toolCalls=[{"id": "t", "name": "f", "arguments": '{"x": 1}'}]),
        message("tool", "out", toolCallId="t", isError=True),
    ]

    assert ["said a", "call t f {'x': 1}", "failed t out"] == told(KIMI, *copied)


def test_a_compaction_keeps_the_messages_behind_those_it_replaced() -> None:
    before = [*PROMPT, TRY, content("a"), *TOOL, TRY, content("b"), DONE]
    log = told(KIMI, *before, code("context.apply_compaction", summary="story", compactedCount=3))

    # turn 0, user 1 | said 2, call 3 | result 4 | said 5
    assert "compaction 0-5 story" == log[-1]
    assert "compaction 0-6 story" == told(KIMI, *before, code("context.apply_compaction", contextSummary="story"))[-1]


def test_an_undo_takes_back_prompts_and_what_followed() -> None:
    twice = [*PROMPT, TRY, content("a"), DONE, *PROMPT, TRY, content("b"), DONE]

    # turn 0, user 1, said 2, end 3, turn 4, user 5, said 6
    assert "undo 5-7" == told(KIMI, *twice, code("context.undo", count=1))[-1]
    assert "undo 1-7" == told(KIMI, *twice, code("context.undo", count=2))[-1]
    assert "undo 0-7" == told(KIMI, *twice, code("context.undo", count=9))[-1]
    assert "clear 0-7" == told(KIMI, *twice, code("context.clear"))[-1]


def test_a_sub_agents_file_is_inside_the_call_that_asked_for_it() -> None:
    normalizer: Any = find_dialect(KIMI).normalizer()
    for record in [*PROMPT, TRY, TOOL[0]]:
        normalizer.feed(record)
    agent, other = normalizer.agent("agent-0"), normalizer.agent("agent-1")
    normalizer.feed(code("subagent.spawned", subagentId="agent-1", parentToolCallId="u"))
    by_prompt = [
        draft
        for record in (PROMPT[0], message("user", "sub"), content("a"), DONE)
        for draft in agent.feed(record).drafts
    ]
    by_name = [draft for record in (PROMPT[1], code("turn.ended")) for draft in other.feed(record).drafts]

    assert ["[t] user sub", "[t] said a"] == [tell(draft) for draft in by_prompt]
    assert ["[u] user go"] == [tell(draft) for draft in by_name]


@pytest.mark.parametrize("origin", [{"agentId": "agent-0"}, {"origin": {"kind": "system_trigger", "name": "subagent"}}])
def test_a_sub_agents_file_alone_begins_no_turn(origin: Fields) -> None:
    log = told(KIMI, code("turn.prompt", **origin), {**message("user", "sub"), **origin})

    assert 1 == len(log)
    assert log[0].endswith("] user sub")


def test_a_refused_record_leaves_nothing_behind() -> None:
    normalizer: Any = find_dialect(KIMI).normalizer()
    with pytest.raises(DialectError, match=r"tool\.result without toolCallId"):
        normalizer.feed({**loop("tool.result"), "agentId": "agent-0"})

    assert ["turn"] == [tell(draft) for draft in normalizer.feed(PROMPT[0]).drafts]
