"""`incarnate superseded`: the events that a rewind cut off, as canonical JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.errors import Failure
from incarnate.cli.numbers import whole
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import write_json_array, write_json_lines
from incarnate.domain.codec import encode_appended

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["superseded"]


@click.command()
@key_argument
@click.argument("generation", type=whole(1))
@store_option
@json_option
def superseded(key: ActivationKey, generation: int, store: str | None, *, as_json: bool) -> None:
    """Print the events that a rewind of KEY superseded.

    They are canonical JSON lines: each is an event with its offset, incarnation and time beside its fields. With
    --json they are one array. incarnate rewinds lists the generations, of which GENERATION is one.
    """
    with open_system(store) as system:
        known_head(system, key)
        rewind = next((one for one in system.rewinds(key) if one.generation == generation), None)
        if rewind is None:
            raise Failure(f"{key} has not been rewound to generation {generation}", f"incarnate rewinds {key}")
        if rewind.swept:
            raise Failure(
                f"what rewind {generation} of {key} superseded was swept", f"incarnate rewinds {key} tells what is left"
            )
        events = (encode_appended(appended) for appended in system.replay_superseded(key, generation))
        (write_json_array if as_json else write_json_lines)(events)
