"""`incarnate export`: a log in the forms that others read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from incarnate.actors.export import export as export_log
from incarnate.cli.choices import one_of
from incarnate.cli.export_page import FORMS, Look, look_options, looked_at
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.output import written_whole
from incarnate.cli.places import spare_the_store
from incarnate.cli.text import make_console, say, write_document, write_json, write_json_array, write_json_lines
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from incarnate.actors.export import Export, ExportFormat
    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.exported import Exported

__all__ = ["export"]

_FORMATS: tuple[ExportFormat, ...] = ("transcript", "canonical", "openai", "anthropic")


@click.command()
@key_argument
@click.option("--format", "form", required=True, type=one_of((*_FORMATS, *FORMS)), help="The form.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write into FILE, whole or not at all, instead of standard output.",
)
@look_options
@store_option
@json_option
def export(key: ActivationKey, form: str, output: Path | None, look: Look, store: str | None, *, as_json: bool) -> None:
    """Write KEY in a form that others read.

    transcript: the rows of a transcript file. canonical: the events, as replay prints them and import reads them.
    openai: the messages of a chat completion. anthropic: system and messages of a request. html: one page that shows
    the session as incarnate studio does and asks nothing of anybody. svg: its timeline as a picture.

    What a form has no place for is counted and told. With --json the lines are one array, or, with -o, the report is
    JSON.
    """
    look.check(form)
    with open_system(store) as system:
        known_head(system, key)
        if output is not None:
            spare_the_store(output, system.url)
        if form in FORMS:
            written = _write_page(looked_at(store, key, form, look), output)
        else:
            written = _write_lines(export_log(system, key, cast("ExportFormat", form)), form, output, as_json=as_json)
    left_out = dict(sorted(written.left_out.items()))
    if output is None:
        _tell(make_console(stderr=True), left_out)
    elif as_json:
        size = {written.unit + "s": written.size}
        write_json({"key": str(key), "format": form, "file": str(output), **size, "leftOut": left_out})
    else:
        console = make_console()
        say(console, f"{output}: {counted(written.size, written.unit)}")
        _tell(console, left_out)


class _Written(NamedTuple):
    size: int
    unit: str
    left_out: Counter[str]


def _write_page(page: Exported, output: Path | None) -> _Written:
    if output is None:
        write_document(page.pieces)
    else:
        with written_whole(output) as file:
            file.writelines(page.pieces)
    return _Written(page.size, "byte", page.left_out)


def _write_lines(exported: Export, form: str, output: Path | None, *, as_json: bool) -> _Written:
    lines = _Counted(exported.lines)
    if output is not None:
        with written_whole(output) as file:
            file.writelines(line + b"\n" for line in lines)
    elif as_json and form in {"transcript", "canonical"}:
        write_json_array(lines)
    else:
        write_json_lines(lines)
    return _Written(lines.count, "line", exported.left_out)


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
