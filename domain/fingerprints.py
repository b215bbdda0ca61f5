"""A set of texts that keeps eight bytes of each, to find what comes twice in a log of a million events."""

from __future__ import annotations

from array import array

__all__ = ["Fingerprints"]

_SMALLEST = 1024


class Fingerprints:
    """Which texts were added, by a hash of 64 bits each.

    16 to 32 bytes a text, where a set of strings takes over 100. Of a million texts, two that differ are taken for one
    with a probability of 3 in 100 million.
    """

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * _SMALLEST))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, text: str) -> bool:
        mark = _mark(text)
        return self._table[self._place(mark)] == mark

    def add(self, text: str) -> bool:
        """Add `text`; whether it is new."""
        mark = _mark(text)
        place = self._place(mark)
        if self._table[place]:
            return False
        self._table[place] = mark
        self._count += 1
        if 2 * self._count > len(self._table):
            self._grow()
        return True

    def _place(self, mark: int) -> int:
        """Where `mark` stands, or the free place where it would."""
        table = self._table
        last = len(table) - 1
        place = mark & last
        while table[place] not in {0, mark}:
            place = (place + 1) & last
        return place

    def _grow(self) -> None:
        old = self._table
        self._table = array("Q", bytes(8 * 2 * len(old)))
        for mark in old:
            if mark:
                self._table[self._place(mark)] = mark


def _mark(text: str) -> int:
    return hash(text) & 0xFFFF_FFFF_FFFF_FFFF or 1  # 0 is a free place
