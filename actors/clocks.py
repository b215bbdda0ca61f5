"""What may be a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked"]

_YEAR_10000_MS = 253_402_300_800_000


def checked(clock: Callable[[], int]) -> Callable[[], int]:
    """`clock`, refusing times that a log could not show again: floats, as `time.time` gives, and far years.

    A clock that goes backwards is none of our business: offsets order a log, times only tell.
    """

    def now_ms() -> int:
        moment = clock()
        if type(moment) is not int or not 0 <= moment < _YEAR_10000_MS:
            raise OutOfRangeError("the clock's milliseconds", moment)
        return moment

    return now_ms
