"""How a process ended, in words."""

from __future__ import annotations

import signal

__all__ = ["status_words"]


def status_words(status: int | None) -> str:
    """`ended with status 1`, `was killed by SIGKILL`: a status is negative for a signal, as `Running.poll` has it."""
    if status is None or status >= 0:
        return f"ended with status {'unknown' if status is None else status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # those of real time have no names
        return f"was killed by signal {-status}"
