"""Turn numbers that stand in transcript rows (I8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.transcripts.rows import Row, TurnEndRow, TurnStartRow
from incarnate.domain.turns import turn_number

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["next_turn_after_rows"]


def next_turn_after_rows(rows: Iterable[Row], next_turn: int) -> int:
    """`next_turn`, raised above every turn number in the starts and ends among `rows`.

    It is `nextTurn` of `fixtures/vectors/transcript_logs.jsonl`.
    """
    for row in rows:
        if isinstance(row, TurnStartRow | TurnEndRow):
            number = turn_number(row.id)
            if number is not None and number >= next_turn:
                next_turn = number + 1
    return next_turn
