"""How two ways of doing the same thing are compared, and what a line of the table says."""

import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Comparison", "Line", "Settings", "compare"]

Round = Callable[[], float]
"""Do the work once; the seconds that it took, without what had to be prepared."""


class Settings(NamedTuple):
    """Where files go, and whether less may be measured to be done sooner."""

    folder: Path
    quick: bool

    def rounds(self, count: int) -> int:
        """`count` rounds, fewer when it should be quick."""
        return max(3, count // 4) if self.quick else count


class Comparison(NamedTuple):
    """Median seconds of a round, and the median of the rounds' own ratios (above 1: ours is faster)."""

    ours: float
    rival: float
    ratio: float


class Line(NamedTuple):
    """One line of the table. `least` or `most` is what its ratio may be; neither: for information.

    Without a ratio it could not be measured here, and `rival` says why.
    """

    name: str
    ours: str
    rival: str
    ratio: float | None
    least: float | None = None
    most: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the limit is missed."""
        if self.ratio is None:
            return False
        below = self.least is not None and self.ratio < self.least
        return below or (self.most is not None and self.ratio > self.most)


def compare(ours: Round, rival: Round, rounds: int) -> Comparison:
    """Rounds in turn, ours first in every other one, after one of each to warm up.

    The machine's speed drifts by more than some limits allow, so only neighbours in time are compared.
    """
    ours()
    rival()
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        os.sync()  # neither pays for what the other left to be written
        if number % 2:
            theirs, own = rival(), ours()
        else:
            own, theirs = ours(), rival()
        pairs.append((own, theirs))
    return Comparison(
        statistics.median([own for own, _ in pairs]),
        statistics.median([theirs for _, theirs in pairs]),
        statistics.median([theirs / own for own, theirs in pairs]),
    )
