"""The files of the page: those that stand in its folder, by their exact names, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGE", "File", "page_file"]

PAGE = Path(__file__).with_name("page")

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


class File(NamedTuple):
    """A file's bytes and their type."""

    data: bytes
    content_type: str


def page_file(name: str, folder: Path = PAGE) -> File | None:
    """The file of that name below the folder; None where none of its own files is called so."""
    # The name is compared and never joined to a path: no way of writing it leads out of the folder.
    for path in folder.rglob("*"):
        if path.relative_to(folder).as_posix() == name and path.suffix in _TYPES and path.is_file():
            return File(path.read_bytes(), _TYPES[path.suffix])
    return None
