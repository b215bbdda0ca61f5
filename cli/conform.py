"""`incarnate conform`: whether a store behaves as the reference was recorded to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from incarnate.actors.conformance import replay_vectors
from incarnate.cli.choices import one_of
from incarnate.cli.errors import EXIT_FAILED, Failure
from incarnate.cli.options import json_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.storage.locate import open_store

if TYPE_CHECKING:
    from incarnate.actors.conformance import LineVerdict
    from incarnate.actors.dispatchers import DispatcherName

__all__ = ["conform"]

_OUTCOMES = ("passed", "failed", "uncovered")
_MOST_LISTED = 20


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--store", metavar="URL", default="memory://", show_default=True, help="The store to try.")
@click.option(
    "--dispatcher",
    type=one_of(["calling", "thread"]),
    default="calling",
    show_default=True,
    help="The dispatcher.",
)
@json_option
def conform(folder: Path, store: str, dispatcher: DispatcherName, *, as_json: bool) -> None:
    """Replay recorded behaviour and count what holds.

    DIR holds the vector files; lines and files that this version does not know are counted as uncovered. Each trace
    runs on a fresh key. Your own store is not used: what is tried is what --store names.
    """
    open_store(store).close()  # one that cannot be opened is one error, not one for each trace
    counts: dict[str, Counter[str]] = {}
    failures: list[LineVerdict] = []
    for checked in replay_vectors(folder, store, dispatcher):
        counts.setdefault(checked.file, Counter())[checked.verdict.outcome] += 1
        if checked.verdict.outcome == "failed" and len(failures) < _MOST_LISTED:
            failures.append(checked)
    if not counts:
        raise Failure(f"{folder} holds no vectors", "name the folder that holds events.jsonl and its kin")
    total = sum(counts.values(), Counter[str]())
    if as_json:
        write_json({"files": {name: _fields(count) for name, count in counts.items()}, **_fields(total)})
    else:
        _print(counts, total, failures)
    if total["failed"]:
        raise click.exceptions.Exit(EXIT_FAILED)


def _fields(count: Counter[str]) -> dict[str, int]:
    return {outcome: count[outcome] for outcome in _OUTCOMES}


def _print(counts: dict[str, Counter[str]], total: Counter[str], failures: list[LineVerdict]) -> None:
    console = make_console()
    say(console, ("".join([f"{outcome.upper():>11}" for outcome in _OUTCOMES]) + "  FILE", "bold"))
    for name, count in [*counts.items(), ("all", total)]:
        say(console, "".join([f"{count[outcome]:>11}" for outcome in _OUTCOMES]), f"  {name}")
    for file, line, verdict in failures:
        say(console, (f"{file}, line {line}: ", "red"), verdict.reason)
