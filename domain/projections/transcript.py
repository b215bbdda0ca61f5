"""The transcript of a log, as the rows of a transcript file."""

from __future__ import annotations

from incarnate.domain.events import AppendedEvent
from incarnate.domain.projections.base import Change, ListProjection
from incarnate.domain.transcripts.rows import encode_row
from incarnate.domain.transcripts.translation import left_out, to_row

__all__ = ["TranscriptRows"]


class TranscriptRows(ListProjection[bytes]):
    """The encoded rows of a log, without line ends: what its transcript file holds, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}
        self._kinds: dict[int, str] = {}  # of what was left out, by offset

    @property
    def diagnostics(self) -> dict[str, int]:
        """How often the transcript has no place for an event or a part of one, by kind (`translation.left_out`)."""
        return dict(self._counts)

    def _reduce(self, appended: AppendedEvent) -> Change:
        event = appended.event
        row = to_row(event)
        change = self._added() if row is None else self._added(encode_row(row))
        kind = left_out(event)
        if kind is not None:
            self._kinds[appended.offset] = kind
            self._counts[kind] = self._counts.get(kind, 0) + 1
        return change

    def _forget(self, offset: int) -> None:
        kind = self._kinds.pop(offset, None)
        if kind is not None:
            self._counts[kind] -= 1
            if not self._counts[kind]:
                del self._counts[kind]
