"""`incarnate ingest`: a harness's output into a log."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from incarnate.actors.ingest import ingest as ingest_records
from incarnate.cli.errors import EXIT_INCOMPLETE, Failure, UsageFailure
from incarnate.cli.ingested import NOTHING_HINT, nothing_ingested, print_report
from incarnate.cli.options import KEY, json_option, open_system, store_option
from incarnate.cli.repository import git_head
from incarnate.cli.text import make_console, printable, write_json
from incarnate.domain.dialects.registry import DIALECTS, find_dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from incarnate.domain.keys import ActivationKey

__all__ = ["ingest"]


@click.command()
@click.option("--harness", required=True, type=click.Choice(sorted(DIALECTS)), help="Whose records they are.")
@click.option("--key", required=True, type=KEY, help="The activation.")
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    help="What the harness was asked, for those that do not print it; once for each turn of the file.",
)
@click.option("--ended", is_flag=True, help="The harness is dead: append what it left unfinished too, as for a pipe.")
@click.option(
    "--checkpoint-every",
    type=click.Choice(["turn"]),
    help="Make a checkpoint at each turn end, and where a session begins.",
)
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Checkpoints name the git head of this folder; - unless given.",
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True))
@store_option
@json_option
def ingest(
    *,
    harness: str,
    key: ActivationKey,
    prompts: tuple[str, ...],
    ended: bool,
    checkpoint_every: str | None,
    repo: Path | None,
    file: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Append a harness's records to a log.

    The activation is claimed, and the records of FILE are appended as they arrive.

    A second run over the same file skips what the log already holds and goes on from there, so it may be killed at
    any moment and run again; a file that has grown is continued. Where file and log part, it is refused with the
    line and nothing is appended; a file that holds nothing of the harness is refused, and claims nothing. Standard
    input (- or a pipe) is appended at the head.

    Damaged records are listed with their lines and the rest goes on; the exit code is then 3.
    """
    if repo is not None and checkpoint_every is None:
        raise UsageFailure("--repo is for checkpoints", "add --checkpoint-every turn")
    commit_sha = None if checkpoint_every is None else _commit(repo)
    with _stream(file) as (stream, size), open_system(store, read_only=False) as system, _progress(size) as on_line:
        report = ingest_records(
            system,
            key,
            find_dialect(harness),
            stream,
            at_head=size is None,
            prompts=prompts,
            ended=ended or size is None,
            commit_sha=commit_sha,
            on_line=on_line,
        )
    if report.incarnation is None:
        raise Failure(nothing_ingested(report, str(file)), NOTHING_HINT)
    if as_json:
        write_json(report)
    else:
        print_report(report)
    if report.barren or not report.lines:
        click.echo(f"Warning: {printable(nothing_ingested(report, 'the pipe'))}\nTry: {NOTHING_HINT}", err=True)
    if not report.complete:
        raise click.exceptions.Exit(EXIT_INCOMPLETE)


def _commit(repo: Path | None) -> Callable[[], str]:
    if repo is None:
        return lambda: "-"
    git_head(repo)  # refused before anything is claimed
    return lambda: git_head(repo)


@contextmanager
def _stream(file: str | None) -> Generator[tuple[BinaryIO, int | None]]:
    """The stream to read and its size, None for one that cannot be read a second time."""
    if file is None and sys.stdin.isatty():
        raise UsageFailure("nothing to ingest", "name a FILE, or pipe the harness's output in")
    if file in {None, "-"}:
        yield sys.stdin.buffer, None
        return
    with Path(str(file)).open("rb") as opened:
        state = os.fstat(opened.fileno())
        yield opened, state.st_size if stat.S_ISREG(state.st_mode) else None


def _progress(size: int | None) -> AbstractContextManager[Callable[[int], object] | None]:
    if size is None or not sys.stderr.isatty():
        return nullcontext()
    return _bar(size)


@contextmanager
def _bar(size: int) -> Generator[Callable[[int], object]]:
    columns = (TextColumn("ingest"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
        task = progress.add_task("ingest", total=size)
        yield lambda bytes_read: progress.advance(task, bytes_read)
