"""What to do about a store that could not be opened, in words of the shell."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.storage.paths import as_written
from incarnate.storage.permissions import PERMISSIONS_HINT

if TYPE_CHECKING:
    from incarnate.domain.errors import StoreFileError

__all__ = ["ANOTHER_STORE", "next_step"]

ANOTHER_STORE = "name another store with --store or INCARNATE_STORE"
_SQLITE = b"SQLite format 3\0"
_OVERWRITTEN = "check the path; if a store was there it was overwritten: put it back from a backup"


def next_step(error: StoreFileError, missing: str, *, own: bool) -> str:
    """What comes next; `missing` where there is nothing to read yet, `own` where it is the user's own store."""
    path = Path(error.path)
    if "read_only" in error.hint:  # the library's words for a program
        if "older" in error.reason and path.is_file():
            return "run incarnate ingest once, which brings it up to date"
        lost = "if it held sessions, put it back from a backup; else " if path.is_file() else ""
        return lost + missing
    if path.is_dir() and error.reason == "is a folder":
        return _in_place_of_a_folder(path)
    if path.is_file() and error.reason == "is no folder":
        return _in_place_of_a_file(path, error.hint)
    if error.reason == "is no SQLite database":
        return _OVERWRITTEN
    return f"{error.hint}; or {ANOTHER_STORE}" if own and error.hint == PERMISSIONS_HINT else error.hint


def _in_place_of_a_folder(path: Path) -> str:
    if (path / "incarnate.json").is_file():
        return f"did you mean jsonl:///{as_written(str(path))}?"
    return f"name a file in it, such as sqlite:///{as_written(str(path))}/sessions.db"


def _in_place_of_a_file(path: Path, otherwise: str) -> str:
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(_SQLITE)) == _SQLITE:
            return f"did you mean sqlite:///{as_written(str(path))}?"
    return otherwise
