"""`incarnate rewinds`: what was cut off a log, when and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.actors.fields import rewind_fields
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import make_console, say, write_json_array
from incarnate.domain.codec import encode_json
from incarnate.domain.events import timestamp

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["rewinds"]


@click.command()
@key_argument
@store_option
@json_option
def rewinds(key: ActivationKey, store: str | None, *, as_json: bool) -> None:
    """List the rewinds of KEY, the first one first.

    Each superseded the events from CUT up to HEAD. incarnate superseded prints them, unless they were swept.
    """
    with open_system(store) as system:
        known_head(system, key)
        found = system.rewinds(key)
    if as_json:
        write_json_array(encode_json(rewind_fields(rewind)) for rewind in found)
        return
    console = make_console()
    say(console, (f"{'GENERATION':>10}  {'CUT':>9}  {'HEAD':>9}  {'INCARNATION':>11}  {'AT':24}  SUPERSEDED", "bold"))
    for rewind in found:
        numbers = f"{rewind.generation:>10}  {rewind.cut:>9}  {rewind.head:>9}  {rewind.incarnation:>11}  "
        left = "swept" if rewind.swept else str(rewind.head - rewind.cut)
        say(console, numbers, (timestamp(rewind.at_ms), "dim"), "  ", left)
