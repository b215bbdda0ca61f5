"""Rows of bars: what overlaps lies in different rows, and what is too narrow to be seen alone is drawn as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Run", "merged", "packed", "thinned"]

T = TypeVar("T")

_NARROW = 4.0  # pixels: what is at least as wide is drawn alone
_GAP = 1.5


class Run(msgspec.Struct, Generic[T]):
    """One or more things between two places in pixels; several are drawn as one bar."""

    left: float
    right: float
    members: list[T]

    @property
    def is_single(self) -> bool:
        """It is one thing, drawn for itself."""
        return len(self.members) == 1


def packed(runs: Iterable[Run[T]], most: int) -> list[list[Run[T]]]:
    """The runs, sorted by their left ends, in as few rows as keep them apart; in the last of `most` rows they overlap.

    What is shorter than a pixel may share its place: there `merged` makes one of them.
    """
    rows: list[list[Run[T]]] = []
    ends: list[float] = []
    for run in runs:
        for row, end in enumerate(ends):
            if end <= run.left + 1.0:
                rows[row].append(run)
                ends[row] = run.right
                break
        else:
            if len(rows) < most:
                rows.append([run])
                ends.append(run.right)
            else:
                rows[-1].append(run)
                ends[-1] = max(ends[-1], run.right)
    return rows


def merged(row: Sequence[Run[T]], least: float = 1.0) -> list[Run[T]]:
    """The row with neighbours that are narrow, or that overlap, as one; `least` times as coarse as usual."""
    found: list[Run[T]] = []
    narrow, gap = _NARROW * least, _GAP * least
    for run in row:
        if found:
            last = found[-1]
            both_narrow = run.right - run.left < narrow and (not last.is_single or last.right - last.left < narrow)
            if (both_narrow and run.left - last.right < gap) or run.left < last.right - 1.0:
                last.right = max(last.right, run.right)
                last.members.extend(run.members)
                continue
        found.append(Run(run.left, run.right, list(run.members)))
    return found


def thinned(row: Sequence[Run[T]], most: int) -> list[Run[T]]:
    """The row in at most `most` bars, merged the more coarsely the more there are."""
    least = 1.0
    found = merged(row)
    while len(found) > most:
        least *= 2
        found = merged(found, least)
    return found
