"""`incarnate export`: a log in the forms that others read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from incarnate.actors.export import export as export_log
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.output import written_whole
from incarnate.cli.text import make_console, say, write_json, write_json_array, write_json_lines
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from incarnate.actors.export import ExportFormat
    from incarnate.domain.keys import ActivationKey

__all__ = ["export"]

_FORMATS: tuple[ExportFormat, ...] = ("transcript", "canonical", "openai", "anthropic")


@click.command()
@key_argument
@click.option("--format", "form", required=True, type=click.Choice(_FORMATS), help="The form.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write into FILE, whole or not at all, instead of standard output.",
)
@store_option
@json_option
def export(key: ActivationKey, form: ExportFormat, output: Path | None, store: str | None, *, as_json: bool) -> None:
    """Write KEY in a form that others read.

    transcript: the rows of a transcript file. canonical: the events, as replay prints them and import reads them.
    openai: the messages of a chat completion. anthropic: system and messages of a request.

    What a form has no place for is counted and told. With --json the lines are one array, or, with -o, the report is
    JSON.
    """
    with open_system(store) as system:
        known_head(system, key)
        exported = export_log(system, key, form)
        lines = _Counted(exported.lines)
        if output is not None:
            with written_whole(output) as file:
                file.writelines(line + b"\n" for line in lines)
        elif as_json and form in {"transcript", "canonical"}:
            write_json_array(lines)
        else:
            write_json_lines(lines)
    left_out = dict(sorted(exported.left_out.items()))
    if output is None:
        _tell(make_console(stderr=True), left_out)
    elif as_json:
        write_json({"key": str(key), "format": form, "file": str(output), "lines": lines.count, "leftOut": left_out})
    else:
        console = make_console()
        say(console, f"{output}: {counted(lines.count, 'line')}")
        _tell(console, left_out)


def _tell(console: Console, left_out: dict[str, int]) -> None:
    for kind, count in left_out.items():
        say(console, f"left out: {count} {kind}")


class _Counted:
    """Lines, and how many of them there were."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.count += 1
            yield line
