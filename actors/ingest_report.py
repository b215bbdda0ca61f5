"""What one run of an ingest did."""

from __future__ import annotations

import msgspec

__all__ = ["TEXT", "IngestReport", "NotedLine", "RefusedLine"]

_MOST_LISTED = 1000  # a report stays small, whatever the file
_MOST_KINDS = 1000
_LONGEST_TEXT = 300

TEXT = "(text)"
"""The kind under which lines are counted that are no JSON."""


class RefusedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line, or a part of one, that gave no events, and why; `byte` counts from 0 and is where it begins."""

    line: int
    reason: str
    byte: int = 0
    file: str | None = None


class NotedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line that was read, and what there is to say of it; `byte` counts from 0 and is where it begins."""

    line: int
    note: str
    byte: int = 0
    file: str | None = None


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
        ignored: records, or parts of them, that map to nothing, by kind; `(text)` are the lines that are no JSON.
        text_lines: the first thousand of those.
        mended: damaged places that were mended, such as a lone surrogate, or a record glued to another.
        mended_lines: the first thousand lines with one.
        refused: how many lines gave no events because they were damaged.
        refused_lines: the first thousand of them.
        torn: the last record, where the stream ends inside it.
        kept: records that were kept raw in this run, because they, or parts of them, map to nothing.
        unused_prompts: prompts that no turn of the stream was left for.
        unprompted_turns: turns that no prompt was left for, where any was given.
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
    text_lines: list[NotedLine] = msgspec.field(default_factory=list)
    mended: int = 0
    mended_lines: list[NotedLine] = msgspec.field(default_factory=list)
    refused: int = 0
    refused_lines: list[RefusedLine] = msgspec.field(default_factory=list)
    torn: RefusedLine | None = None
    kept: int = 0
    unused_prompts: int = 0
    unprompted_turns: int = 0

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
        ignored = self.ignored
        known = ignored.get(kind)
        if known is not None:
            ignored[kind] = known + 1
            return
        kind = kind[:_LONGEST_TEXT]
        if kind not in ignored and len(ignored) >= _MOST_KINDS:
            kind = "(other kinds)"
        ignored[kind] = ignored.get(kind, 0) + 1

    def hear(self, line: NotedLine) -> None:
        """Count a line that is no JSON and maps to nothing."""
        self.ignore(TEXT)
        if len(self.text_lines) < _MOST_LISTED:
            self.text_lines.append(_short(line))

    def mend(self, line: NotedLine, places: int) -> None:
        """Count the places of a line that were mended."""
        self.mended += places
        if len(self.mended_lines) < _MOST_LISTED:
            self.mended_lines.append(_short(line))

    def refuse(self, refused: RefusedLine, *, torn: bool = False) -> None:
        """Count a line that gave no events; `torn` for a record inside which the stream ends."""
        refused = msgspec.structs.replace(refused, reason=refused.reason[:_LONGEST_TEXT])
        if torn:
            self.torn = refused
            return
        self.refused += 1
        if len(self.refused_lines) < _MOST_LISTED:
            self.refused_lines.append(refused)


def _short(line: NotedLine) -> NotedLine:
    return msgspec.structs.replace(line, note=line.note[:_LONGEST_TEXT])
