"""Whose a file is, for the messages of those who may not have it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["PERMISSIONS_HINT", "owner_of"]

PERMISSIONS_HINT = "check the permissions of the file and its folder"


def owner_of(path: str) -> str:
    """The name of the owner of the file at `path`, or as much as can be told."""
    try:
        return Path(path).owner()
    except KeyError:  # a user that has no name here
        return f"user {Path(path).stat().st_uid}"
    except OSError:
        return "somebody whose name cannot be looked up"
