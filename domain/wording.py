"""Words of messages that depend on a number."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: float, noun: str) -> str:
    """`1 event`, `2 events`, `0.5 seconds`."""
    return f"{count:.15g} {noun}" if count == 1 else f"{count:.15g} {noun}s"
