"""`incarnate ls`: what a store holds."""

from __future__ import annotations

import click

from incarnate.actors.fields import activation_fields
from incarnate.cli.options import json_option, open_system, store_option
from incarnate.cli.text import make_console, say, write_json_array
from incarnate.domain.codec import encode_json
from incarnate.domain.events import timestamp

__all__ = ["ls"]


@click.command()
@store_option
@json_option
def ls(store: str | None, *, as_json: bool) -> None:
    """List the activations that the store holds."""
    with open_system(store) as system:
        if as_json:
            write_json_array(encode_json(activation_fields(info)) for info in system.activations())
            return
        console = make_console()
        say(console, (f"{'EVENTS':>9}  {'INCARNATION':>11}  {'REWINDS':>7}  {'UPDATED':24}  KEY", "bold"))
        for info in system.activations():
            head = info.head
            fence = "-" if head.fence is None else str(head.fence)
            numbers = f"{head.next_offset:>9}  {fence:>11}  {head.generation:>7}  "
            say(console, numbers, (timestamp(info.updated_ms), "dim"), "  ", str(info.key))
