"""`incarnate resume`: how to go on with a session, without taking it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incarnate.actors.resuming import PROMPT
from incarnate.cli.choices import one_of
from incarnate.cli.options import json_option, key_argument, open_system, store_option
from incarnate.cli.resume_plan import lack, plan_of
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.dialects.registry import DIALECTS
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.cli.resume_plan import Plan
    from incarnate.domain.dialects.base import ResumeInvocation
    from incarnate.domain.keys import ActivationKey

__all__ = ["resume"]


@click.command()
@key_argument
@click.option("--harness", type=one_of(sorted(DIALECTS)), help="Instead of the one that the checkpoint names.")
@click.option("--session-id", metavar="ID", help="The harness's session, instead of the one that the checkpoint names.")
@click.option("--prompt", metavar="TEXT", default=PROMPT, show_default=True, help="What the session is asked then.")
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
        plan = plan_of(system, key, harness, session_id, prompt)
    if as_json:
        write_json(_fields(plan))
    else:
        _print(plan)


def _fields(plan: Plan) -> dict[str, object]:
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


def _print(plan: Plan) -> None:
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
        rows.append(("resume", f"unknown: {lack(plan.key, found)}; give --harness and --session-id"))
    console = make_console()
    for name, text in rows:
        say(console, (f"{name:<12}", "bold"), text)


def _sdk_call(invocation: ResumeInvocation) -> str:
    return f"by the harness's SDK: {invocation.call}({', '.join(map(repr, invocation.args))})"
