"""`incarnate harnesses`: the dialects, and what a dead session of each can be resumed by."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from incarnate.cli.options import json_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.dialects.base import advertisement
from incarnate.domain.dialects.registry import DIALECTS

if TYPE_CHECKING:
    from incarnate.domain.dialects.base import Dialect

__all__ = ["harnesses"]

_SESSION, _PROMPT = "SESSION", "PROMPT"


@click.command()
@json_option
def harnesses(*, as_json: bool) -> None:
    """List the harnesses whose records are read.

    A dead session can go on (DURABLE) where its records stream, so that all it did is known, and its id resumes it.
    """
    if as_json:
        write_json([_fields(DIALECTS[name]) for name in sorted(DIALECTS)])
        return
    console = make_console()
    say(console, (f"{'HARNESS':16}  {'STREAMS':7}  {'BY ID':5}  {'DURABLE':7}  RESUME", "bold"))
    for name in sorted(DIALECTS):
        told = advertisement(DIALECTS[name])
        marks = [_mark(told.streaming, 7), _mark(told.resume_by_id, 5), _mark(told.durable_resume, 7)]
        say(console, f"{name:16}  {'  '.join(marks)}  {_resume(DIALECTS[name])}")


def _mark(holds: bool, width: int) -> str:  # noqa: FBT001 - what it marks
    return f"{'yes' if holds else 'no':{width}}"


def _resume(dialect: Dialect) -> str:
    command = dialect.resume_command(_SESSION, _PROMPT)
    if command is not None:
        return shlex.join(command)
    invocation = dialect.resume(_SESSION)
    return f"{invocation.call}({', '.join(invocation.args)}) of its SDK"


def _fields(dialect: Dialect) -> dict[str, object]:
    told = advertisement(dialect)
    return {
        "harness": told.harness,
        "streaming": told.streaming,
        "resumeById": told.resume_by_id,
        "durableResume": told.durable_resume,
        "resume": dialect.resume(_SESSION),
        "command": dialect.resume_command(_SESSION, _PROMPT),
    }
