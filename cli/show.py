"""`incarnate show`: a log as a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import write_json_array
from incarnate.cli.transcript import Transcript
from incarnate.domain.codec import encode_appended

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["show"]


@click.command()
@key_argument
@click.option("--full", is_flag=True, help="Do not cut what tools were given and answered.")
@store_option
@json_option
def show(key: ActivationKey, store: str | None, *, full: bool, as_json: bool) -> None:
    """Print KEY as a transcript.

    Turns, prompts, answers, thoughts, tool calls and their results, in the order of the log. What a sub-agent did
    stands further in. Control characters are shown as escapes.
    """
    with open_system(store) as system:
        known_head(system, key)
        events = system.replay(key)
        if as_json:
            write_json_array(encode_appended(appended) for appended in events)
            return
        transcript = Transcript(full=full)
        for appended in events:
            transcript.show(appended)
