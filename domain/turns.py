"""Turn ids and the numbers in them (I8)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import UNSET

from incarnate.domain.events import MAX_INTEGER, Opaque, SessionEvent, TurnEnd, TurnStart

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["next_turn_after", "turn_id", "turn_number"]

_TURN_ID = re.compile(r"turn-([0-9]+)", re.ASCII)


def turn_id(number: int) -> str:
    """`turn-7` for 7."""
    return f"turn-{number}"


def turn_number(text: str) -> int | None:
    """7 for `turn-7` and `turn-007`; None for what is no turn id of ours."""
    found = _TURN_ID.fullmatch(text)
    # No counter reaches 17 digits, and int() of a hostile label may cost seconds.
    if found is None or len(found[1].lstrip("0")) > len(str(MAX_INTEGER)):
        return None
    number = int(found[1])
    return number if number <= MAX_INTEGER else None


def next_turn_after(events: Iterable[SessionEvent | Opaque], next_turn: int) -> int:
    """`next_turn`, raised above every turn number that `events` hold.

    A foreign label counts only where it reads `turn-<digits>`.
    """
    for event in events:
        # `isinstance` takes three times as long, at every event of every write.
        if type(event) is TurnStart or type(event) is TurnEnd:
            number = event.turn if event.label is UNSET else turn_number(event.label)
            if number is not None and number >= next_turn:
                next_turn = number + 1
    return next_turn
