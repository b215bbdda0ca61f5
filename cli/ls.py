"""`incarnate ls`: what a store holds."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

from incarnate.actors.fields import activation_fields
from incarnate.cli.errors import UsageFailure
from incarnate.cli.numbers import whole
from incarnate.cli.options import json_option, open_system, store_option
from incarnate.cli.text import make_console, say, write_json_array
from incarnate.domain.codec import encode_json
from incarnate.domain.events import timestamp

if TYPE_CHECKING:
    from incarnate.storage.port import ActivationInfo

__all__ = ["ls"]


@click.command()
@click.argument("prefix", default="")
@click.option("--limit", metavar="N", type=whole(0), help="List the first N alone.")
@store_option
@json_option
def ls(prefix: str, limit: int | None, store: str | None, *, as_json: bool) -> None:
    """List the activations that the store holds.

    All of them, or those whose keys begin with PREFIX, in the order of the keys.
    """
    if "://" in prefix:
        raise UsageFailure("PREFIX is a URL, and no beginning of a key", "incarnate ls --store URL")

    def begins(info: ActivationInfo) -> bool:
        return str(info.key).startswith(prefix)

    with open_system(store) as system:
        most = None if limit is None else min(limit, sys.maxsize)  # islice takes no more
        found = islice(filter(begins, system.activations()), most)
        if as_json:
            write_json_array(encode_json(activation_fields(info)) for info in found)
            return
        console = make_console()
        say(console, (f"{'EVENTS':>9}  {'INCARNATION':>11}  {'REWINDS':>7}  {'UPDATED':24}  KEY", "bold"))
        for info in found:
            head = info.head
            fence = "-" if head.fence is None else str(head.fence)
            numbers = f"{head.next_offset:>9}  {fence:>11}  {head.generation:>7}  "
            say(console, numbers, (timestamp(info.updated_ms), "dim"), "  ", str(info.key))
