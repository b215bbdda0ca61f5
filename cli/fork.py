"""`incarnate fork`: a new activation from what another one held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.errors import Failure
from incarnate.cli.existing import open_existing
from incarnate.cli.options import KEY, json_option, key_argument, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.commands import GetCheckpoint, GetHead, LatestCheckpoint
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey

__all__ = ["fork"]


@click.command()
@key_argument
@click.argument("new_key", type=KEY)
@click.option(
    "--at",
    metavar="OFFSET|CHECKPOINT_ID|latest",
    help="The offset to stop before, a checkpoint, or the latest checkpoint; the head unless given.",
)
@store_option
@json_option
def fork(key: ActivationKey, new_key: ActivationKey, at: str | None, store: str | None, *, as_json: bool) -> None:
    """Make NEW_KEY from what KEY holds.

    NEW_KEY gets the events of KEY below the place that --at names, or all, and the checkpoints up to it. It begins
    with the fence and the turn counter of KEY, and goes its own way from there. KEY is not changed, and may be
    retired.
    """
    with open_existing(store, key) as system:
        head = system.fork(key, new_key, _place(system, key, at))
    if as_json:
        write_json({"key": str(new_key), "incarnation": head.fence, "nextOffset": head.next_offset})
    else:
        fence = "no incarnation yet" if head.fence is None else f"incarnation {head.fence}"
        say(make_console(), f"{new_key}: {counted(head.next_offset, 'event')} of {key}, {fence}")


def _place(system: SessionSystem, key: ActivationKey, at: str | None) -> Checkpoint | int | None:
    if at is None:
        return None
    reference = system.activation(key)
    head: Head = reference.ask(GetHead())
    if at.isascii() and at.isdigit():
        offset = int(at[:17])  # no offset has as many digits, and int() refuses thousands of them
        if offset > head.next_offset:
            raise Failure(
                f"{key} does not reach offset {at}: it ends at {head.next_offset}",
                f"name one up to {head.next_offset}, or leave --at out to fork at the head",
            )
        return offset
    checkpoint: Checkpoint | None = reference.ask(LatestCheckpoint() if at == "latest" else GetCheckpoint(at))
    if checkpoint is None:
        missing, other = "no checkpoint yet", "name an offset"
        if at != "latest":
            missing, other = f"no checkpoint {at}", f"incarnate checkpoints {key} lists them"
        raise Failure(f"{key} has {missing}", f"{other}, or leave --at out to fork at the head")
    return checkpoint
