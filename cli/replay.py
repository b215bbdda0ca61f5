"""`incarnate replay`: the log as canonical JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.numbers import whole
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import write_json_array, write_json_lines
from incarnate.domain.codec import encode_appended

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["replay"]


@click.command()
@key_argument
@click.option("--from", "start", type=whole(0), default=0, show_default=True, help="The first offset.")
@click.option("--to", "stop", type=whole(0), help="The offset to stop before; the head unless given.")
@store_option
@json_option
def replay(key: ActivationKey, start: int, stop: int | None, store: str | None, *, as_json: bool) -> None:
    """Print KEY as canonical JSON lines.

    Each line is an event with its offset, incarnation and time beside its fields. With --json they are one array.
    """
    if stop is not None and stop < start:
        raise UsageFailure(
            f"--from {start} lies above --to {stop}", "name the first offset, and the one to stop before"
        )
    with open_system(store) as system:
        next_offset = known_head(system, key).next_offset
        if start > next_offset:
            raise Failure(
                f"{key} does not reach offset {start}: its next event goes to {next_offset}",
                f"give --from an offset up to {next_offset}, or leave it out",
            )
        events = (encode_appended(appended) for appended in system.replay(key, start, stop))
        (write_json_array if as_json else write_json_lines)(events)
