"""`incarnate sweep`: remove what was retired or superseded long ago."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

from incarnate.cli.errors import UsageFailure
from incarnate.cli.existing import open_existing
from incarnate.cli.options import json_option, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.wording import counted

__all__ = ["sweep"]

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_AGE = re.compile(rf"([0-9]{{1,6}})([{''.join(_UNITS)}])", re.ASCII)


class _AgeType(click.ParamType[timedelta]):
    name = "AGE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:  # noqa: ARG002 - click's signature
        if isinstance(value, timedelta):
            return value
        found = _AGE.fullmatch(value)
        if found is None:
            raise UsageFailure(f"{value!r} is no age", "write a number and one of w, d, h, m and s, such as 30d")
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.command()
@click.option(
    "--older-than",
    required=True,
    type=_AgeType(),
    help="How long ago it was retired or superseded: a number and w, d, h, m or s, such as 30d.",
)
@click.option("--vacuum", is_flag=True, help="Then give the room back to the file system; writers wait meanwhile.")
@store_option
@json_option
def sweep(older_than: timedelta, store: str | None, *, vacuum: bool, as_json: bool) -> None:
    """Remove old retired activations and old archives.

    The events of activations that were retired, and those that a rewind superseded, longer ago than --older-than
    are removed for ever. Nothing else is. A key that was swept cannot be used again.
    """
    with open_existing(store) as system:
        swept = system.sweep(older_than)
        if vacuum:
            system.vacuum()
    if as_json:
        write_json(swept)
        return
    removed = (
        f"{counted(swept.activations, 'retired activation')} and the archives of {counted(swept.rewinds, 'rewind')}"
    )
    say(make_console(), f"removed {removed}: {counted(swept.events, 'event')}")
