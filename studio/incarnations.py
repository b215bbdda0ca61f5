"""Who wrote which events of a log: the history of its fence, as far as its events tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.diagnosis import Stretch
from incarnate.domain.projections.base import Reducer

if TYPE_CHECKING:
    from incarnate.domain.events import AppendedEvent

__all__ = ["Incarnations"]


class Incarnations(Reducer):
    """The stretches of a log that one incarnation wrote, in the order of the log."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: list[tuple[int, int]] = []  # incarnation, and the offset of its first event

    @property
    def value(self) -> tuple[Stretch, ...]:
        """The stretches as the log stands."""
        starts = [*[start for _, start in self._begun], self.next_offset]
        return tuple([Stretch(who, start, starts[at + 1]) for at, (who, start) in enumerate(self._begun)])

    def apply(self, appended: AppendedEvent) -> None:
        """Take the next event in.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._expect(appended.offset)
        if not self._begun or self._begun[-1][0] != appended.incarnation:
            self._begun.append((appended.incarnation, appended.offset))
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        """Forget the events from `offset` on.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        while self._begun and self._begun[-1][1] >= offset:
            self._begun.pop()
        self.next_offset = offset
        self.generation += 1
