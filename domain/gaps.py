"""Whether all that was read of a log is there: somebody may have deleted a row, or lost a page of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.errors import LogCorruptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey

__all__ = ["check_whole"]


def check_whole(key: ActivationKey, events: Sequence[AppendedEvent], start: int, stop: int) -> None:
    """See that `events` are those of `key` from `start` on, each of them (I1), and reach `stop` at least.

    Raises:
        LogCorruptionError: one is missing.
    """
    end = start + len(events)
    if end >= stop and (not events or events[-1].offset == end - 1):
        return
    missing = next((offset for offset, event in enumerate(events, start) if event.offset != offset), end)
    error = LogCorruptionError(str(key), f"the event at offset {missing} is missing")
    error.hint = "incarnate doctor tells all that is missing, and how to go on"
    raise error
