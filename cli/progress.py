"""The progress of a file on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from incarnate.cli.text import make_console

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

__all__ = ["progress"]


def progress(size: int | None) -> AbstractContextManager[Callable[[int], object] | None]:
    """A bar on standard error, told the bytes that were read; None where nobody looks or nothing is known."""
    if not size or not sys.stderr.isatty():
        return nullcontext()
    return _bar(size)


@contextmanager
def _bar(size: int) -> Generator[Callable[[int], object]]:
    columns = (TextColumn("ingest"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
        task = progress.add_task("ingest", total=size)
        yield lambda bytes_read: progress.advance(task, bytes_read)
