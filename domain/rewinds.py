"""What a rewind superseded."""

from __future__ import annotations

import msgspec

__all__ = ["Rewind"]


class Rewind(msgspec.Struct, frozen=True, gc=False):
    """One rewind of a log (I4).

    It made `generation`, superseded the events from `cut` up to, not including, `head`, and was done by `incarnation`
    at `at_ms` (milliseconds, UTC). `swept`: the events were removed since; that they were cut is kept for ever, since
    a view that comes back late must know.
    """

    generation: int
    cut: int
    head: int
    incarnation: int
    at_ms: int
    swept: bool = False
