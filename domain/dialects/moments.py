"""When a record was written, in whatever way its harness says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

__all__ = ["moment"]

_NAMES = ("timestamp", "time", "created_at")
_SECONDS_UNTIL = 1e11  # seconds of the year 5138, milliseconds of 1973


def moment(record: Any) -> float | None:
    """Seconds since the epoch, from a text in ISO 8601 or a number of seconds or milliseconds; None without one."""
    if not isinstance(record, dict):
        return None
    for name in _NAMES:
        found = _seconds(record.get(name))
        if found is not None:
            return found
    return None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) / 1000 if value > _SECONDS_UNTIL else float(value)
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
