"""What the model may see: valid after any crash, the fold of a fresh replay after any rewind (I7)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate import AppendedEvent, AssistantMessage, Compaction, Reasoning, ToolCall, ToolResult, UserMessage
from incarnate.domain.projections.base import Change, apply_change
from incarnate.domain.projections.model_history import Balancing, ModelHistory
from incarnate.domain.projections.model_messages import UNANSWERED, Message
from incarnate.domain.projections.model_valid import Diagnostics
from tests.support.model_logs import LINK, Event, events, expected_messages, incarnations, logs
from tests.support.provider_rules import history_violations

BALANCINGS: list[Balancing] = ["valid", "reference"]


# An event, or how many to undo.
step = st.one_of(*[st.tuples(incarnations, events)] * 5, st.integers(0, 8))
steps = st.integers(0, 60).flatmap(lambda size: st.lists(step, min_size=size, max_size=size))


def history_of(*log: Event, balancing: Balancing = "valid") -> ModelHistory:
    history = ModelHistory(balancing)
    for event in log:
        append(history, event)
    return history


def append(history: ModelHistory, event: Event, incarnation: int = 1) -> Change:
    return history.apply(AppendedEvent(history.next_offset, incarnation, 0, event))


def replay(log: list[AppendedEvent], balancing: Balancing) -> ModelHistory:
    history = ModelHistory(balancing)
    for event in log:
        history.apply(event)
    return history


def user(text: str) -> UserMessage:
    return UserMessage(**LINK, text=text)


def said(text: str) -> AssistantMessage:
    return AssistantMessage(**LINK, text=text)


def call(call_id: str) -> ToolCall:
    return ToolCall(**LINK, call_id=call_id, name="run", args={})


def result(call_id: str, value: object) -> ToolResult:
    return ToolResult(**LINK, call_id=call_id, ok=True, result=value)


def compaction(first: int, end: int, summary: str = "so far") -> Compaction:
    return Compaction(**LINK, reason="auto", replaces_from=first, replaces_to=end, summary=summary)


def short(history: ModelHistory) -> list[str]:
    """Each message on a line: `user: hi`, `assistant: [a b]`, `a: its answer`."""
    return [
        f"{message.tool_call_id or message.role}: {message.text or [use.id for use in message.calls]}"
        for message in history.value
    ]


@pytest.mark.parametrize("balancing", BALANCINGS)
@given(steps=steps)
def test_i7_after_any_appends_and_rewinds_a_history_and_its_copy_are_those_of_a_fresh_replay(
    balancing: Balancing, steps: list[Any]
) -> None:
    live, copy, kept = ModelHistory(balancing), list[Message](), list[AppendedEvent]()
    for step in steps:
        if isinstance(step, int):
            cut = max(0, len(kept) - step)
            del kept[cut:]
            change = live.rewind(cut)
        else:
            kept.append(AppendedEvent(len(kept), step[0], 0, step[1]))
            change = live.apply(kept[-1])
        apply_change(copy, change)
        again = replay(kept, balancing)

        assert list(again.value) == list(live.value) == copy
        assert again.diagnostics == live.diagnostics


@given(logs)
def test_a_valid_history_is_what_the_whole_log_says(log: list[AppendedEvent]) -> None:
    assert expected_messages(log) == [message.to_json() for message in replay(log, "valid").value]


@given(logs)
def test_a_valid_history_breaks_no_rule_of_a_provider(log: list[AppendedEvent]) -> None:
    assert [] == history_violations([message.to_json() for message in replay(log, "valid").value])


def test_a_late_result_takes_the_place_of_its_placeholder() -> None:
    history = history_of(call("a"), user("hurry"))

    change = append(history, result("a", "done"))

    assert (2 + 1, (), [1]) == (change.keep, change.items, [index for index, _ in change.replaced])
    assert ["assistant: ['a']", 'a: "done"', "user: hurry"] == short(history)


def test_a_placeholder_says_so_and_claims_nothing() -> None:
    answer = history_of(call("a")).value[1]

    assert (True, UNANSWERED) == (answer.is_placeholder, answer.text)


def test_parallel_calls_make_one_message_and_their_results_follow_in_the_order_of_the_calls() -> None:
    history = history_of(call("a"), call("b"), result("b", 2), result("a", 1))

    assert ["assistant: ['a', 'b']", "a: 1", "b: 2"] == short(history)


def test_calls_of_two_incarnations_are_two_messages() -> None:
    history = history_of(call("a"))
    append(history, call("b"), incarnation=2)

    assert ["assistant: ['a']", f"a: {UNANSWERED}", "assistant: ['b']", f"b: {UNANSWERED}"] == short(history)


def test_a_result_answers_the_latest_call_of_its_id() -> None:
    history = history_of(call("Bash_0"), user("again"), call("Bash_0"), result("Bash_0", 2))

    assert [f"Bash_0: {UNANSWERED}", "Bash_0: 2"] == [line for line in short(history) if line.startswith("Bash")]


def test_orphans_doubles_and_blanks_are_left_out_and_counted() -> None:
    history = history_of(result("a", 1), call("a"), result("a", 2), result("a", 3), user(" "))

    assert ["assistant: ['a']", "a: 2"] == short(history)
    assert Diagnostics(orphans=1, doubles=1, blanks=1) == history.diagnostics


def test_a_compaction_stands_for_its_range_by_its_summary() -> None:
    history = history_of(user("0"), user("1"), said("2"), user("3"), compaction(1, 3))

    assert ["user: 0", "user: so far", "user: 3"] == short(history)


def test_a_call_in_the_range_of_a_compaction_takes_its_answer_along_even_if_that_comes_later() -> None:
    history = history_of(user("0"), call("a"), call("b"), call("c"), result("a", 1), compaction(2, 3), result("b", 2))

    assert ["user: 0", "assistant: ['a']", "a: 1", "user: so far", "assistant: ['c']", f"c: {UNANSWERED}"] == short(
        history
    )
    assert Diagnostics() == history.diagnostics


def test_an_answer_in_the_range_of_a_compaction_stays_with_its_call_before_it() -> None:
    history = history_of(call("a"), user("1"), result("a", 2), compaction(1, 3))

    assert ["assistant: ['a']", "a: 2", "user: so far"] == short(history)


def test_a_late_result_finds_its_call_where_a_compaction_moved_it() -> None:
    history = history_of(user("0"), user("1"), call("a"), compaction(0, 2), result("a", 4))

    assert ["user: so far", "assistant: ['a']", "a: 4"] == short(history)


def test_a_later_compaction_replaces_the_summary_of_what_it_covers() -> None:
    history = history_of(user("0"), user("1"), compaction(0, 1, "one"), user("3"), compaction(0, 4, "two"))

    assert ["user: two"] == short(history)


def test_a_rewind_across_a_compaction_restores_what_it_replaced() -> None:
    history = history_of(user("0"), call("a"), compaction(0, 2), said("3"))

    change = history.rewind(2)

    assert ["user: 0", "assistant: ['a']", f"a: {UNANSWERED}"] == short(history)
    assert (0, 3) == (change.keep, len(change.items))


@pytest.mark.parametrize("balancing", BALANCINGS)
def test_a_call_whose_answer_was_rewound_waits_again(balancing: Balancing) -> None:
    history = history_of(call("a"), call("b"), result("a", 1), balancing=balancing)
    history.rewind(2)
    append(history, result("a", 2))
    append(history, result("b", 3))

    assert ["assistant: ['a', 'b']", "a: 2", "b: 3"] == short(history)


def test_a_thought_does_not_stand_before_the_calls_that_a_compaction_left_of_its_message() -> None:
    thought = Reasoning(**LINK, text="hm", provider_continuation="sig")
    history = history_of(thought, call("a"), call("b"), call("c"))
    before = [message.thinking for message in history.value[:1]]

    append(history, compaction(1, 2))

    assert [(thought,)] == before
    assert [()] == [message.thinking for message in history.value if message.calls]


def test_a_signed_thought_goes_along_with_what_it_led_to_and_not_into_the_json() -> None:
    thought = Reasoning(**LINK, text="hm", provider_continuation="sig")
    history = history_of(thought, said("so"), call("a"), thought, user("stop"), said("ok"))

    assert [(thought,), (), (), (), ()] == [message.thinking for message in history.value]
    assert {"role", "content", "tool_call_id"} == history.value[0].to_json().keys()


def test_a_rewind_of_ten_in_a_long_history_changes_ten() -> None:
    history = history_of(*[user(str(number)) for number in range(5000)])

    assert Change(1, 4990, ()) == history.rewind(4990)


@pytest.mark.parametrize("balancing", BALANCINGS)
@pytest.mark.parametrize("cut", [0, 1023, 1024, 1025, 2999])
def test_i7_a_long_history_is_rewound_to_any_offset(balancing: Balancing, cut: int) -> None:
    log = [event for number in range(1000) for event in (call(str(number)), user("so"), result(str(number), number))]
    history = history_of(*log, balancing=balancing)

    history.rewind(cut)
    rewound = history.value
    append(history, result(str(cut // 3), "again"))

    assert rewound == history_of(*log[:cut], balancing=balancing).value
    assert history.value == history_of(*log[:cut], result(str(cut // 3), "again"), balancing=balancing).value


def test_the_many_calls_of_one_message_are_not_copied_at_each() -> None:
    history = history_of(*[call(str(number)) for number in range(2000)])
    before = history.value

    append(history, call("new"))
    unchanged = sum(old is new for old, new in zip(before, history.value, strict=False))

    assert (2000, 2001) == (unchanged, len(history.value[0].calls))


def test_a_history_is_balanced_one_way_or_the_other() -> None:
    with pytest.raises(ValueError, match="not 'both'"):
        ModelHistory("both")  # type: ignore[arg-type]

    assert ModelHistory("valid").name != ModelHistory("reference").name == ModelHistory("reference").fresh().name
