"""One activation's log as it stood at one moment, read from its journal."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from incarnate.domain.codec import decode_checkpoint, decode_stored
from incarnate.domain.errors import LogCorruptionError, StoreBusyError
from incarnate.domain.heads import EMPTY_HEAD
from incarnate.domain.journal import (
    SUFFIX_BYTES,
    checkpoint_payload,
    crc_after,
    event_start,
    is_chained,
    read_events,
    rows_of,
)
from incarnate.storage.jsonl_files import read_at
from incarnate.storage.jsonl_fold import address_of, segment_and_byte

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.codec import StoredEvent
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.jsonl_files import Handle
    from incarnate.storage.jsonl_fold import Fold, Piece
    from incarnate.storage.jsonl_index import Place
    from incarnate.storage.jsonl_journal import Journal, Seen

__all__ = ["JsonlLog"]

_CHUNK_BYTES = 1 << 18
_ANY_EVENT = b'\n{"offset":'


class JsonlLog:
    """What is stored of one activation; see `Snapshot`. What is written later does not change it."""

    def __init__(self, journal: Journal, seen: Seen | None) -> None:
        """Call it under the journal's lock."""
        self.key: ActivationKey = journal.key
        self.seen = seen
        self._journal = journal
        self.head = EMPTY_HEAD
        if seen is not None:
            fold = seen.fold
            self._fold: Fold = fold
            self.head = fold.head
            self._place = seen.place
            self._pieces: Sequence[Piece] = fold.pieces
            self._latest = fold.latest
            self._kept = len(fold.kept)
            self._rewinds = len(fold.rewinds)

    @property
    def place(self) -> Place:
        """Where the journal ended at that moment."""
        return self._place

    def follow(self, head: Head) -> None:
        """Move on to `head`, where nothing but events was added since."""
        assert self.seen is not None, "it has events"
        self.head, self._place = head, self.seen.place

    def events(self, start: int, stop: int) -> list[StoredEvent]:
        return [row for data, place in self._live(start, stop) for row in rows_of(data, place)]

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        return [event for data, place in self._live(start, stop) for event in read_events(data, place)]

    def page(self, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        return _page(self._live(start, stop), max_bytes)

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        if self.seen is None:
            return None
        return self._read_checkpoint(self._fold.checkpoint(checkpoint_id, self._kept, self.head.generation))

    def latest_checkpoint(self) -> Checkpoint | None:
        return None if self.seen is None else self._read_checkpoint(self._latest)

    def checkpoint_ids(self) -> list[str]:
        kept = [self._fold.kept[number] for number in self.checkpoints(self.head.next_offset)]
        return [one.id for one in sorted(kept, key=lambda one: one.offset)]

    def lowest_cut(self, generation: int) -> int | None:
        return min((rewind.cut for rewind in self.rewinds() if rewind.generation > generation), default=None)

    def rewinds(self) -> list[Rewind]:
        return [] if self.seen is None else [rewound.rewind for rewound in self._fold.rewinds[: self._rewinds]]

    def retired_ms(self) -> int | None:
        return self._fold.retired_ms if self.head.retired and not self._fold.swept else None

    def superseded(self, generation: int, start: int, stop: int, max_bytes: int) -> list[AppendedEvent]:
        if self.seen is None or not 0 < generation <= self._rewinds:
            return []
        return _page(self._runs(generation, start, stop), max_bytes)

    def checkpoints(self, offset: int) -> list[int]:
        """The numbers of the checkpoints up to `offset`, in the order in which they were made."""
        if self.seen is None:
            return []
        kept = enumerate(self._fold.kept[: self._kept])
        return [number for number, one in kept if one.pruned > self.head.generation and one.offset <= offset]

    def lines(self, stop: int) -> Iterator[bytes]:
        """The lines of the events below `stop`, many at a time."""
        return (data for data, _ in self._live(0, stop))

    def line(self, number: int) -> tuple[bytes, str]:
        """The line of a checkpoint, and its place."""
        while True:
            kept = self._fold.kept[number]
            segment, byte = segment_and_byte(kept.address)
            try:
                file = self._file(segment)
            except FileNotFoundError:
                self._renew()
            else:
                return read_at(file.fd, byte, byte + kept.length), f"{file.path}, byte {byte}"

    def _read_checkpoint(self, number: int | None) -> Checkpoint | None:
        if number is None:
            return None
        data, place = self.line(number)
        return decode_checkpoint(checkpoint_payload(data), place)

    def _file(self, segment: int) -> Handle:
        assert self.seen is not None, "an address comes from what was seen"
        return self._journal.segment(self.seen.segments[segment])

    def _renew(self) -> None:
        """Look where everything lies now: a sweep has written segments anew since, and moved what was kept.

        Raises:
            StoreBusyError: the log was rewound since, too, or was swept whole.
        """
        with self._journal.lock:
            self._journal.forget()
            seen = self._journal.look()
            if seen is None or seen.fold.generation != self.head.generation or seen.fold.swept:
                raise StoreBusyError(f"{self._journal.folder} was swept while it was read")
            self.seen, self._fold, self._place, self._pieces = seen, seen.fold, seen.place, seen.fold.pieces

    def _live(self, start: int, stop: int) -> Iterator[tuple[bytes, str]]:
        """The lines that hold the events from `start` up to `stop`, and a place to name where they cannot be read."""
        return iter(()) if self.seen is None else self._runs(None, start, min(stop, self.head.next_offset))

    def _runs(self, generation: int | None, start: int, stop: int) -> Iterator[tuple[bytes, str]]:
        """The same of the live log, or of the archive of a rewind."""
        while True:
            try:
                for piece in self._parts(generation, start, stop):
                    start = piece.start
                    for lines, place, count in self._run(piece):
                        start += count
                        yield lines, place
                return
            except FileNotFoundError:
                self._renew()

    def _parts(self, generation: int | None, start: int, stop: int) -> list[Piece]:
        """The parts of the pieces that hold the events from `start` up to `stop`."""
        pieces: Sequence[Piece] = self._pieces
        if generation is not None:
            rewound = self._fold.rewinds[generation - 1]
            pieces = () if rewound.rewind.swept else rewound.pieces
        first = max(bisect_right(pieces, start, key=lambda piece: piece.start) - 1, 0)
        parts: list[Piece] = []
        for piece in pieces[first:]:
            if piece.start >= stop:
                break
            part = piece.between(start, stop)
            if part.start < part.stop:
                parts.append(part)
        return parts

    def _run(self, piece: Piece) -> Iterator[tuple[bytes, str, int]]:
        """Lines of one piece, many at a time, and how many events are among them; other records are, too."""
        start, stop = piece.start, piece.stop
        ended = min(piece.end, address_of(self._place.segment, self._place.byte))
        segment, byte = segment_and_byte(self._fold.near(piece, start, ended))
        last, end = segment_and_byte(ended)
        lead, size = SUFFIX_BYTES, _CHUNK_BYTES
        while start < stop:
            file = self._file(segment)
            place = f"{file.path}, byte {byte}"
            data = read_at(file.fd, byte - lead, min(byte + size, end) if segment == last else byte + size)
            text = data[lead : data.rfind(b"\n") + 1]
            if not text and len(data) == lead + size:
                size *= 4  # one event is longer than what was read
                continue
            if not text:
                segment, byte, lead = segment + 1, 0, 0
                if segment > last:
                    raise LogCorruptionError(place, f"the event at offset {start} of {self.key} is missing")
                continue
            lines, count = _cut(b"\n" + text, start, stop)
            if not _is_whole(data[:lead], text) and not (count and _is_whole(*_before(data, lines))):
                raise LogCorruptionError(place, f"a record of {self.key} has changed since it was written")
            byte, lead, size = byte + len(text), SUFFIX_BYTES, _CHUNK_BYTES
            if count:
                start += count
                yield lines, place, count


def _cut(text: bytes, start: int, stop: int) -> tuple[bytes, int]:
    """The lines behind the first line end of `text` from the event at `start` up to that at `stop`, and how many.

    Their offsets follow one upon the other, so that the last one tells how many they are: to count them would cost a
    sixth of a replay.
    """
    first, last = text.find(event_start(start)), text.rfind(_ANY_EVENT)
    if not 0 <= first <= last:
        return b"", 0
    after = int(text[last + len(_ANY_EVENT) : text.index(b",", last)]) + 1
    if after <= stop:
        return text[first + 1 :], after - start
    return text[first + 1 : text.find(event_start(stop), first) + 1], stop - start


def _is_whole(suffix: bytes, text: bytes) -> bool:
    """Whether `text` has not changed since it was written behind a line that ends in `suffix`, or behind nothing."""
    crc = crc_after(suffix) if suffix else 0
    return crc is not None and is_chained(text, crc)


def _before(data: bytes, lines: bytes) -> tuple[bytes, bytes]:
    """The end of the line before `lines` in `data`, and they themselves: they may be whole where others are not."""
    byte = data.index(lines)
    return data[max(byte - SUFFIX_BYTES, 0) : byte], lines


def _page(runs: Iterable[tuple[bytes, str]], max_bytes: int) -> list[AppendedEvent]:
    """The events of `runs` up to the one whose payload reaches `max_bytes`."""
    events: list[AppendedEvent] = []
    before: list[tuple[bytes, str]] = []
    size = 0  # of the lines, which are longer than their payloads
    for data, place in runs:
        size += len(data)
        if size >= max_bytes:
            left = max_bytes - sum(len(row.payload) for earlier in before for row in rows_of(*earlier))
            rows = rows_of(data, place)
            taken = _reaching(rows, left)
            events += decode_stored(rows[:taken], place)
            if taken < len(rows) or sum(len(row.payload) for row in rows) >= left:
                return events
        else:
            events += read_events(data, place)
        before.append((data, place))
    return events


def _reaching(rows: Sequence[StoredEvent], max_bytes: int) -> int:
    """How many of `rows` it takes until their payloads reach `max_bytes`; all where they do not."""
    size = 0
    for number, row in enumerate(rows, 1):
        size += len(row.payload)
        if size >= max_bytes:
            return number
    return len(rows)
