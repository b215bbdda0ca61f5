"""Turn ids and the numbers that count (I8)."""

import pytest

from incarnate import SessionEvent, TurnEnd, TurnStart, UserMessage
from incarnate.domain.turns import next_turn_after, turn_id, turn_number


@pytest.mark.parametrize(
    ("text", "number"), [("turn-0", 0), ("turn-7", 7), ("turn-007", 7), ("turn-9007199254740991", 2**53 - 1)]
)
def test_a_turn_id_holds_its_number(text: str, number: int) -> None:
    assert number == turn_number(text)


@pytest.mark.parametrize(
    "text",
    ["", "turn-", "turn--1", "turn-1 ", "Turn-1", "turn-\u0661", "turn-9007199254740992", "turn-" + "9" * 10_000],
)
def test_foreign_text_holds_none(text: str) -> None:
    assert turn_number(text) is None


def test_turn_id_undoes_turn_number() -> None:
    assert turn_number(turn_id(41)) == 41


def test_i8_the_next_turn_is_above_every_number_seen() -> None:
    events: list[SessionEvent] = [TurnStart(id="a", parent_id=None, turn=3), TurnEnd(id="b", parent_id="a", turn=5)]

    assert next_turn_after(events, 0) == 6
    assert next_turn_after(events, 9) == 9


def test_i8_a_foreign_label_counts_only_where_it_reads_as_a_turn_id() -> None:
    foreign = TurnStart(id="a", parent_id=None, turn=0, label="c0ffee")
    ours = TurnEnd(id="b", parent_id=None, turn=4, label="turn-4")

    assert next_turn_after([foreign, UserMessage(id="c", parent_id=None, text="")], 0) == 0
    assert next_turn_after([ours], 0) == 5
