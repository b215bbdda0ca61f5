"""What a log and the harness's own files know of a turn, made one."""

from msgspec import UNSET

from incarnate.domain.dialects.base import UNNUMBERED
from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.supervision.mind import Mind
from incarnate.supervision.reconcile import OUTCOME_UNKNOWN, Levelling, last_turn, level


def start(turn: int = 0, name: str = "start") -> SessionEvent:
    return TurnStart(id=name, parent_id=None, turn=turn)


def asked(text: str = "do it") -> SessionEvent:
    return UserMessage(id="user", parent_id=None, text=text)


def said(text: str) -> SessionEvent:
    return AssistantMessage(id=f"said-{text}", parent_id=None, text=text)


def call(call_id: str, inside: str | None = None) -> SessionEvent:
    return ToolCall(id=f"call:{call_id}", parent_id=None, call_id=call_id, name="bash", parent_call_id=inside or UNSET)


def result(call_id: str) -> SessionEvent:
    return ToolResult(id=f"result:{call_id}", parent_id=None, call_id=call_id, ok=True, result="out")


def ended(outcome: str = "completed") -> SessionEvent:
    return TurnEnd(id="end", parent_id=None, turn=UNNUMBERED, outcome=outcome)  # type: ignore[arg-type]


def usage() -> SessionEvent:
    return Usage(id="usage", parent_id=None, input_tokens=1, output_tokens=1)


def levelled(log: list[SessionEvent], disk: list[SessionEvent]) -> Levelling:
    mind = Mind()
    mind.take(AppendedEvent(at, 1, 0, event) for at, event in enumerate(log))
    return level(mind, last_turn(log), disk, 2)


def told(levelling: Levelling) -> list[str]:
    return [event.id for event in levelling.drafts]


def test_an_open_call_is_closed_by_one_flagged_result_and_the_turn_as_interrupted() -> None:
    levelling = levelled([start(), asked(), call("a")], [])
    closed, end = levelling.drafts

    assert ["guessed:call:a", "guessed:start"] == told(levelling)
    assert isinstance(closed, ToolResult)
    assert ("a", False, OUTCOME_UNKNOWN) == (closed.call_id, closed.ok, closed.error)
    assert isinstance(end, TurnEnd)
    assert (0, "interrupted") == (end.turn, end.outcome)


def test_a_result_that_the_files_have_is_no_guess() -> None:
    levelling = levelled(
        [start(), asked(), call("a"), call("b")], [start(), asked(), call("a"), call("b"), result("a")]
    )

    assert ["disk2:4:result:a", "guessed:call:b", "guessed:start"] == told(levelling)


def test_a_result_that_was_printed_and_not_saved_is_kept() -> None:
    levelling = levelled([start(), asked(), call("a"), result("a")], [start(), asked(), call("a")])

    assert ["guessed:start"] == told(levelling)


def test_calls_with_other_names_in_the_files_are_paired_by_their_order() -> None:
    log = [start(), asked(), call("item_0"), call("item_1")]
    levelling = levelled(log, [start(), asked(), call("x"), call("y"), result("y")])
    found = levelling.found[0]

    assert isinstance(found, ToolResult)
    assert "item_1" == found.call_id
    assert ["guessed:call:item_0", "guessed:start"] == [event.id for event in levelling.guessed]


def test_what_was_saved_behind_the_last_thing_printed_is_appended() -> None:
    disk = [start(), asked(), said("a first long answer"), call("a"), result("a"), said("and more"), usage(), ended()]
    levelling = levelled([start(), asked(), said("a first long answer")], disk)

    assert [ToolCall, ToolResult, AssistantMessage, Usage, TurnEnd] == [type(event) for event in levelling.found]
    assert () == levelling.guessed


def test_of_a_text_that_was_cut_the_rest_is_appended() -> None:
    levelling = levelled([start(), asked(), said("half of it")], [start(), asked(), said("half of it, and the rest")])
    found = levelling.found[0]

    assert isinstance(found, AssistantMessage)
    assert ", and the rest" == found.text


def test_a_turn_of_which_nothing_was_printed_is_taken_from_the_files() -> None:
    log = [start(), asked("first"), ended()]
    disk = [start(UNNUMBERED), asked('"second"'), call("a")]
    levelling = levelled(log, disk)

    assert [TurnStart, UserMessage, ToolCall] == [type(event) for event in levelling.found]
    assert [ToolResult, TurnEnd] == [type(event) for event in levelling.guessed]


def test_an_open_turn_is_closed_before_a_later_one_of_the_files() -> None:
    levelling = levelled([start(), asked("first"), call("a")], [start(UNNUMBERED), asked("second"), ended()])

    assert ["guessed:call:a", "guessed:start"] == [event.id for event in levelling.before]
    assert [TurnStart, UserMessage, TurnEnd] == [type(event) for event in levelling.found]
    assert () == levelling.guessed


def test_files_that_lost_the_last_turn_add_nothing() -> None:
    log = [start(), asked("first"), ended(), start(1, "again"), asked("second")]

    assert ["guessed:again"] == told(levelled(log, [start(), asked("first"), said("long ago said")]))


def test_a_turn_that_was_decided_about_is_left_alone() -> None:
    log = [start(), asked(), call("a")]
    once = levelled(log, [])

    assert [] == told(levelled([*log, *once.drafts], [start(), asked(), call("a"), result("a")]))


def test_a_call_of_a_sub_agent_is_closed_inside_its_agent() -> None:
    closed = levelled([start(), call("a"), call("b", inside="a")], []).guessed

    assert [UNSET, "a"] == [event.parent_call_id for event in closed[:2]]
