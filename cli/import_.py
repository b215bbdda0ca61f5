"""`incarnate import`: a transcript or canonical events into a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from incarnate.actors.importing import import_log
from incarnate.cli.choices import one_of
from incarnate.cli.errors import EXIT_INCOMPLETE, UsageFailure
from incarnate.cli.options import KEY, json_option, open_system, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.actors.importing import ImportReport
    from incarnate.domain.imports import ImportFormat
    from incarnate.domain.keys import ActivationKey

__all__ = ["import_"]

_FORMATS: tuple[ImportFormat, ...] = ("transcript", "canonical")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=False, path_type=Path))
@click.option("--key", required=True, type=KEY, help="The activation.")
@click.option("--format", "form", type=one_of(_FORMATS), help="What FILE is; its first line tells unless given.")
@click.option("--append", is_flag=True, help="Put FILE behind what the log holds.")
@store_option
@json_option
def import_(
    file: Path, key: ActivationKey, form: ImportFormat | None, store: str | None, *, append: bool, as_json: bool
) -> None:
    """Put a transcript file, or canonical events, into a log.

    FILE is read and understood as a whole before the activation is claimed. A log that holds something else is
    refused, unless --append. A run that was killed is continued when it is run again, and a file that has grown too:
    what the log holds of it already is skipped.

    A torn end of FILE is left out and told; the exit code is then 3. A record that cannot be read in front of others
    is an error, and nothing is appended.
    """
    if not file.is_file():
        raise UsageFailure(f"{file} is no regular file, and is read more than once", "write it into a file first")
    with file.open("rb") as stream, open_system(store, read_only=False) as system:
        report = import_log(system, key, stream, form=form, append=append)
    if as_json:
        write_json(report)
    else:
        _print(report)
    if report.torn is not None:
        raise click.exceptions.Exit(EXIT_INCOMPLETE)


def _print(report: ImportReport) -> None:
    claimed = "not claimed" if report.incarnation is None else f"incarnation {report.incarnation}"
    rows: list[tuple[str, Any]] = [
        ("activation", f"{report.key}, {claimed}, next offset {report.next_offset}"),
        ("file", f"{report.format}, {counted(report.events, 'event')}"),
        ("appended", counted(report.appended, "event")),
        ("skipped", f"{counted(report.skipped, 'event')} that the log already held"),
    ]
    if report.beyond:
        rows.append(("beyond", f"{counted(report.beyond, 'event')} that the log holds after the last one here"))
    if report.torn is not None:
        torn = report.torn
        rows.append(("torn", f"line {torn.line}, byte {torn.offset}, to the end was left out: {torn.reason}"))
    console = make_console()
    for name, told in rows:
        say(console, (f"{name:<13}", "bold"), str(told))
