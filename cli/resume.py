"""`incarnate resume`: how to go on with a session, without taking it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import click

from incarnate.actors.turn_checkpoints import named_session
from incarnate.cli.errors import UsageFailure
from incarnate.cli.options import json_option, key_argument, known_head, open_system, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.codec import encode_appended
from incarnate.domain.commands import LatestCheckpoint
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.dialects.base import ResumeInvocation
    from incarnate.domain.keys import ActivationKey

__all__ = ["resume"]


class _Way(NamedTuple):
    invocation: ResumeInvocation
    command: tuple[str, ...] | None

    @property
    def shell(self) -> str | None:
        """The command as one line; None where only the SDK resumes."""
        return None if self.command is None else shlex.join(self.command)


class _Plan(NamedTuple):
    key: ActivationKey
    incarnation: int | None
    checkpoint: Checkpoint | None
    seed_events: int
    seed_bytes: int
    next_offset: int
    discards: int
    harness: str | None
    session_id: str | None
    prompt: str

    @property
    def way(self) -> _Way | None:
        """How the harness resumes the session, where both are known."""
        if self.harness not in DIALECTS or self.session_id is None:
            return None
        dialect = find_dialect(self.harness)
        return _Way(dialect.resume(self.session_id), dialect.resume_command(self.session_id, self.prompt))


@click.command()
@key_argument
@click.option("--harness", type=click.Choice(sorted(DIALECTS)), help="Instead of the one that the checkpoint names.")
@click.option("--session-id", metavar="ID", help="The harness's session, instead of the one that the checkpoint names.")
@click.option("--prompt", metavar="TEXT", default="go on", show_default=True, help="What the session is asked then.")
@store_option
@json_option
def resume(
    key: ActivationKey, harness: str | None, session_id: str | None, prompt: str, store: str | None, *, as_json: bool
) -> None:
    """Print how to go on with KEY.

    That is its newest checkpoint, the size of the seed, and the command line that resumes the harness's session
    without a terminal, in the format that is ingested. It takes no lease and changes nothing. What lies above the
    checkpoint is discarded by the next incarnation that restores and writes.
    """
    with open_system(store) as system:
        plan = _plan(system, key, harness, session_id, prompt)
    if as_json:
        write_json(_fields(plan))
    else:
        _print(plan)


def _plan(system: SessionSystem, key: ActivationKey, harness: str | None, session_id: str | None, prompt: str) -> _Plan:
    head = known_head(system, key)
    checkpoint: Checkpoint | None = system.activation(key).ask(LatestCheckpoint())
    # Without a checkpoint nothing is restored: a lease goes on at the head, and the library refuses to erase the log.
    offset = head.next_offset if checkpoint is None else checkpoint.offset
    named = named_session(checkpoint)
    if named is not None and harness in {None, named[0]}:
        harness, session_id = named[0], session_id or named[1]
    elif (harness is None) != (session_id is None):
        raise UsageFailure(_lack(key, checkpoint), "give both --harness and --session-id")
    events = 0 if checkpoint is None else offset
    size = sum(len(encode_appended(appended)) + 1 for appended in system.replay(key, 0, events))
    discards = head.next_offset - offset
    return _Plan(key, head.fence, checkpoint, events, size, offset, discards, harness, session_id, prompt)


def _lack(key: ActivationKey, checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return f"{key} has no checkpoint yet"
    named = named_session(checkpoint)
    return f"the newest checkpoint of {key} names {'no session' if named is None else f'a session of {named[0]}'}"


def _fields(plan: _Plan) -> dict[str, object]:
    way, resumed = plan.way, None
    if way is not None:
        resumed = {
            "harness": plan.harness,
            "invocation": way.invocation,
            "command": way.command,
            "shell": way.shell,
        }
    return {
        "key": str(plan.key),
        "incarnation": plan.incarnation,
        "checkpoint": plan.checkpoint,
        "seed": {"events": plan.seed_events, "bytes": plan.seed_bytes, "nextOffset": plan.next_offset},
        "discards": plan.discards,
        "resume": resumed,
    }


def _print(plan: _Plan) -> None:
    found = plan.checkpoint
    rows = [("activation", f"{plan.key}, incarnation {'-' if plan.incarnation is None else plan.incarnation}")]
    if found is None:
        rows += [
            ("checkpoint", "none yet"),
            ("seed", f"none: a lease goes on at the head, offset {plan.next_offset}"),
            ("discards", "nothing: without a checkpoint the log is kept"),
        ]
    else:
        size = f"{counted(plan.seed_events, 'event')}, {counted(plan.seed_bytes, 'byte')}"
        rows += [
            ("checkpoint", f"{found.id}, commit {found.commit_sha}, taken {found.at}"),
            ("seed", f"{size}; the next event goes to {plan.next_offset}"),
            ("discards", f"{counted(plan.discards, 'event')} above the checkpoint"),
        ]
    effects = () if found is None else found.effect_ledger
    rows += [("effect", f"{effect.kind} {effect.id}") for effect in effects]
    way = plan.way
    if way is not None:
        rows.append(("resume", way.shell or _sdk_call(way.invocation)))
    elif plan.harness is not None:
        rows.append(("resume", f"unknown: this version has no dialect {plan.harness}"))
    else:
        rows.append(("resume", f"unknown: {_lack(plan.key, found)}; give --harness and --session-id"))
    console = make_console()
    for name, text in rows:
        say(console, (f"{name:<12}", "bold"), text)


def _sdk_call(invocation: ResumeInvocation) -> str:
    return f"by the harness's SDK: {invocation.call}({', '.join(map(repr, invocation.args))})"
