"""Where a store keeps what it holds, for what is written beside it, or over it by mistake."""

from __future__ import annotations

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
    return default_store_file().parent / "raw" if place is None else place.with_name(f"{place.name}.raw")


def spare_the_store(output: Path, url: str) -> None:
    """Refuse an output that would stand in the place of the store that it is read from.

    Raises:
        Failure: it would.
    """
    place = _place_of(url)
    if place is None:
        return
    store, target = place.resolve(), output.resolve()
    own = {store, *(store.with_name(f"{store.name}{end}") for end in ("-wal", "-shm"))}
    if target in own or (store.is_dir() and store in target.parents):
        raise Failure(f"{output} belongs to the store that is read", "name another file")
