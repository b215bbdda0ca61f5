"""`incarnate checkpoints`: where a log may be gone back to, or forked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import make_console, say, write_json_array
from incarnate.domain.codec import encode_json

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["checkpoints"]


@click.command()
@key_argument
@store_option
@json_option
def checkpoints(key: ActivationKey, store: str | None, *, as_json: bool) -> None:
    """List the checkpoints of KEY, the lowest offset first.

    The last one is what the next incarnation goes back to; incarnate fork takes any of them by its id. Those that lay
    above the cut of a rewind are gone.
    """
    with open_system(store) as system:
        known_head(system, key)
        found = system.checkpoints(key)
    if as_json:
        write_json_array(map(encode_json, found))
        return
    console = make_console()
    say(console, (f"{'OFFSET':>9}  {'INCARNATION':>11}  {'AT':24}  {'ID':36}  COMMIT", "bold"))
    for one in found:
        numbers = f"{one.offset:>9}  {one.incarnation:>11}  "
        say(console, numbers, (f"{one.at:24}", "dim"), f"  {one.id:36}  {one.commit_sha}")
