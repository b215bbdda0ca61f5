"""`incarnate doctor`: what is wrong with a store, and how large it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from incarnate.cli.diagnosed import Sums, fields_of
from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.options import json_option, open_system, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.errors import LogCorruptionError
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.diagnosis import Diagnosis, Finding

__all__ = ["doctor"]

_STYLES = {"damage": "bold red", "warning": "yellow", "note": "dim"}
_MOST_STRETCHES = 8
_MISSING = "check the path: doctor reads a store that is there; incarnate ingest makes one"
_BROKEN = "copy it before anything else writes to it; then put it back from a backup, or try sqlite3 COPY .recover"


@click.command()
@click.argument("url", metavar="[STORE]", required=False)
@store_option
@json_option
def doctor(url: str | None, store: str | None, *, as_json: bool) -> None:
    """Read all that STORE holds, and say what is wrong with it.

    Gaps, records that cannot be read, who wrote what, what the fence does not cover, checkpoints above the head,
    doubled ids, calls without results, open turns, sizes; and what would mend it. It takes no lease and never writes,
    so it may run beside the writers. A damaged record does not hide those after it.

    Damage is what breaks a promise of the store: exit code 4. A warning is whole and odd: exit code 5. Notes are what
    every log of a running agent shows: exit code 0, as without any.
    """
    sums = Sums()
    documents: list[dict[str, object]] = []
    console = make_console()
    with _opened(_the_one(url, store)) as system:
        for found in system.examine():
            sums.add(found)
            if as_json:
                documents.append(fields_of(found))
            else:
                _print(console, found)
        if as_json:
            write_json({"store": system.url, "activations": documents, **sums.fields()})
        else:
            _print_sum(console, sums)
    if sums.exit_code:
        raise click.exceptions.Exit(sums.exit_code)


def _the_one(url: str | None, store: str | None) -> str | None:
    if url is None:
        return store
    if click.get_current_context().get_parameter_source("store") is ParameterSource.COMMANDLINE:
        raise UsageFailure("both STORE and --store name a store", "name one")
    return url  # whatever the environment says


def _opened(store: str | None) -> SessionSystem:
    try:
        return open_system(store, missing=_MISSING)
    except LogCorruptionError as error:  # of a file that is not even a database any more there is nothing to list
        raise Failure(str(error), _BROKEN if Path(error.place).is_file() else error.hint) from error


def _print(console: Console, found: Diagnosis) -> None:
    say(console, (str(found.key or "the store"), "bold"))
    if found.head is not None:
        fence = "no incarnation yet" if found.head.fence is None else f"incarnation {found.head.fence}"
        sizes = f"{counted(found.events, 'event')} of {counted(found.payload_bytes, 'byte')}"
        say(console, f"  {sizes}, {counted(found.checkpoints, 'checkpoint')}, {fence}")
    if found.rewinds:
        swept = f", {found.swept_rewinds} of them swept" if found.swept_rewinds else ""
        kept = f"{counted(found.superseded_events, 'event')} of {counted(found.superseded_bytes, 'byte')} superseded"
        say(console, f"  {counted(found.rewinds, 'rewind')}{swept}: {kept}")
    if len(found.history) > 1:
        first = [f"{one.start} up to {one.stop} by {one.incarnation}" for one in found.history[:_MOST_STRETCHES]]
        more = len(found.history) - len(first)
        say(console, f"  written: {', '.join(first)}{f', and {more} more stretches' if more else ''}")
    for finding in found.findings:
        _print_finding(console, finding)


def _print_finding(console: Console, finding: Finding) -> None:
    where = "" if finding.offset is None else f"offset {finding.offset}: "
    say(console, "  ", (finding.severity, _STYLES[finding.severity]), f"  {where}{finding.text}")
    if finding.repair:
        say(console, f"    Try: {finding.repair}")


def _print_sum(console: Console, sums: Sums) -> None:
    held = f"{counted(sums.events, 'event')} of {counted(sums.bytes, 'byte')}"
    kept = f"{counted(sums.superseded_events, 'event')} of {counted(sums.superseded_bytes, 'byte')} superseded"
    several = "1 activation" if sums.activations == 1 else f"{sums.activations} activations"
    say(console, f"{several}: {held}; {kept}")
    if sums.largest is not None and sums.activations > 1:
        say(console, f"the largest: {sums.largest[1]}, {counted(sums.largest[0], 'byte')}")
    counts = sums.counts
    say(console, f"found: damage {counts['damage']}, warnings {counts['warning']}, notes {counts['note']}")
