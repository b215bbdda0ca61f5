"""The transcript of a log, as the rows of a transcript file; and what a transcript leaves out of it."""

from __future__ import annotations

from incarnate.domain.events import AppendedEvent
from incarnate.domain.projections.base import Change, ListProjection, Reducer
from incarnate.domain.transcripts.rows import encode_row
from incarnate.domain.transcripts.translation import left_out, to_row

__all__ = ["LeftOut", "TranscriptRows"]


class TranscriptRows(ListProjection[bytes]):
    """The encoded rows of a log, without line ends: what its transcript file holds, line by line."""

    def _reduce(self, appended: AppendedEvent) -> Change:
        row = to_row(appended.event)
        return self._added() if row is None else self._added(encode_row(row))


class LeftOut(Reducer):
    """How often a transcript has no place for an event or a part of one, by kind (see `translation.left_out`)."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}
        self._kinds: list[tuple[int, str]] = []  # the offset and kind of each, in order

    @property
    def value(self) -> dict[str, int]:
        """The counts, by kind: a snapshot that later events do not touch."""
        return dict(self._counts)

    def apply(self, appended: AppendedEvent) -> None:
        """Take the next event in.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._expect(appended.offset)
        kind = left_out(appended.event)
        if kind is not None:
            self._kinds.append((appended.offset, kind))
            self._counts[kind] = self._counts.get(kind, 0) + 1
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        """Forget the events from `offset` on.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        while self._kinds and self._kinds[-1][0] >= offset:
            _, kind = self._kinds.pop()
            self._counts[kind] -= 1
            if not self._counts[kind]:
                del self._counts[kind]
        self.next_offset = offset
        self.generation += 1
