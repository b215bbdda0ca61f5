"""Forks, and the sweeping of what is not needed any more, in a JSONL store.

What is swept is first said to be gone, in a line of its own; then each ended segment that holds some of it is written
anew without it and put in the place of the old one. A crash in between leaves lines that nobody reads, until the next
sweep or vacuum.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from incarnate.domain.errors import KeyTakenError, OffsetError
from incarnate.domain.heads import Head
from incarnate.domain.journal import (
    FinalState,
    Line,
    bare_body,
    fork_body,
    gap_body,
    seal_each,
    state_body,
    swept_body,
)
from incarnate.storage.jsonl_files import Handle, SegmentName, make_segment, read_at, segments_in
from incarnate.storage.jsonl_fold import address_of
from incarnate.storage.jsonl_scan import Scan
from incarnate.storage.port import Swept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.jsonl_journal import Seen
    from incarnate.storage.jsonl_log import JsonlLog
    from incarnate.storage.jsonl_writer import JsonlWriter

__all__ = ["fork", "is_due", "remove_swept", "sweep"]


def fork(source: JsonlLog, target: JsonlWriter, offset: int, now_ms: int) -> Head:
    """Copy what lies below `offset` into the journal of `target`; see `Store.fork`.

    All of it becomes one segment, however large, so that it is there whole or not at all. The source is not locked: the
    fork is of the moment at which it was looked at.
    """
    key, head = source.key, source.head
    if not 0 <= offset <= head.next_offset:
        raise OffsetError(f"{key} ends at {head.next_offset}; it cannot be forked at {offset}")

    def work(seen: Seen | None) -> Head:
        if seen is not None:
            raise KeyTakenError(target.journal.key)
        bodies = _forked(source, offset, fork_body(key, head, now_ms))
        target.create(now_ms, bodies)
        return Head(head.fence, offset, 0, head.next_turn)

    return target.exclusive(work)


def _forked(source: JsonlLog, offset: int, first: bytes) -> Iterator[bytes]:
    yield first
    for data in source.lines(offset):
        for line in data.split(b"\n")[:-1]:
            if line.startswith(b'{"offset":'):
                yield bare_body(line + b"\n")
    for number in source.checkpoints(offset):
        yield bare_body(source.line(number)[0])


# Sweeping


def is_due(log: JsonlLog, before_ms: int) -> bool:
    """Whether a sweep finds anything."""
    seen = log.seen
    return seen is not None and (_is_old(seen, before_ms) or bool(_old_rewinds(seen, before_ms)))


def _is_old(seen: Seen, before_ms: int) -> bool:
    retired_ms = seen.fold.retired_ms
    return retired_ms is not None and retired_ms < before_ms and not seen.fold.swept


def _old_rewinds(seen: Seen, before_ms: int | None) -> list[Rewind]:
    rewinds = [rewound.rewind for rewound in seen.fold.rewinds if not rewound.rewind.swept]
    return [rewind for rewind in rewinds if before_ms is None or rewind.at_ms < before_ms]


def sweep(writer: JsonlWriter, before_ms: int) -> Swept:
    """Sweep one activation; see `Store.sweep`."""

    def say(seen: Seen | None) -> Swept:
        if seen is None or seen.fold.swept:
            return Swept(0, 0, 0)
        if _is_old(seen, before_ms):
            return _sweep_all(writer, seen)
        rewinds = _old_rewinds(seen, before_ms)
        if rewinds:  # said in a new segment: all those before it can be written anew
            writer.end(seen)
            generations = [rewind.generation for rewind in rewinds]
            writer.begin(seen.place.segment + 1, seen.fold.created_ms, [swept_body(generations)])
        return Swept(0, len(rewinds), sum(rewind.head - rewind.cut for rewind in rewinds))

    swept = writer.exclusive(say)
    if swept.rewinds:
        remove_swept(writer)
    return swept


def _sweep_all(writer: JsonlWriter, seen: Seen) -> Swept:
    """Begin the journal anew, with nothing but what is kept for ever."""
    fold = seen.fold
    assert fold.retired_ms is not None, "only what was retired is swept whole"
    unswept = _old_rewinds(seen, None)
    events = fold.next_offset + sum(rewind.head - rewind.cut for rewind in unswept)
    rewinds = tuple([msgspec.structs.replace(rewound.rewind, swept=True) for rewound in fold.rewinds])
    state = FinalState(fold.fence, fold.generation, fold.next_turn, fold.retired_ms, rewinds)
    writer.end(seen)
    writer.begin(seen.place.segment + 1, fold.created_ms, [state_body(state)], begins=True)
    _tidy(writer)
    return Swept(1, len(unswept), events)


def _tidy(writer: JsonlWriter) -> bool:
    """Remove the segments that do not count any more; whether there were any."""
    seen = writer.journal.look()
    if seen is None:
        return False
    found = False
    counting = {name.file for name in seen.segments.values()}
    with suppress(OSError):  # they do no harm
        for path in writer.journal.folder.glob("*.jsonl"):
            if path.name not in counting:
                found = True
                path.unlink()
    return found


def remove_swept(writer: JsonlWriter) -> None:
    """Write every ended segment that holds swept events anew without them, and remove what does not count any more.

    Each segment is a step of its own: the activation is locked for no longer than one takes.
    """

    def plan(seen: Seen | None) -> list[tuple[SegmentName, list[_Dead]]]:
        return [] if seen is None else _plan(seen)

    for name, dead in writer.exclusive(plan):
        writer.exclusive(partial(_rewrite, writer, name, dead))

    def finish(_: Seen | None) -> None:
        if _tidy(writer):
            writer.journal.save_index(at_least=0)

    writer.exclusive(finish)


class _Dead(NamedTuple):
    """Events that nobody can read any more: those with these offsets between these addresses."""

    address: int
    end: int
    start: int
    stop: int


def _plan(seen: Seen) -> list[tuple[SegmentName, list[_Dead]]]:
    """The segments that may hold swept events, and which events those are."""
    dead = [
        _Dead(seen.fold.near(piece, piece.start, piece.end), piece.end, piece.start, piece.stop)
        for rewound in seen.fold.rewinds
        if rewound.rewind.swept
        for piece in rewound.pieces
    ]
    plan: list[tuple[SegmentName, list[_Dead]]] = []
    for number, name in sorted(seen.segments.items()):
        begin, end = address_of(number, 0), address_of(number + 1, 0)
        here = [one for one in dead if one.address < end and one.end > begin]
        if here and number != seen.place.segment:
            plan.append((name, here))
    return plan


def _rewrite(writer: JsonlWriter, name: SegmentName, dead: list[_Dead], _seen: Seen | None) -> None:
    folder = writer.journal.folder
    if name not in segments_in(folder):
        return  # another process was first
    file = Handle(folder / name.file, os.O_RDONLY)
    if any(isinstance(body, Line) and not body.gap for body in _bodies(file, name.number, dead)):
        path = folder / SegmentName(name.number, name.revision + 1).file
        make_segment(path, seal_each(_with_gaps(_bodies(file, name.number, dead)), 0))


def _bodies(file: Handle, number: int, dead: list[_Dead]) -> Iterator[bytes | Line]:
    """The body of each line of a segment; the line itself where it holds dead events."""
    waiting = sorted(dead, reverse=True)
    near: list[_Dead] = []
    for found in Scan(file.fd, file.path, 0, 0):
        first = found.lines[0].byte
        data = read_at(file.fd, first, found.end)
        for line, byte, length in found.lines:
            if line.offset >= 0:
                address = address_of(number, byte)
                while waiting and waiting[-1].address <= address:
                    near.append(waiting.pop())
                near = [one for one in near if one.end > address]
                if any(one.start <= line.offset < one.stop for one in near):
                    yield line
                    continue
            yield bare_body(data[byte - first : byte - first + length])


def _with_gaps(bodies: Iterable[bytes | Line]) -> Iterator[bytes]:
    """Bodies with one gap in place of the dead events of a row."""
    offset = count = 0
    for body in bodies:
        if isinstance(body, Line):
            offset = offset if count else body.offset
            count += body.gap or 1
            continue
        if count:
            yield gap_body(offset, count)
            count = 0
        yield body
