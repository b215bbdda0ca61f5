"""`incarnate repair`: a damaged transcript file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from incarnate.cli.options import json_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.wording import counted
from incarnate.storage.transcript_repair import repair as repair_transcript

if TYPE_CHECKING:
    from incarnate.storage.transcript_repair import Repair

__all__ = ["repair"]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=False, path_type=Path))
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def repair(file: Path, *, dry_run: bool, as_json: bool) -> None:
    """Keep every valid record of the transcript FILE.

    All the rest is moved into a file beside it, and each piece is told with its line and byte. Records keep their
    order and their bytes; what stood between two of them is lost to the session, which is why nothing but this
    command takes it out. A file without damage is not touched.
    """
    done = repair_transcript(file, dry_run=dry_run)
    if as_json:
        write_json(_fields(done, dry_run=dry_run))
    else:
        _print(done, dry_run=dry_run)


def _fields(done: Repair, *, dry_run: bool) -> dict[str, object]:
    return {
        "path": done.path,
        "dryRun": dry_run,
        "rows": done.rows,
        "removed": [{"line": cut.line, "offset": cut.offset, "length": cut.length} for cut in done.removed],
        "saved": done.saved,
    }


def _print(done: Repair, *, dry_run: bool) -> None:
    console = make_console()
    removed = "would be removed" if dry_run else "removed"
    for cut in done.removed:
        say(console, f"line {cut.line}, byte {cut.offset}: {counted(cut.length, 'byte')} {removed}")
    if not done.removed and not done.rows:
        say(console, f"{done.path} is empty: there is nothing to repair")
    elif not done.removed:
        say(console, f"{done.path}: {counted(done.rows, 'record')}, no damage")
    elif dry_run:
        say(console, f"{done.path}: {counted(done.rows, 'record')} would be kept")
    else:
        say(console, f"{done.path}: {counted(done.rows, 'record')} kept; what was removed is in {done.saved}")
