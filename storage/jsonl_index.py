"""The index beside a journal: what it adds up to at some place, so that opening it need not read what lies before.

It may be deleted at any time. It is used only where its own checksum holds, every segment that it names is there, and
the journal's own checksum at that place is the one that it was made at; else the journal is read from its beginning.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from incarnate.domain.journal import SUFFIX_BYTES, crc_after
from incarnate.storage.jsonl_files import Handle, SegmentName, read_at
from incarnate.storage.jsonl_fold import Fold, Kept, Piece, Rewound
from incarnate.storage.transcript_files import write_all

__all__ = ["Place", "load_index", "save_index"]

_NAME = "index"
_MAGIC = b"incarnate index 1 %b\n" % sys.byteorder.encode()
_CRC_BYTES = 4


class Place(NamedTuple):
    """How far a journal was read: a segment, the byte and the CRC there, and whether the segment ends there."""

    segment: int
    byte: int
    crc: int
    ended: bool


class _Saved(msgspec.Struct, kw_only=True, array_like=True):
    place: Place
    segments: list[SegmentName]
    key: str
    created_ms: int
    updated_ms: int
    fence: int | None
    next_offset: int
    generation: int
    next_turn: int
    retired_ms: int | None
    swept: bool
    pieces: tuple[Piece, ...]
    rewinds: list[Rewound]
    kept: list[Kept]
    marks: bytes
    marked: bytes


_ALIKE = (
    *("key", "created_ms", "updated_ms", "fence", "next_offset", "generation", "next_turn", "retired_ms", "swept"),
    *("pieces", "rewinds"),
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Saved)


def save_index(folder: Path, fold: Fold, place: Place, segments: list[SegmentName]) -> int:
    """Save what a journal adds up to at `place`; the size of the index. Where it cannot be saved nothing is lost."""
    alike: dict[str, Any] = {name: getattr(fold, name) for name in _ALIKE}
    marks, marked = fold.marks.tobytes(), fold.marked.tobytes()
    saved = _Saved(place=place, segments=segments, kept=fold.kept, marks=marks, marked=marked, **alike)
    body = _encoder.encode(saved)
    with suppress(OSError):
        descriptor, unfinished = tempfile.mkstemp(dir=folder, prefix=".index-")
        try:
            try:
                write_all(descriptor, _MAGIC + zlib.crc32(body).to_bytes(_CRC_BYTES) + body)
            finally:
                os.close(descriptor)
            Path(unfinished).replace(folder / _NAME)
        except BaseException:
            with suppress(OSError):
                Path(unfinished).unlink()
            raise
    return len(body)


def load_index(folder: Path, segments: list[SegmentName]) -> tuple[Fold, Place] | None:
    """What a journal of these segments adds up to at the place of its index; None where there is none to be used."""
    try:
        saved = _read(folder)
        if saved is None or not _holds(folder, saved, segments):
            return None
    except OSError:
        return None
    fold = Fold()
    for name in _ALIKE:
        setattr(fold, name, getattr(saved, name))
    fold.marks, fold.marked = array("Q", saved.marks), array("Q", saved.marked)
    fold.restore(saved.kept)
    return fold, saved.place


def _read(folder: Path) -> _Saved | None:
    data = (folder / _NAME).read_bytes()
    start = len(_MAGIC) + _CRC_BYTES
    body = memoryview(data)[start:]
    if not data.startswith(_MAGIC) or zlib.crc32(body).to_bytes(_CRC_BYTES) != data[len(_MAGIC) : start]:
        return None
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        return None


def _holds(folder: Path, saved: _Saved, segments: list[SegmentName]) -> bool:
    """Whether the journal is still the one that was read: segments may have been added, and lines to the last."""
    place, count = saved.place, len(saved.segments)
    if not count or saved.segments != segments[:count] or saved.segments[-1].number != place.segment:
        return False
    handle = Handle(folder / saved.segments[-1].file, os.O_RDONLY)
    return crc_after(read_at(handle.fd, place.byte - SUFFIX_BYTES, place.byte)) == place.crc
