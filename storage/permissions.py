"""Whose a file is, for the messages of those who may not have it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["DENIALS", "PERMISSIONS_HINT", "denied", "owner_of"]

PERMISSIONS_HINT = "check the permissions of the file and its folder"

DENIALS = frozenset({errno.EACCES, errno.EPERM})
"""What the system answers to those who may not."""


def denied(path: str, doing: str = "open") -> str:
    """Why whoever runs us may not do that to the file at `path`; behind its path."""
    file = Path(path)
    whose, place = ("it", file) if os.path.lexists(file) else ("its folder", file.parent)
    return f"no permission to {doing} it; {whose} belongs to {owner_of(str(place))}"


def owner_of(path: str) -> str:
    """The name of the owner of the file at `path`, or as much as can be told."""
    try:
        return Path(path).owner()
    except KeyError:  # a user that has no name here
        return f"user {Path(path).stat().st_uid}"
    except OSError:
        return "somebody whose name cannot be looked up"
