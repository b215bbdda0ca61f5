"""Stores in which a simulation would find what an earlier one wrote."""

from __future__ import annotations

__all__ = ["is_kept"]

_KEEPING = ("sqlite://", "jsonl://", "postgresql://", "postgres://")


def is_kept(url: str) -> bool:
    """Whether the store of `url` holds what an earlier run wrote, which the next would take for a broken promise."""
    return url.lower().startswith(_KEEPING) and "{folder}" not in url
