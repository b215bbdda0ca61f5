"""`incarnate retire`: close a log for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.existing import open_existing
from incarnate.cli.options import json_option, key_argument, store_option, touched_head
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["retire"]


@click.command()
@key_argument
@store_option
@json_option
def retire(key: ActivationKey, store: str | None, *, as_json: bool) -> None:
    """Close the log of KEY for ever.

    Its fence is raised, so whoever holds it is fenced, and nobody can take it again. Its events stay, and are read,
    until incarnate sweep removes them. Retiring twice is no error.
    """
    with open_existing(store) as system:
        touched_head(system, key)  # one that was swept stays retired
        head = system.retire(key)
    if as_json:
        write_json({"key": str(key), "incarnation": head.fence, "nextOffset": head.next_offset, "retired": True})
    else:
        say(make_console(), f"{key} is retired, with {counted(head.next_offset, 'event')}")
