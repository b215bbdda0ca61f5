"""The tree of pi's session file: which entries a branch or a compaction took out of the model's view."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.base import UNPLACED, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.events import Compaction, SessionEvent

__all__ = ["Entries"]


class Entries:
    """Where the drafts of each entry lie. The stream names no entries: there nothing branches."""

    def __init__(self) -> None:
        self._count = 0
        self._system_end = 0  # how many drafts there are up to the system prompt, which a compaction leaves alone
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._leaf: str | None = None

    def drafted(self, record: dict[str, Any], drafts: int) -> None:
        """The record became so many drafts."""
        entry = optional_text(record, "id") if "parentId" in record else None
        if entry is not None:
            self._begins[entry] = self._count
            self._ends[entry] = self._count + drafts
            self._leaf = entry
        self._count += drafts

    def system(self, drafts: int) -> None:
        """The system prompt is the last of the next `drafts`."""
        self._system_end = self._count + drafts

    def taken_back(self, record: dict[str, Any], summary: str | None = None) -> list[SessionEvent]:
        """What the record leaves behind, where it does not follow the entry before it: the user went back."""
        parent = record.get("parentId")
        if not isinstance(parent, str) or parent == self._leaf or parent not in self._ends:
            return []
        abandoned = self._count - self._ends[parent]
        if abandoned <= 0:
            return []
        return [_compaction("branch", kept(abandoned), UNPLACED, summary, Stamp())]

    def compaction(self, result: dict[str, Any], reason: object, early: int, stamp: Stamp) -> SessionEvent:
        """The compaction that comes after the next `early` drafts; entries from `firstKeptEntryId` on stay."""
        here = self._count + early
        first = self._begins.get(str(result.get("firstKeptEntryId")), here)
        begin = kept(here - self._system_end) if self._system_end else UNPLACED
        why = reason if isinstance(reason, str) and reason else "auto"
        return _compaction(why, begin, kept(here - first), str(result["summary"]), stamp)


def _compaction(reason: str, begin: int, end: int, summary: str | None, stamp: Stamp) -> SessionEvent:
    return Compaction(
        **stamp.fields(),
        reason=reason,
        replaces_from=begin,
        replaces_to=end,
        summary=UNSET if summary is None else summary,
    )
