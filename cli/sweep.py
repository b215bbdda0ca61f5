"""`incarnate sweep`: remove what was retired or superseded long ago."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from incarnate.cli.errors import UsageFailure
from incarnate.cli.existing import open_existing
from incarnate.cli.options import KEY, json_option, open_system, store_option, touched_head
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.wording import counted
from incarnate.storage.port import Swept

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

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
@click.argument("keys", metavar="[KEY]...", nargs=-1, type=KEY)
@click.option(
    "--older-than",
    required=True,
    type=_AgeType(),
    help="How long ago it was retired or superseded: a number and w, d, h, m or s, such as 30d.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Tell what would be removed of each activation; remove nothing.")
@click.option("--vacuum", is_flag=True, help="Then give the room back to the file system; writers wait meanwhile.")
@store_option
@json_option
def sweep(
    keys: tuple[ActivationKey, ...],
    older_than: timedelta,
    store: str | None,
    *,
    dry_run: bool,
    vacuum: bool,
    as_json: bool,
) -> None:
    """Remove old retired activations and old archives.

    The events of activations that were retired, and those that a rewind superseded, longer ago than --older-than
    are removed for ever: in all of the store, or of the KEYs alone. Nothing else is. A key that was swept cannot be
    used again.
    """
    with open_system(store) if dry_run else open_existing(store) as system:
        for key in keys:
            touched_head(system, key)  # before anything is removed; one that was swept has nothing left
        if dry_run:
            _foretell(system.sweepable(older_than, keys or None), as_json=as_json)
            return
        swept = system.sweep(older_than, keys or None)
        if vacuum:
            system.vacuum()
    if as_json:
        write_json(swept)
    else:
        say(make_console(), f"removed {_told(swept)}")


def _foretell(found: dict[ActivationKey, Swept], *, as_json: bool) -> None:
    counts = [(one.activations, one.rewinds, one.events) for one in found.values()]
    total = Swept(*(sum(column) for column in zip((0, 0, 0), *counts, strict=True)))
    if as_json:
        each = [{"key": str(key), **asdict(one)} for key, one in found.items()]
        write_json({"dryRun": True, **asdict(total), "each": each})
        return
    console = make_console()
    for key, one in found.items():
        say(console, f"{key}: {_told(one)}")
    say(console, f"would remove {_told(total)}")


def _told(swept: Swept) -> str:
    of = f"{counted(swept.activations, 'retired activation')} and the archives of {counted(swept.rewinds, 'rewind')}"
    return f"{of}: {counted(swept.events, 'event')}"
