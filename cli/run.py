"""`incarnate run`: a harness that is kept alive, and its session durable."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import click

from incarnate.actors.dispatchers import make_runtime
from incarnate.cli.choices import one_of
from incarnate.cli.numbers import whole
from incarnate.cli.options import KEY, store_option
from incarnate.cli.repository import git_head
from incarnate.cli.run_input import INPUT_LEFT, has_input, terminal_kept
from incarnate.cli.run_line import RunLine
from incarnate.cli.run_logs import LogForm, logging_to, status_line
from incarnate.cli.run_output import passing_on
from incarnate.cli.run_parts import neighbours, opened, parsed, stopped_by_signals, tell, warn_of_absent, what_to_run
from incarnate.cli.seconds import SECONDS
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.harness import Harness
from incarnate.supervision.harness_files import SessionFolder
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.plan import EXIT_DONE
from incarnate.supervision.processes import ProcessEdge
from incarnate.supervision.supervisor import Supervisor
from incarnate.supervision.world import NoWorld, Repository

if TYPE_CHECKING:
    from incarnate.supervision.boundaries import Every

__all__ = ["run"]

_RUN = [name for name in sorted(DIALECTS) if DIALECTS[name].resume_command("SESSION", "PROMPT") is not None]
"""The harnesses with a command line."""

_STANDARD_INPUT, _STANDARD_ERROR = 0, 2


@click.command(cls=RunLine)
@click.option("--harness", type=one_of(_RUN), help="Whose command line ARGV is.")
@click.option("--key", type=KEY, help="The activation; a new one unless given.")
@click.option(
    "--resume", is_flag=True, help="Go on with KEY as the log tells it, on whatever machine; ARGV may be left out."
)
@click.option(
    "--prompt", metavar="TEXT", help="What the harness is asked, where ARGV does not tell or {prompt} stands."
)
@click.option("--go-on", metavar="TEXT", help="What it is told when it is resumed, instead of the usual.")
@click.option("--max-restarts", type=whole(0), default=5, show_default=True, help="Restarts, in all.")
@click.option("--backoff", type=SECONDS, default=1.0, show_default=True, help="Seconds before the first.")
@click.option(
    "--checkpoint-every",
    type=one_of(["turn", "tool"]),
    default="turn",
    show_default=True,
    help="Where checkpoints are made.",
)
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Checkpoints name the git head of this folder, and what changed in it.",
)
@click.option(
    "--sessions",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the harness keeps its sessions, if that is not the usual place.",
)
@click.option(
    "--grace",
    type=SECONDS,
    default=5.0,
    show_default=True,
    help="Seconds after SIGINT, and after SIGTERM, at a stop.",
)
@click.option(
    "--log",
    "log_form",
    type=one_of(["text", "json", "none"]),
    default="text",
    show_default=True,
    help="What standard error tells.",
)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@store_option
def run(
    *,
    harness: str | None,
    key: ActivationKey | None,
    resume: bool,
    prompt: str | None,
    go_on: str | None,
    max_restarts: int,
    backoff: float,
    checkpoint_every: Every,
    repo: Path | None,
    sessions: Path | None,
    grace: float,
    log_form: LogForm,
    argv: tuple[str, ...],
    store: str | None,
) -> None:
    """Keep a harness alive, and its session durable.

    ARGV is its usual command line, behind --. What it prints is passed on byte for byte and goes into the log of KEY
    as it is printed. When it dies, what it left running is ended, the log is levelled with its own session files, and
    it is resumed by its own session, with the next incarnation. The same command again goes on with what is not done.

    A second run of KEY, on another machine too, takes over: the first one ends its harness and exits with 6.
    """
    policy = Policy(max_restarts=max_restarts, backoff=backoff, interrupt=grace, terminate=grace)
    with logging_to(log_form) as told, opened(store, key, is_told=bool(argv) or not resume) as system:
        if repo is not None:
            git_head(repo)  # refused before anything is claimed
        what = what_to_run(system, key, harness, parsed(argv, prompt, harness, resume=resume), prompt, resume=resume)
        if key is None:
            key = ActivationKey(f"run-{uuid.uuid4().hex[:12]}", what.harness)
            told.say("named", f"the activation is {key}")
        told.key = key
        dialect = find_dialect(what.harness)
        folder = SessionFolder.of(dialect, os.environ, sessions)
        supervised = Harness(dialect, what.command, folder, go_on=go_on)
        with status_line(key, told) as on_change, passing_on(sys.stdout.fileno()) as pass_on:
            supervisor = Supervisor(
                system,
                key,
                supervised,
                edge=ProcessEdge(),
                runtime=make_runtime("calling"),
                machine=neighbours(system, key, what),
                policy=policy,
                world=NoWorld() if repo is None else Repository(repo),
                every=checkpoint_every,
                pass_on=pass_on,
                on_change=on_change,
            )
            if sys.stdin is not None and has_input(_STANDARD_INPUT):
                told.warn("input_left", f"{key}: {INPUT_LEFT}")
            with stopped_by_signals(supervisor), terminal_kept(_STANDARD_ERROR):
                finish = supervisor.run()
        if sessions is not None and finish.code == EXIT_DONE:
            warn_of_absent(told, supervisor.known, folder)
        tell(told, finish, supervisor.known)
        if finish.code != EXIT_DONE:
            raise click.exceptions.Exit(finish.code)
