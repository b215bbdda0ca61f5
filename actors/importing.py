"""A file of rows or events into a log, once however often the process dies.

The whole file is read and understood before anything is claimed or appended. Then the log is compared with it, event by
event, and what the log does not hold yet is appended in batches, so that a run after a kill goes on where that stopped.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from incarnate.actors.lines import MAX_LINE_BYTES, read_lines
from incarnate.domain.codec import encode_event
from incarnate.domain.commands import GetHead
from incarnate.domain.errors import (
    EventShapeError,
    HeadMovedError,
    LogCorruptionError,
    LogMismatchError,
    RetiredError,
    UnencodableEventError,
)
from incarnate.domain.imports import guess_format, imported_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from incarnate.actors.lines import Line
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.codec import EncodedEvent
    from incarnate.domain.events import Opaque, SessionEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.imports import ImportFormat
    from incarnate.domain.keys import ActivationKey

__all__ = ["ImportReport", "TornTail", "import_log"]

_BATCH_EVENTS = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_MISMATCH_HINT = "import it under a key of its own, or add --append to put it behind what the log holds"


class TornTail(msgspec.Struct, frozen=True):
    """Where the end of the file that holds no whole record begins, and why it is none."""

    line: int
    offset: int
    reason: str


class ImportReport(msgspec.Struct, rename="camel", kw_only=True):
    """What one run of an import did.

    Attributes:
        key: the activation.
        format: `transcript` or `canonical`.
        incarnation: the one that this run claimed; None where there was nothing to append.
        next_offset: the head of the log at the end.
        events: how many the file holds.
        appended: how many of them this run added.
        skipped: how many of them the log already held.
        beyond: events that the log holds after the last one of the file.
        torn: the end of the file that was left out, if there is one.
    """

    key: str
    format: str
    incarnation: int | None = None
    next_offset: int = 0
    events: int = 0
    appended: int = 0
    skipped: int = 0
    beyond: int = 0
    torn: TornTail | None = None


class _Record(NamedTuple):
    line: int
    encoded: EncodedEvent


def import_log(
    system: SessionSystem,
    key: ActivationKey,
    stream: BinaryIO,
    *,
    form: ImportFormat | None = None,
    append: bool = False,
) -> ImportReport:
    """Claim `key` and append what `stream` holds and the log does not.

    Args:
        system: the store's system.
        key: the activation. Its log must hold nothing but what the file begins with, unless `append`.
        stream: a file that can be read from its begin more than once.
        form: what its lines are; None tells by the first.
        append: put the file behind what the log holds; if its begin stands there already, go on from that.

    Raises:
        LogCorruptionError: the file is empty, or a line that cannot be read stands in front of others.
        LogMismatchError: the log holds something else.
        RetiredError: nobody may append to it.
        HeadMovedError: somebody else wrote to the log meanwhile.
        StaleIncarnationError, StoreBusyError, OutcomeUnknownError: run it again; it goes on where it stopped.
    """
    return _Import(system, key, stream, append=append).run(form)


class _Import:
    def __init__(self, system: SessionSystem, key: ActivationKey, stream: BinaryIO, *, append: bool) -> None:
        self._system = system
        self._key = key
        self._stream = stream
        self._append = append
        self._form: ImportFormat = "transcript"
        self._head: Head = system.activation(key).ask(GetHead())
        self._report = ImportReport(key=str(key), format="")

    def run(self, form: ImportFormat | None) -> ImportReport:
        """All of it."""
        self._form = form or self._guess()
        report = self._report
        report.format = self._form
        self._understand()
        start = self._start() if self._append else 0
        rest = self._compare(start)
        report.next_offset = self._head.next_offset
        if rest is not None:
            self._write(rest)
        return report

    # the file

    def _lines(self) -> Iterator[tuple[Line, int, bytes]]:
        """Lines that hold something, each with the byte at which it begins."""
        self._stream.seek(0)
        offset = 0
        for line in read_lines(self._stream):
            text = b"" if line.data is None else line.data.removesuffix(b"\n").removesuffix(b"\r")
            if line.data is None or text:
                yield line, offset, text
            offset += line.size

    def _guess(self) -> ImportFormat:
        first = next(self._lines(), None)
        if first is None:
            raise self._unusable("it is empty")
        try:
            return guess_format(first[2].rstrip(b"\0"))
        except EventShapeError as error:
            raise self._unusable(
                f"its first line is neither a transcript row nor a canonical event: {error}"
            ) from error

    def _understand(self) -> None:
        """Read every line once; the torn end of the file is remembered, damage in front of a record refused."""
        report = self._report
        for line, offset, text in self._lines():
            try:
                self._encoded(line, text, None)
                if not line.whole and text.endswith(b"\0"):
                    report.torn = TornTail(line.number, offset + len(text.rstrip(b"\0")), "NULs")
            except (EventShapeError, UnencodableEventError) as error:
                report.torn = report.torn or TornTail(line.number, offset, str(error))
                continue
            if report.torn is not None and report.torn.line < line.number:
                raise self._corrupt(report.torn.line, report.torn.offset, report.torn.reason)
            report.events += 1
        if not report.events:
            raise self._unusable("no line is a whole record")

    def _encoded(self, line: Line, text: bytes, parent_id: str | None) -> EncodedEvent:
        if line.data is None:
            raise EventShapeError(f"a line of {line.size} bytes; at most {MAX_LINE_BYTES} are read")
        # NULs at the end of a file are what a power cut leaves where a record should stand.
        text = text if line.whole else text.rstrip(b"\0")
        return encode_event(imported_event(text, line.number, self._form, parent_id))

    def _records(self, parent_id: str | None) -> Iterator[_Record]:
        """The events of the file, the first of which follows `parent_id`."""
        for line, _, text in islice(self._lines(), self._report.events):
            encoded = self._encoded(line, text, parent_id)
            parent_id = encoded.event.id
            yield _Record(line.number, encoded)

    @property
    def _name(self) -> str:
        return str(getattr(self._stream, "name", "the file"))

    def _unusable(self, reason: str) -> LogCorruptionError:
        error = LogCorruptionError(self._name, reason)
        error.hint = "check the file; ingest reads what a harness wrote"
        return error

    def _corrupt(self, line: int, offset: int, reason: str) -> LogCorruptionError:
        error = LogCorruptionError(f"{self._name}, line {line}, byte {offset}", f"{reason}; nothing was appended")
        error.hint = "look at that line"
        if self._form == "transcript":
            error.hint = f"incarnate repair --dry-run {self._name} says what can be kept"
        return error

    # the log

    def _start(self) -> int:
        """The offset at which the begin of the file stands in the log already; the head where it does not."""
        start = end = self._head.next_offset
        first, parent_id = next(self._records(None)).encoded.event.id, None
        for appended in self._system.replay(self._key, 0, end):
            if first == appended.event.id and self._first(parent_id) == encode_event(appended.event).payload:
                start = appended.offset  # the last such place: the one that a killed run may have left
            parent_id = appended.event.id
        return start

    def _first(self, parent_id: str | None) -> bytes:
        return next(self._records(parent_id)).encoded.payload

    def _compare(self, start: int) -> Iterator[_Record] | None:
        """What of the file the log does not hold from `start` on; None where it holds all of it."""
        end, report = self._head.next_offset, self._report
        records = self._records(self._parent(start))
        for appended in self._system.replay(self._key, start, end):
            record = next(records, None)
            if record is None:
                report.beyond = end - appended.offset
                break
            if record.encoded.payload != encode_event(appended.event).payload:
                if self._append:
                    report.skipped = 0
                    return self._records(self._parent(end))
                if self._head.retired:
                    raise RetiredError(self._key)
                mismatch = LogMismatchError(key=self._key, line=record.line, offset=appended.offset)
                mismatch.hint = _MISMATCH_HINT
                raise mismatch
            report.skipped += 1
        return records if report.skipped < report.events else None

    def _parent(self, offset: int) -> str | None:
        before = self._system.replay(self._key, max(0, offset - 1), offset)
        return next((appended.event.id for appended in before), None)

    def _write(self, records: Iterator[_Record]) -> None:
        session = self._system.claim(self._key)
        claimed: Head = self._system.activation(self._key).ask(GetHead())
        if claimed.expected != self._head.expected:
            raise HeadMovedError(key=self._key, expected=self._head.expected, current=claimed.expected)
        report = self._report
        report.incarnation = session.incarnation
        for batch in _batches(records):
            report.appended += len(session.emit_many(batch))
        report.next_offset = session.next_offset


def _batches(records: Iterator[_Record]) -> Iterator[list[SessionEvent | Opaque]]:
    batch: list[SessionEvent | Opaque] = []
    size = 0
    for record in records:
        batch.append(record.encoded.event)
        size += len(record.encoded.payload)
        if len(batch) >= _BATCH_EVENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
