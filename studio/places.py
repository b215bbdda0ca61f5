"""Where a log stood when a view of it was given: what a page holds, and what it goes on from after a break."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["MARK_DIGITS", "START_OVER", "Part", "Place", "Position"]

START_OVER = "~"
"""The id of an incomplete answer that nothing can go on from: who comes back with it gets the whole view."""

MARK_DIGITS = 8
"""Of an event in a sign, in which there are two."""

_FORM = re.compile(r"(\d{1,16})\.(\d{1,16})(?:\.([0-9a-f]{1,16}))?", re.ASCII)


class Place(NamedTuple):
    """A view is a function of the log at this place.

    `sign` tells one log from another that came under the same key, such as in a store that was made anew or put back
    from a backup: a mark of its first event, and one of the last event before `next_offset`. It is empty for an empty
    log, and where a client left it out.
    """

    generation: int
    next_offset: int
    sign: str = ""

    @property
    def first(self) -> str:
        """The mark of the log's first event."""
        return self.sign[:MARK_DIGITS]

    def __str__(self) -> str:
        return f"{self.generation}.{self.next_offset}" + (f".{self.sign}" if self.sign else "")

    @classmethod
    def parse(cls, text: str | None) -> Place | None:
        """The place that an id names; None for any other text, which leads to the whole view."""
        found = None if text is None else _FORM.fullmatch(text)
        return None if found is None else cls(int(found[1]), int(found[2]), found[3] or "")


class Part(NamedTuple):
    """Amid the answer that leads to `place`: the first `given` items are there, and no place tells what they are."""

    place: Place
    given: int

    def __str__(self) -> str:
        return START_OVER


Position = Place | Part | None
"""What a follower holds; None: nothing yet."""
