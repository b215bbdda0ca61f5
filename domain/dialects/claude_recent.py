"""What a normalizer remembers of a session without end: the newest of it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["MOST_RECORDS", "Recent"]

V = TypeVar("V")

MOST_RECORDS = 16_384
"""Records that Claude Code may name or repeat: those that its model still sees, which are what a compaction keeps and a
resumed session's file begins with. The longest context has a million tokens: half of this many have 122 each."""


class Recent(dict[str, V]):
    """Values by name: the newest `most`, or as few as half of them. A name that is kept anew keeps its age."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, name: str, value: V) -> None:
        """Remember it, and forget the older half of all once they are too many."""
        self[name] = value
        if len(self) > self._most:
            # Half of them at once: the first key of a dict is looked for past all that were taken out before it.
            newest = [*self.items()][len(self) - self._most // 2 :]
            self.clear()
            self.update(newest)
