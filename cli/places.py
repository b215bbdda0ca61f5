"""Where a store keeps what it holds, for what is written beside it, or over it by mistake."""

from __future__ import annotations

import os
from pathlib import Path

from incarnate.cli.errors import Failure
from incarnate.cli.options import default_store_file
from incarnate.storage.paths import path_of

__all__ = ["raw_folder", "spare_the_store"]


def _place_of(url: str) -> Path | None:
    """The file or folder of a store; None where it is on a server."""
    scheme, _, rest = url.partition("://")
    path = path_of(rest.partition("?")[0].partition("#")[0]).removeprefix("/").rstrip("/")
    return Path(path) if scheme.lower().rpartition("+")[2] in ("sqlite", "jsonl") and path else None


def raw_folder(store: str) -> Path:
    """Where the raw records of a store are kept: beside it, or with the user's own data where it is on a server."""
    place = _place_of(store)
    if place is None:
        return default_store_file().parent / "raw"
    return Path(f"{os.path.abspath(place)}.raw")  # noqa: PTH100 - as the stores do; `.` has no name of its own


def spare_the_store(output: Path, url: str) -> None:
    """Refuse an output that would stand in the place of the store that it is read from.

    Raises:
        Failure: it would.
    """
    place = _place_of(url)
    if place is None:
        return
    store, target = Path(os.path.realpath(place)), Path(os.path.realpath(output))  # resolve() fails at a link to itself
    is_folder = store.is_dir()
    own = {store} if is_folder else {store, Path(f"{store}-wal"), Path(f"{store}-shm")}
    if target in own or (is_folder and store in target.parents):
        raise Failure(f"{output} belongs to the store that is read", "name another file")
