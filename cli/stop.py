"""`incarnate stop`: the supervisors of an activation end, and what they started."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from incarnate.cli.errors import Failure
from incarnate.cli.options import json_option, key_argument
from incarnate.cli.seconds import SECONDS
from incarnate.cli.text import write_json
from incarnate.supervision.registry import Registry, state_folder

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey
    from incarnate.supervision.registry import Found, RunRecord

__all__ = ["stop"]

_PAUSE = 0.05


@click.command()
@key_argument
@click.option(
    "--wait",
    type=SECONDS,
    default=30.0,
    show_default=True,
    help="Seconds until it must have ended; 0 only asks.",
)
@click.option("--now", is_flag=True, help="Do not let the harness end by itself.")
@json_option
def stop(key: ActivationKey, wait: float, *, now: bool, as_json: bool) -> None:
    """End the supervisors of KEY on this machine.

    Whatever store they write to, each ends its harness and all that it started, records what it wrote, closes what is
    open, and exits with 143. The activation can be gone on with later: incarnate run --key KEY --resume.
    """
    registry = Registry(state_folder())
    registry.check()  # or it would look as if nothing ran
    found = [one for one in registry.live() if one.record.key == str(key)]
    if not found:
        raise Failure(f"no supervisor of {key} lives here", "incarnate ps lists those that do")
    for one in found:
        _ask(registry, one.record, in_haste=now)
    if wait and not _await(registry, found, wait):
        sooner = "incarnate stop --now again, which waits for no store any longer" if now else "incarnate stop --now"
        raise Failure(f"{key} has not ended in {wait:g} seconds", f"{sooner}, or a longer --wait")
    if as_json:
        write_json({"key": str(key), "ended": bool(wait), "pids": [one.record.pid for one in found]})
        return
    click.echo(f"{key} {'has ended' if wait else 'was asked to end'}", file=sys.stderr)


def _ask(registry: Registry, record: RunRecord, *, in_haste: bool) -> None:
    if not registry.is_here(record):
        raise Failure(f"the supervisor of {record.key} runs on {record.host}", f"run incarnate stop {record.key} there")
    try:
        registry.stop(record, in_haste=in_haste)  # it may just have ended by itself
    except PermissionError as error:
        raise Failure(f"process {record.pid} is another user's", "stop it as that user") from error


def _await(registry: Registry, found: list[Found], wait: float) -> bool:
    until = time.monotonic() + wait
    asked = {one.path for one in found}
    while asked & {one.path for one in registry.live()}:
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True
