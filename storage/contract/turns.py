"""I8: turn numbers."""

from __future__ import annotations

import pytest

from incarnate.domain.errors import OutOfRangeError
from incarnate.domain.events import MAX_INTEGER, TurnEnd, TurnStart
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import Log, note

__all__ = ["Turns"]


class Turns(Contract):
    """A turn number is handed out once."""

    def test_i8_turn_numbers_count_up_from_0(self, log: Log) -> None:
        assert [0, 1, 2] == [log.next_turn() for _ in range(3)]

    @pytest.mark.parametrize(
        ("event", "following"),
        [
            (TurnStart(id="t", parent_id=None, turn=6), 7),
            (TurnEnd(id="t", parent_id=None, turn=6), 7),
            (TurnStart(id="t", parent_id=None, turn=0, label="turn-41"), 42),
            (TurnEnd(id="t", parent_id=None, turn=9, label="turn-3"), 4),
            (TurnStart(id="t", parent_id=None, turn=9, label="turn 3"), 1),
            (TurnStart(id="t", parent_id=None, turn=0), 1),
        ],
    )
    def test_i8_the_next_turn_is_above_every_turn_seen(
        self, log: Log, event: TurnStart | TurnEnd, following: int
    ) -> None:
        log.next_turn()
        log.append(0, [event])

        assert following == log.next_turn()

    def test_i8_a_turn_number_is_never_used_again_after_a_rewind(self, log: Log) -> None:
        log.append(0, [note("a"), TurnStart(id="t", parent_id=None, turn=8)])
        log.append(0, "x")

        assert 9 == log.next_turn()

    def test_i8_there_is_no_turn_above_the_largest(self, log: Log) -> None:
        log.append(0, [TurnStart(id="t", parent_id=None, turn=MAX_INTEGER - 1)])

        assert log.next_turn() == MAX_INTEGER
        with pytest.raises(OutOfRangeError, match="turn must be"):
            log.next_turn()
