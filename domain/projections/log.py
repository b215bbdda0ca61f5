"""The log itself as a view: for those who follow the events and want to hear of rewinds."""

from __future__ import annotations

from incarnate.domain.events import AppendedEvent
from incarnate.domain.projections.base import Change, ListProjection

__all__ = ["LogEvents"]


class LogEvents(ListProjection[AppendedEvent]):
    """Every event as the log holds it; the index of an item is its offset."""

    def _reduce(self, appended: AppendedEvent) -> Change:
        return self._added(appended)
