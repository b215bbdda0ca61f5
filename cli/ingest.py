"""`incarnate ingest`: a harness's output into a log."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from incarnate.actors.ingest import ingest_source
from incarnate.actors.raw_records import RawRecords
from incarnate.cli.choices import one_of
from incarnate.cli.errors import EXIT_INCOMPLETE, Failure, UsageFailure
from incarnate.cli.ingest_input import Ticker, open_input
from incarnate.cli.ingested import NOTHING_HINT, miscounted, nothing_ingested, print_report
from incarnate.cli.options import KEY, json_option, open_system, store_option
from incarnate.cli.places import raw_folder
from incarnate.cli.progress import progress
from incarnate.cli.repository import git_head
from incarnate.cli.text import printable, write_json
from incarnate.domain.dialects.registry import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from incarnate.actors.ingest_report import IngestReport
    from incarnate.actors.system import SessionSystem
    from incarnate.cli.ingest_input import Input
    from incarnate.domain.keys import ActivationKey

__all__ = ["ingest"]


@click.command()
@click.option(
    "--harness", type=one_of(sorted(DIALECTS)), help="Whose records they are; told by the records unless given."
)
@click.option("--key", required=True, type=KEY, help="The activation.")
@click.option(
    "--session",
    help="The harness's session: which one of a folder, by the beginning of its id; else what no record tells.",
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    help="What the harness was asked, for those that do not print it; once for each turn of the file.",
)
@click.option("--ended", is_flag=True, help="The harness is dead: append what it left unfinished too, as for a pipe.")
@click.option("--keep-raw", is_flag=True, help="Keep what maps to nothing beside the store, as the harness wrote it.")
@click.option(
    "--checkpoint-every",
    type=one_of(["turn"]),
    help="Make a checkpoint at each turn end, and where a session begins.",
)
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Checkpoints name the git head of this folder; - unless given.",
)
@click.argument("file", required=False, type=click.Path(exists=True, readable=False, allow_dash=True))
@store_option
@json_option
def ingest(
    *,
    harness: str | None,
    key: ActivationKey,
    session: str | None,
    prompts: tuple[str, ...],
    ended: bool,
    keep_raw: bool,
    checkpoint_every: str | None,
    repo: Path | None,
    file: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Append a harness's records to a log.

    The activation is claimed, and the records of FILE are appended as they arrive. FILE may also be a folder with a
    harness's sessions below it: the files of their sub-agents are read with them.

    A second run over the same file skips what the log already holds and goes on from there, so it may be killed at
    any moment and run again; a file that has grown is continued. Where file and log part, it is refused with the
    line and nothing is appended; a file that holds nothing of the harness is refused, and claims nothing. Standard
    input (- or a pipe) is appended at the head.

    Damaged records are mended, or listed with their lines, and the rest goes on; with lines that are lost the exit
    code is 3.
    """
    if repo is not None and checkpoint_every is None:
        raise UsageFailure("--repo is for checkpoints", "add --checkpoint-every turn")
    commit_sha = None if checkpoint_every is None else _commit(repo)
    ticker = Ticker()
    with (
        open_input(file, harness, session, ticker) as read,
        open_system(store, read_only=False) as system,
        _raw(system, key, read, keep=keep_raw) as raw,
        progress(read.size) as ticker.told,
    ):
        report = ingest_source(
            system,
            key,
            read.dialect,
            read.source,
            session_id=read.session,
            at_head=read.size is None,
            prompts=prompts,
            ended=ended or read.size is None,
            commit_sha=commit_sha,
            raw=raw,
        )
    _tell(report, file, as_json=as_json)


def _tell(report: IngestReport, file: str | None, *, as_json: bool) -> None:
    if report.incarnation is None:
        raise Failure(nothing_ingested(report, str(file)), NOTHING_HINT)
    if as_json:
        write_json(report)
    else:
        print_report(report)
    if report.barren or not report.lines:
        click.echo(f"Warning: {printable(nothing_ingested(report, 'the pipe'))}\nTry: {NOTHING_HINT}", err=True)
    elif miscount := miscounted(report):
        click.echo(f"Warning: {miscount}\nTry: give --prompt once for each turn, --prompt '' for one without", err=True)
    if not report.complete:
        raise click.exceptions.Exit(EXIT_INCOMPLETE)


def _raw(
    system: SessionSystem, key: ActivationKey, read: Input, *, keep: bool
) -> AbstractContextManager[RawRecords | None]:
    if not keep:
        return nullcontext()
    return RawRecords(raw_folder(system.url), key, read.dialect.name, again=read.size is None)


def _commit(repo: Path | None) -> Callable[[], str]:
    if repo is None:
        return lambda: "-"
    git_head(repo)  # refused before anything is claimed
    return lambda: git_head(repo)
