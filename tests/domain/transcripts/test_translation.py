import itertools

from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.transcripts.rows import (
    AssistantMessageRow,
    Row,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserMessageRow,
)
from incarnate.domain.transcripts.translation import to_event, to_events, to_row, to_rows
from incarnate.domain.turns import next_turn_after


def events_of(*rows: Row) -> list[SessionEvent]:
    ids = itertools.count()
    return to_events(rows, lambda: f"n-{next(ids)}", "before")


def row_of(event: SessionEvent) -> Row | None:
    return to_row(event)


def test_each_event_follows_the_one_before_it() -> None:
    events = events_of(UserMessageRow("a"), AssistantMessageRow("b"), TurnStartRow("turn-0"))

    assert [("n-0", "before"), ("n-1", "n-0"), ("n-2", "n-1")] == [(event.id, event.parent_id) for event in events]


def test_the_parent_id_of_a_row_is_the_call_inside_which_it_happened() -> None:
    event = to_event(ToolCallRow("c1:c2", "read", {}, "c1"), "e", None)

    assert (
        ToolCall(id="e", parent_id=None, parent_call_id="c1", call_id="c1:c2", name="read", args={}),
        ToolCallRow("c1:c2", "read", {}, "c1"),
    ) == (event, row_of(event))


def test_a_result_failed_where_it_has_an_error_even_an_empty_one() -> None:
    results = [to_event(ToolResultRow("c", 1, error), "e", None) for error in (None, "", "boom")]

    assert [True, False, False] == [isinstance(event, ToolResult) and event.ok for event in results]


def test_a_failure_without_words_stays_a_failure() -> None:
    event = ToolResult(id="e", parent_id=None, call_id="c", ok=False, result="no such file")

    assert ToolResultRow("c", "no such file", "") == row_of(event)


def test_a_foreign_turn_id_is_kept_as_the_label() -> None:
    ids = ["turn-3", "turn-007", "turn-99999999999999999999", "t1"]
    starts = [to_event(TurnStartRow(id), "e", None) for id in ids]
    expected = [
        TurnStart(id="e", parent_id=None, turn=3),
        TurnStart(id="e", parent_id=None, turn=7, label="turn-007"),
        TurnStart(id="e", parent_id=None, turn=0, label="turn-99999999999999999999"),
        TurnStart(id="e", parent_id=None, turn=0, label="t1"),
    ]

    assert expected == starts


def test_a_turn_number_counts_only_where_its_label_reads_so() -> None:
    events = events_of(TurnStartRow("turn-007"), TurnEndRow("t9"), TurnEndRow("turn-99999999999999999999"))

    assert 8 == next_turn_after(events, 0)


def test_an_end_without_outcome_was_completed() -> None:
    assert TurnEndRow("turn-2", "completed") == row_of(TurnEnd(id="e", parent_id=None, turn=2))


def test_what_has_no_row_is_counted_by_its_kind() -> None:
    events: list[SessionEvent | Opaque] = [
        SystemMessage(id="e", parent_id=None, text="rules"),
        UserMessage(id="e", parent_id=None, text="hi"),
        Usage(id="e", parent_id=None, input_tokens=1, output_tokens=2),
        Usage(id="e", parent_id=None, input_tokens=1, output_tokens=2),
        Compaction(id="e", parent_id=None, reason="full", replaces_from=0, replaces_to=1),
        Reasoning(id="e", parent_id=None, provider_continuation="blob"),
        Opaque("poll", "e", None, b'{"type":"poll","id":"e","parentId":null}'),
    ]
    rows, left_out = to_rows(events)

    assert [UserMessageRow("hi")] == rows
    assert {"system": 1, "usage": 2, "compaction": 1, "reasoning": 1, "poll": 1} == left_out


def test_the_words_of_a_sub_agent_never_pass_for_the_sessions_own() -> None:
    said = AssistantMessage(id="e", parent_id=None, parent_call_id="c1", text="done")

    assert ([], {"assistant in a call": 1}) == to_rows([said])


def test_what_a_row_drops_of_its_event_is_counted() -> None:
    rows, left_out = to_rows(
        [
            Reasoning(id="e", parent_id=None, text="hm", provider_continuation="blob"),
            ToolResult(id="e", parent_id=None, call_id="c", ok=True, result=1, error="a warning"),
        ]
    )

    assert 2 == len(rows)
    assert {"reasoning.providerContinuation": 1, "tool-result.error": 1} == left_out
