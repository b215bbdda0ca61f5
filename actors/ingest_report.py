"""What one run of an ingest did."""

from __future__ import annotations

import msgspec

__all__ = ["IngestReport", "RefusedLine"]

_MOST_LISTED = 1000  # a report stays small, whatever the file
_MOST_KINDS = 1000
_LONGEST_TEXT = 300


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that gave no events, and why."""

    line: int
    reason: str


class IngestReport(msgspec.Struct, rename="camel", kw_only=True):
    """What one run of an ingest did.

    Attributes:
        key: the activation.
        harness: whose records they were.
        session_id: the harness's own id of the session, None where no record told it.
        incarnation: the one that this run claimed, None where nothing was claimed because no record mapped.
        next_offset: the head of the log at the end.
        lines: lines read; blank ones are in no other count.
        mapped: records that became events, or were taken in and show in a later one.
        appended: events that this run added.
        skipped: events that the log already held.
        beyond: events that the log holds after the last one of the file.
        held: events that the last records began and a later one would complete; see `ended`.
        checkpoints: checkpoints that this run made.
        ignored: records, or parts of them, that map to nothing, by kind.
        mended: damaged places that were mended, such as a lone surrogate.
        refused: how many lines gave no events because they were damaged.
        refused_lines: the first thousand of them.
        torn: the last line, where it has no line feed and holds no whole record.
    """

    key: str
    harness: str
    session_id: str | None = None
    incarnation: int | None = None
    next_offset: int = 0
    lines: int = 0
    mapped: int = 0
    appended: int = 0
    skipped: int = 0
    beyond: int = 0
    held: int = 0
    checkpoints: int = 0
    ignored: dict[str, int] = msgspec.field(default_factory=dict)
    mended: int = 0
    refused: int = 0
    refused_lines: list[RefusedLine] = msgspec.field(default_factory=list)
    torn: RefusedLine | None = None

    @property
    def barren(self) -> bool:
        """Lines were read, and no record of the harness was among them that makes an event."""
        return self.mapped == 0 and self.lines > 0

    @property
    def complete(self) -> bool:
        """Every line was taken."""
        return self.refused == 0 and self.torn is None

    def ignore(self, kind: str) -> None:
        """Count a record, or a part of one, that maps to nothing."""
        kind = kind[:_LONGEST_TEXT]
        if kind not in self.ignored and len(self.ignored) >= _MOST_KINDS:
            kind = "(other kinds)"
        self.ignored[kind] = self.ignored.get(kind, 0) + 1

    def refuse(self, line: int, reason: str, *, torn: bool = False) -> None:
        """Count a line that gave no events; `torn` for the last one without a line feed."""
        refused = RefusedLine(line, reason[:_LONGEST_TEXT])
        if torn:
            self.torn = refused
            return
        self.refused += 1
        if len(self.refused_lines) < _MOST_LISTED:
            self.refused_lines.append(refused)
