"""`incarnate ps`: the supervisors that live on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.cli.options import json_option
from incarnate.cli.text import make_console, say, write_json_array
from incarnate.domain.codec import encode_json
from incarnate.supervision.registry import Registry, state_folder

if TYPE_CHECKING:
    from incarnate.supervision.registry import RunRecord

__all__ = ["ps"]


@click.command()
@json_option
def ps(*, as_json: bool) -> None:
    """List the supervisors that live on this machine.

    EVENTS is the length of the log when LAST EVENT was appended, RESTARTS how often the harness was started again.
    """
    registry = Registry(state_folder())
    registry.check()  # or it would look as if nothing ran
    records = [found.record for found in registry.live()]
    if as_json:
        write_json_array(encode_json(_fields(record)) for record in records)
        return
    console = make_console()
    columns = f"{'PID':>8}  {'PHASE':9}  {'INCARNATION':>11}  {'RESTARTS':>8}  {'EVENTS':>8}  {'LAST EVENT':24}  "
    say(console, (f"{columns}HARNESS      KEY", "bold"))
    for record in records:
        incarnation = "-" if record.incarnation is None else str(record.incarnation)
        numbers = f"{incarnation:>11}  {record.restarts:>8}  {record.offset:>8}"
        where = "" if registry.is_here(record) else f" (on {record.host})"
        say(
            console,
            f"{record.pid:>8}  {record.phase:9}  {numbers}  ",
            (f"{record.offset_at or '-':24}", "dim"),
            f"  {record.harness:11}  {record.key}{where}",
        )


def _fields(record: RunRecord) -> dict[str, object]:
    identity = record.identity
    return {
        "key": record.key,
        "store": record.store,
        "harness": record.harness,
        "host": record.host,
        "pid": record.pid,
        "startedAt": record.started_at,
        "phase": record.phase,
        "incarnation": record.incarnation,
        "restarts": record.restarts,
        "nextOffset": record.offset,
        "lastEventAt": record.offset_at or None,
        "session": record.session,
        "keeperPid": None if identity is None else identity.pid,
        "runId": None if identity is None else identity.run_id,
        "argv": list(record.argv),
        "cwd": record.cwd,
    }
