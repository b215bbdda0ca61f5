"""One activation's journal as this process sees it: kept up to date with what any process has appended.

Nothing is locked here. Whoever reads looks at the size of the segment that is written to, and reads on where it has
grown; a commit that is not whole yet is not there yet. `jsonl_writer` adds to it, under the lock of the activation.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from incarnate.domain.errors import KeyFormatError, LogCorruptionError, StoreFileError
from incarnate.domain.journal import FORMAT, SUFFIX_BYTES, Line, crc_after, parse
from incarnate.domain.keys import ActivationKey
from incarnate.storage.jsonl_files import Handle, SegmentName, failed, read_at, segments_in
from incarnate.storage.jsonl_fold import Fold, address_of
from incarnate.storage.jsonl_index import Place, load_index, save_index
from incarnate.storage.jsonl_scan import Scan, Scanned, corrupt, scanned
from incarnate.storage.jsonl_tail import PADDING
from incarnate.storage.settled import is_settled

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["INDEX_AFTER_BYTES", "Journal", "Seen", "displaced", "key_in"]

INDEX_AFTER_BYTES = 1 << 20
_INDEX_SHARE = 8  # an index is written anew when the journal has grown by that many times its size
_LOOKS = 4
_HEADER_BYTES = 32 * 1024  # a key has at most 2 KiB, six times that where all of it is escaped
_MOST_HANDLES = 4


class Seen:
    """A journal up to a place in it: what it adds up to, its segments, and the file that is written to."""

    def __init__(self, fold: Fold, segments: list[SegmentName], place: Place, file: Handle) -> None:
        self.fold = fold
        self.segments = {name.number: name for name in segments}
        self.place = place
        self.file = file
        self.torn = 0  # bytes behind the place that are no whole commit
        self.unsynced = True  # whether some of it may not have reached the disk, whoever wrote it
        self.grown = 0  # bytes since the index was saved
        self.whole = True  # whether no addition was broken off
        self.index_bytes = 0

    def add(self, found: Scanned) -> None:
        """Take in the lines of whole commits that follow.

        Raises:
            LogCorruptionError: one of them cannot follow.
        """
        self.whole = False
        fold, segment = self.fold, self.place.segment
        ended = False
        for line, byte, length in found.lines:
            wrong = fold.take(line, address_of(segment, byte), length)
            if wrong is not None:
                raise corrupt(self.file.path, self.file.fd, byte, wrong)
            ended = line.next is not None
        self.grown += found.end - self.place.byte
        self.place = Place(segment, found.end, found.crc, ended)
        self.whole = True

    def add_event(self, offset: int, at_ms: int, before: Place, length: int, crc: int) -> None:
        """Take in the line of one event that this process wrote behind `before`, unless a reader was first."""
        if self.place is before and self.whole:
            self.whole = False
            self.fold.grow(offset, 1, at_ms, address_of(before.segment, before.byte))
            self.grown += length
            self.place = Place(before.segment, before.byte + length, crc, False)  # noqa: FBT003 - by position: at every event
            self.whole = True


class Journal:
    """The journal of `key` in a folder of its own. Every method may be called from any thread."""

    def __init__(self, folder: Path, key: ActivationKey) -> None:
        self.folder = folder
        self.key = key
        self.lock = threading.RLock()
        """Held for as long as what was seen is looked at or changed, and never while anything is waited for."""
        self._seen: Seen | None = None
        self._last = 0
        """The number of the last segment that was ever seen: what was there and is not any more, somebody removed."""
        self._stamp: tuple[int, ...] = ()  # of the folder, when all files were last known to be in their places
        self._older: dict[SegmentName, Handle] = {}

    @property
    def was_there(self) -> bool:
        """Whether it was ever seen."""
        return self._last > 0

    def look(self) -> Seen | None:
        """What is there now; None where nobody has written to it.

        Raises:
            LogCorruptionError: it cannot be read, with the file, the line and the byte.
            StoreFileError: it cannot be opened, or was removed.
        """
        with self.lock:
            try:
                for look in range(_LOOKS):
                    try:
                        return self._look()
                    except (LogCorruptionError, FileNotFoundError):
                        self.forget()
                        if look == _LOOKS - 1:
                            raise
                    time.sleep(0.001)  # somebody's failed write may just be cut off, or a segment be swept
            except OSError as error:
                raise failed(error, self.folder) from error
            raise AssertionError

    def forget(self) -> None:
        """Read everything anew the next time."""
        with self.lock:
            self._seen = None
            self._older.clear()

    def _look(self) -> Seen | None:
        seen = self._seen
        if seen is not None and self._in_place(seen) and seen.whole:
            if not seen.place.ended:
                byte, size = seen.place.byte, os.fstat(seen.file.fd).st_size
                if size == byte or os.pread(seen.file.fd, 1, byte) == PADDING:
                    seen.torn = 0
                    return seen
                if size < byte:
                    raise StoreFileError(str(seen.file.path), "has become shorter while it was open")
            if self._catch_up(seen):
                self._last = seen.place.segment
                return seen
        self._seen = self._load()
        return self._seen

    def _in_place(self, seen: Seen) -> bool:
        """Whether the segments that `seen` knows are where they were; a sweep may have written some anew.

        Raises:
            StoreFileError: one of them was removed, renamed or replaced.
        """
        stamp = self._look_at_folder()
        if stamp == self._stamp:
            return True
        there = {name.number: name for name in segments_in(self.folder)}
        if any(number > seen.place.segment for number in there):
            return not any(there.get(number) != name for number, name in seen.segments.items())
        for number, name in seen.segments.items():
            now = there.get(number)
            if now is None:
                raise displaced(self.folder / name.file, "removed")
            if now != name:
                return False
        if not seen.file.is_in_place():
            if _reaches(seen.file.path, seen.place):
                return False  # a copy of it, put back
            raise displaced(seen.file.path, "replaced by one that does not hold what this one held")
        self._stamp = stamp if is_settled(stamp[-1]) else ()
        return True

    def _look_at_folder(self) -> tuple[int, ...]:
        try:
            status = os.stat(self.folder)  # noqa: PTH116 - at every read and write
        except FileNotFoundError:
            raise displaced(self.folder, "removed") from None
        return status.st_dev, status.st_ino, status.st_mtime_ns

    def _load(self) -> Seen | None:
        names = self._counting(segments_in(self.folder))
        if not names:
            if self.was_there:
                raise displaced(self.folder, "removed")
            return None
        if names[-1].number < self._last:
            raise displaced(self.folder / SegmentName(self._last).file, "removed")
        loaded = load_index(self.folder, names)
        fold, place = loaded or (Fold(), Place(names[0].number, 0, 0, ended=False))
        segment = names[place.segment - names[0].number]
        seen = Seen(fold, names, place, Handle(self.folder / segment.file, os.O_RDONLY))
        if not self._catch_up(seen) or seen.place.segment < names[-1].number:
            raise LogCorruptionError(str(seen.file.path), "does not end as a segment must that others follow")
        self._last = seen.place.segment
        self._stamp = ()
        return seen

    def _counting(self, names: list[SegmentName]) -> list[SegmentName]:
        """Those of the segments that count: from the last one on that begins the journal."""
        first = len(names) - 1
        while first >= 0 and not self._header(names[first]).begins:
            first -= 1
        if names and (first < 0 or names[-1].number - names[first].number != len(names) - 1 - first):
            raise LogCorruptionError(str(self.folder), f"a segment is missing; there are {[n.file for n in names]}")
        return names[max(first, 0) :]

    def _header(self, name: SegmentName) -> Line:
        header = header_of(self.folder, name)
        if header.segment != name.number or header.key != str(self.key):
            raise LogCorruptionError(f"{self.folder / name.file}", f"is segment {header.segment} of {header.key}")
        return header

    def _catch_up(self, seen: Seen) -> bool:
        """Read on from where `seen` stands; whether the segments are still the ones that it knows."""
        while True:
            scan = Scan(seen.file.fd, seen.file.path, seen.place.byte, seen.place.crc)
            for found in scan:
                seen.unsynced = True
                seen.add(found)
            seen.torn = scan.torn
            if not seen.place.ended:
                return True
            following = seen.place.segment + 1
            known = seen.segments.get(following)
            name = known or SegmentName(following)
            try:
                file = Handle(self.folder / name.file, os.O_RDONLY)
            except FileNotFoundError:
                return known is None and all(other.number < following for other in segments_in(self.folder))
            if self._header(name).begins:
                return False
            seen.segments[following] = name
            seen.file, seen.place = file, Place(following, 0, 0, ended=False)

    def written(self, data: bytes, before: Place) -> None:
        """Take in what this process wrote behind `before`, unless a reader was first."""
        with self.lock:
            seen, lines = self._seen, parse(data)
            if seen is not None and seen.whole and seen.place == before and lines is not None:
                seen.add(scanned(data, lines, before.byte, before.crc))

    def segment(self, name: SegmentName) -> Handle:
        """A segment to read from.

        Raises:
            FileNotFoundError: it was written anew meanwhile, or is no longer needed.
        """
        with self.lock:
            seen = self._seen
            if seen is not None and seen.file.path.name == name.file:
                return seen.file
            handle = self._older.get(name)
            if handle is None:
                handle = Handle(self.folder / name.file, os.O_RDONLY)
                while len(self._older) >= _MOST_HANDLES:
                    self._older.pop(next(iter(self._older)))
                self._older[name] = handle
            return handle

    def save_index(self, *, at_least: int = INDEX_AFTER_BYTES) -> None:
        """Save the index if the journal has grown by `at_least` that many bytes since the last one."""
        with self.lock:
            seen = self._seen
            if seen is None or not seen.whole or seen.grown < max(at_least, _INDEX_SHARE * seen.index_bytes):
                return
            names = [seen.segments[number] for number in sorted(seen.segments)]
            seen.grown, seen.index_bytes = 0, save_index(self.folder, seen.fold, seen.place, names)


def _reaches(path: Path, place: Place) -> bool:
    """Whether the segment at `path` holds, byte for byte, what led to `place`."""
    file = Handle(path, os.O_RDONLY)
    suffix = read_at(file.fd, max(place.byte - SUFFIX_BYTES, 0), place.byte)
    return crc_after(suffix) == place.crc if suffix else place.byte == 0


def displaced(path: Path, what: str) -> StoreFileError:
    """What is told of a file or folder that is not where it was."""
    return StoreFileError(str(path), f"was {what} while it was open", hint="put it back, or open the store anew")


def key_in(folder: Path) -> ActivationKey | None:
    """Whose journal a folder holds; None where it holds none yet.

    Raises:
        LogCorruptionError, StoreFileError: it cannot be read.
    """
    try:
        names = segments_in(folder)
        return ActivationKey.parse(header_of(folder, names[-1]).key) if names else None
    except OSError as error:
        raise failed(error, folder) from error
    except KeyFormatError as error:
        raise LogCorruptionError(str(folder), str(error)) from error


def header_of(folder: Path, name: SegmentName) -> Line:
    """The first line of a segment."""
    path = folder / name.file
    handle = Handle(path, os.O_RDONLY)
    data = read_at(handle.fd, 0, _HEADER_BYTES)
    lines = parse(data[: data.find(b"\n") + 1])
    header = lines[0] if lines else None
    if header is None or header.journal is None:
        raise corrupt(path, handle.fd, 0, "is no segment of a journal")
    if header.journal > FORMAT:
        raise StoreFileError(str(path), "was written by a newer version of incarnate", hint="upgrade incarnate")
    return header
