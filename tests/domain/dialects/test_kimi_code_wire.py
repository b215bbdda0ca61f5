"""The wire file of kimi-code, and what no recording of it shows: undo, compactions, tries that differ."""

from typing import Any

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError
from tests.support.told_events import tell, told

Fields = dict[str, Any]
KIMI = "kimi"


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


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
