"""Whether the time of a folder tells that nothing has changed in it."""

from __future__ import annotations

import time

__all__ = ["is_settled"]

_TICK_NS = 20_000_000
_LONG_TICK_NS = 2_500_000_000
_SECOND_NS = 1_000_000_000


def is_settled(stamp: int) -> bool:
    """Whether any further change of a folder would give it another time than `stamp`.

    The clock of a file system goes in steps: of at most 10 milliseconds, or of one or two seconds on old ones, whose
    times are whole seconds.
    """
    step = _TICK_NS if stamp % _SECOND_NS else _LONG_TICK_NS
    return time.time_ns() - stamp > step
