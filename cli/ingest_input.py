"""What `incarnate ingest` reads: a file, a session folder or a pipe, and whose records it gives."""

from __future__ import annotations

import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from incarnate.actors.ingest_files import NOTHING, open_session, sniff_stream
from incarnate.actors.ingest_source import StreamSource, decoder_of
from incarnate.cli.errors import Failure, UsageFailure
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.dialects.sniffing import FOREIGN, NO_RECORD
from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from incarnate.actors.ingest_source import Source
    from incarnate.domain.dialects.base import Dialect

__all__ = ["Input", "Ticker", "open_input"]


class Input(NamedTuple):
    """What is read, whose records, and which session; `size` is None for what cannot be read a second time."""

    source: Source
    dialect: Dialect
    size: int | None
    session: str | None


class Ticker:
    """Passes on how many bytes were dealt with, once somebody wants to know."""

    def __init__(self) -> None:
        self.told: Callable[[int], object] | None = None

    def __call__(self, size: int) -> None:
        """So many bytes more."""
        if self.told is not None:
            self.told(size)


@contextmanager
def open_input(file: str | None, harness: str | None, session: str | None, ticker: Ticker) -> Generator[Input]:
    """What FILE names: standard input for none or `-`."""
    dialects = list(DIALECTS.values()) if harness is None else [find_dialect(harness)]
    path = None if file in {None, "-"} else Path(str(file))
    try:
        if path is None:
            if sys.stdin.isatty():
                raise UsageFailure("nothing to ingest", "name a FILE, or pipe the harness's output in")
            yield _piped(sys.stdin.buffer, dialects, session, ticker)
        elif path.is_dir() or stat.S_ISREG(path.stat().st_mode):
            with open_session(path, dialects, session=session, on_line=ticker) as opened:
                yield Input(opened.source, opened.dialect, opened.size, opened.session)
        else:
            with path.open("rb") as stream:
                yield _piped(stream, dialects, session, ticker)
    except DialectError as error:
        raise _unreadable("standard input" if path is None else str(file), path, error.reason) from error


def _unreadable(name: str, path: Path | None, reason: str) -> Failure:
    """Why nobody's records were found; to name a harness helps where they may be those of several alone."""
    if reason == NOTHING or (path is not None and _is_empty(path)):
        return Failure(f"{name} is empty", "run it again once the harness has written something, or check the path")
    helped = reason not in {NO_RECORD, FOREIGN}
    unhelped = "check what it is: incarnate harnesses lists the harnesses whose records are read"
    return Failure(f"{name}: {reason}", "name whose they are with --harness" if helped else unhelped)


def _is_empty(path: Path) -> bool:
    """Whether there is not a byte in this file, or not a file in this folder."""
    if path.is_dir():
        return not any(below.is_file() for below in path.rglob("*"))
    return path.is_file() and not path.stat().st_size


def _piped(stream: BinaryIO, dialects: list[Dialect], session: str | None, ticker: Ticker) -> Input:
    dialect, rejoined = sniff_stream(stream, dialects)
    return Input(StreamSource(rejoined, dialect.likeness, ticker, decode=decoder_of(dialect)), dialect, None, session)
