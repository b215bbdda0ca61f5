"""The table of back ends; with the contract's own driver of one log, re-exported for all other tests."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from incarnate.storage.contract.log import KEY, OTHER, Log, checkpoint, decided, note, notes, perform, soon
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from tests.support.postgres_server import postgres_url

__all__ = [
    "BACKENDS",
    "KEY",
    "OTHER",
    "Backend",
    "Log",
    "checkpoint",
    "decided",
    "jsonl_url",
    "note",
    "notes",
    "perform",
    "raw",
    "soon",
    "sqlite_url",
]


class Backend(NamedTuple):
    """A row of the table: the URL of a store in `folder`; `keeps` if a second opening finds what the first wrote."""

    url: Callable[[Path], str]
    keeps: bool

    def open(self, folder: Path) -> Store:
        return open_store(self.url(folder))


def sqlite_url(folder: Path, options: str = "") -> str:
    return f"sqlite:///{folder}/sessions.db{options}"


def raw(path: Path) -> "closing[sqlite3.Connection]":
    """SQLite's own connection to a file, which waits for nobody."""
    return closing(sqlite3.connect(path, timeout=0, isolation_level=None))


def jsonl_url(folder: Path, options: str = "") -> str:
    return f"jsonl:///{folder}/journals{options}"


BACKENDS = {
    "memory": Backend(lambda _: "memory://", keeps=False),
    "sqlite": Backend(sqlite_url, keeps=True),
    "sqlite-process": Backend(lambda folder: sqlite_url(folder, "?durability=process"), keeps=True),
    "jsonl": Backend(jsonl_url, keeps=True),
    "jsonl-process": Backend(lambda folder: jsonl_url(folder, "?durability=process&segment=2000"), keeps=True),
    "postgres": Backend(postgres_url, keeps=True),
    "postgres-process": Backend(lambda folder: postgres_url(folder, "&durability=process"), keeps=True),
}
