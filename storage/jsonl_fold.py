"""What a journal adds up to: the head, where the events lie, the checkpoints, the archive of rewinds.

Nothing here grows with the events but one mark for every 64 KiB of journal. An address is a segment's number and a byte
in it, as one integer. The lists are only added to, so that a snapshot is a few numbers and stays true while a writer
goes on: what a rewind took out of sight is marked with the generation that did it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from incarnate.domain.heads import Head
from incarnate.domain.rewinds import Rewind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from incarnate.domain.journal import FinalState, Line

__all__ = ["NEVER", "Fold", "Kept", "Piece", "Rewound", "address_of", "segment_and_byte"]

NEVER = 2**62
"""Above every offset, address and generation."""

_MARK_BYTES = 64 * 1024
_SEGMENT_SHIFT = 40


def address_of(segment: int, byte: int) -> int:
    """One number for a place in a journal; later places have larger ones."""
    return segment << _SEGMENT_SHIFT | byte


def segment_and_byte(address: int) -> tuple[int, int]:
    """The place of an address."""
    return address >> _SEGMENT_SHIFT, address & ((1 << _SEGMENT_SHIFT) - 1)


class Piece(NamedTuple):
    """Events `start` up to `stop` that lie one behind the other from `address` on.

    The marks from `low` up to `high` are its own; no other events lie before `end`. That which is still written to has
    no `stop`, `high` and `end` yet.
    """

    start: int
    stop: int
    address: int
    low: int
    high: int = NEVER
    end: int = NEVER

    def between(self, start: int, stop: int) -> Piece:
        """The part of it from `start` up to `stop`."""
        return self._replace(start=max(self.start, start), stop=min(self.stop, stop))


class Rewound(msgspec.Struct, gc=False, array_like=True):
    """A rewind, where its line stands, and where the events lie that it superseded."""

    rewind: Rewind
    address: int
    pieces: tuple[Piece, ...]


class Kept(msgspec.Struct, gc=False, array_like=True):
    """A checkpoint: where its line stands; visible before the generation `pruned`."""

    id: str
    offset: int
    address: int
    length: int
    pruned: int = NEVER


class Fold:
    """The sum of a journal up to a place in it."""

    def __init__(self) -> None:
        self.key = ""
        self.created_ms = 0
        self.updated_ms = 0
        self.fence: int | None = None
        self.next_offset = 0
        self.generation = 0
        self.next_turn = 0
        self.retired_ms: int | None = None
        self.swept = False
        self.pieces: tuple[Piece, ...] = ()
        self.rewinds: list[Rewound] = []
        self.kept: list[Kept] = []
        self.marks = array("Q")  # addresses of events, in their order
        self.marked = array("Q")  # and the offsets of those
        self._numbers: dict[str, list[int]] = {}  # of `kept`, by id
        self._visible: list[tuple[int, int]] = []  # offset and number of what no rewind pruned, in order
        self._grows = False  # whether the next event lies behind the last piece

    @property
    def head(self) -> Head:
        """The head of the log."""
        return Head(self.fence, self.next_offset, self.generation, self.next_turn, self.retired_ms is not None)

    @property
    def latest(self) -> int | None:
        """The number of the checkpoint of the highest offset, then the latest insert (I5)."""
        return self._visible[-1][1] if self._visible else None

    def checkpoint(self, checkpoint_id: str, count: int, generation: int) -> int | None:
        """The number of the checkpoint of that id, of the first `count`, as it was seen in `generation`."""
        for number in reversed(self._numbers.get(checkpoint_id, ())):
            if number < count and self.kept[number].pruned > generation:
                return number
        return None

    def near(self, piece: Piece, offset: int, end: int) -> int:
        """An address at or before the event at `offset` of a piece, less than 64 KiB or one event away.

        `end` is where the journal ended for whoever asks: of a piece that was still written to then, the fold may have
        gone on to other events since, with marks of their own behind it.
        """
        high = max(piece.low, min(piece.high, bisect_left(self.marks, end)))
        number = bisect_right(self.marked, offset, piece.low, high) - 1
        return self.marks[max(number, piece.low)]

    def take(self, line: Line, address: int, length: int) -> str | None:
        """Add a line; says what is wrong where it cannot follow what came before."""
        if line.offset >= 0:
            return self._take_event(line, address)
        if line.fence is not None:
            self.fence = line.fence
        if line.next_turn is not None:
            self.next_turn = line.next_turn
        if line.rewind is not None:
            return self._take_rewind(line, line.rewind, address)
        if line.checkpoint is not None:
            self._keep(Kept(line.checkpoint.id, line.checkpoint.offset, address, length))
        if line.retired:
            self.retired_ms = line.at
        if line.swept:
            self._take_swept(line.swept)
        if line.state is not None:
            self._take_state(line.state)
        if line.begins:
            self.key, self.created_ms = line.key, line.created
        return None

    def _take_event(self, line: Line, address: int) -> str | None:
        offset, count = line.offset, line.gap or 1
        if offset != self.next_offset:
            return f"holds offset {offset} where {self.next_offset} must follow"
        if not self._grows:
            self.pieces = (*self.pieces, Piece(offset, NEVER, address, len(self.marks)))
            self._grows = True
            self._mark(offset, address)
        self.grow(offset, count, line.at, address)
        return None

    @property
    def grows(self) -> bool:
        """Whether the next event will lie right behind the last piece."""
        return self._grows

    def grow(self, offset: int, count: int, at_ms: int, address: int) -> None:
        """Add events behind the last piece."""
        if address - self.marks[-1] >= _MARK_BYTES:
            self._mark(offset, address)
        self.next_offset = offset + count
        self.updated_ms = at_ms

    def _mark(self, offset: int, address: int) -> None:
        self.marked.append(offset)
        self.marks.append(address)

    def _take_rewind(self, line: Line, generation: int, address: int) -> str | None:
        cut = line.cut
        if generation != self.generation + 1 or line.head != self.next_offset or cut > self.next_offset:
            return f"rewinds {line.head} to {cut} as generation {generation}, and {self.next_offset} is the head"
        kept, gone = self._parted(cut, address)
        rewind = Rewind(generation, cut, line.head, line.incarnation, line.at)
        self.rewinds.append(Rewound(rewind, address, gone))
        self.pieces, self._grows = kept, False
        self.next_offset, self.generation = cut, generation
        while self._visible and self._visible[-1][0] > cut:
            self.kept[self._visible.pop()[1]].pruned = generation
        return None

    def _parted(self, cut: int, end: int) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        """The pieces below `cut`, and those from it on, which all end before the address `end`."""
        marks, first = len(self.marks), len(self.pieces)
        gone: list[Piece] = []
        while first and self.pieces[first - 1].stop > cut:
            first -= 1
            piece = self.pieces[first]
            stop, high = min(piece.stop, self.next_offset), min(piece.high, marks)
            gone.append(piece._replace(stop=stop, high=high, end=min(piece.end, end)))
        kept = self.pieces[:first]
        if gone and gone[-1].start < cut:
            kept = (*kept, gone[-1].between(0, cut))
        return kept, tuple(piece.between(cut, NEVER) for piece in reversed(gone) if piece.stop > cut)

    def _keep(self, kept: Kept) -> None:
        if self.checkpoint(kept.id, len(self.kept), self.generation) is not None:
            return  # the first write of an id is what is stored (I5)
        entry = (kept.offset, len(self.kept))
        self._numbers.setdefault(kept.id, []).append(len(self.kept))
        self._visible.insert(bisect_right(self._visible, entry), entry)
        self.kept.append(kept)

    def _take_swept(self, generations: Iterable[int]) -> None:
        for generation in generations:
            if 0 < generation <= len(self.rewinds):
                rewound = self.rewinds[generation - 1]
                swept = msgspec.structs.replace(rewound.rewind, swept=True)
                self.rewinds[generation - 1] = Rewound(swept, rewound.address, rewound.pieces)

    def _take_state(self, state: FinalState) -> None:
        self.fence, self.generation, self.next_turn = state.fence, state.generation, state.next_turn
        self.retired_ms, self.swept = state.retired, True
        self.rewinds = [Rewound(rewind, 0, ()) for rewind in state.rewinds]
        self.pieces, self._grows, self.next_offset = (), False, 0

    def restore(self, kept: Iterable[Kept]) -> None:
        """Take over the checkpoints of a saved fold, and the end of its last piece."""
        for number, one in enumerate(kept):
            self.kept.append(one)
            self._numbers.setdefault(one.id, []).append(number)
            if one.pruned == NEVER:
                self._visible.append((one.offset, number))
        self._visible.sort()
        self._grows = bool(self.pieces) and self.pieces[-1].stop == NEVER
