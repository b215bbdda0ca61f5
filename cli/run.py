"""`incarnate run`: a harness that is kept alive, and its session durable."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from incarnate.actors.dispatchers import make_runtime
from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.options import KEY, open_system, store_option
from incarnate.cli.repository import git_head
from incarnate.cli.run_logs import LogForm, logging_to, status_line
from incarnate.domain.commands import LatestCheckpoint
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.errors import UnclearPromptError
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.boundaries import named_command
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.harness_files import SessionFolder
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.neighbours import Neighbours
from incarnate.supervision.plan import (
    EXIT_DONE,
    EXIT_FENCED,
    EXIT_GAVE_UP,
    EXIT_NOT_STARTED,
    EXIT_UNFINISHED,
    EXIT_UNRECORDED,
)
from incarnate.supervision.processes import ProcessEdge
from incarnate.supervision.registry import Registry, RunRecord, state_folder
from incarnate.supervision.supervisor import Supervisor
from incarnate.supervision.world import NoWorld, Repository

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from incarnate.actors.system import SessionSystem
    from incarnate.cli.run_logs import RunLog
    from incarnate.supervision.boundaries import Every
    from incarnate.supervision.knowledge import Known
    from incarnate.supervision.plan import Finish

__all__ = ["run"]

_HINTS = {
    EXIT_FENCED: "leave it to whoever has it now; run it again only to take it back",
    EXIT_GAVE_UP: "look at what the harness says on standard error; run it again to go on",
    EXIT_UNFINISHED: "run it again with another prompt to go on",
    EXIT_UNRECORDED: "see to the store and run it again: what is missing is taken from the harness's own files",
    EXIT_NOT_STARTED: "check the command line after --",
}


_UNREAD_HINT = "check --harness, and that the command line asks for the format that streams: incarnate harnesses"

_RUN = [name for name in sorted(DIALECTS) if DIALECTS[name].resume_command("SESSION", "PROMPT") is not None]
"""The harnesses with a command line."""


class _What(NamedTuple):
    harness: str
    command: Command


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--harness", type=click.Choice(_RUN), help="Whose command line ARGV is.")
@click.option("--key", type=KEY, help="The activation; a new one unless given.")
@click.option(
    "--resume", is_flag=True, help="Go on with KEY as the log tells it, on whatever machine; ARGV may be left out."
)
@click.option(
    "--prompt", metavar="TEXT", help="What the harness is asked, where ARGV does not tell or {prompt} stands."
)
@click.option("--go-on", metavar="TEXT", help="What it is told when it is resumed, instead of the usual.")
@click.option("--max-restarts", type=click.IntRange(min=0), default=5, show_default=True, help="Restarts, in all.")
@click.option(
    "--backoff", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Seconds before the first."
)
@click.option("--checkpoint-every", type=click.Choice(["turn", "tool"]), default="turn", show_default=True)
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
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds after SIGINT, and after SIGTERM, at a stop.",
)
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json", "none"]),
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
    with logging_to(log_form) as told, open_system(store, read_only=False) as system:
        if repo is not None:
            git_head(repo)  # refused before anything is claimed
        what = _what(system, key, harness, _command(argv, prompt, harness), prompt, resume=resume)
        if key is None:
            key = ActivationKey(f"run-{uuid.uuid4().hex[:12]}", what.harness)
            told.say("named", f"the activation is {key}")
        told.key = key
        dialect = find_dialect(what.harness)
        supervised = Harness(dialect, what.command, SessionFolder.of(dialect, os.environ, sessions), go_on=go_on)
        with status_line(key, log_form) as on_change:
            supervisor = Supervisor(
                system,
                key,
                supervised,
                edge=ProcessEdge(),
                runtime=make_runtime("calling"),
                machine=_neighbours(system, key, what),
                policy=policy,
                world=NoWorld() if repo is None else Repository(repo),
                every=checkpoint_every,
                pass_on=_pass_on,
                on_change=on_change,
            )
            with _stopped_by_signals(supervisor):
                finish = supervisor.run()
        if finish.code != EXIT_DONE:
            _tell(told, finish, supervisor.known)
            raise click.exceptions.Exit(finish.code)


def _tell(told: RunLog, finish: Finish, known: Known) -> None:
    if known.stop is not None and finish.code == known.stop.code:
        told.say("stopped", f"{told.key} stopped, as it was asked to; run it again to go on")
        return
    hint = _UNREAD_HINT if known.unread else _HINTS.get(finish.code, "run it again to go on")
    told.fail(finish.reason, hint, finish.code)


def _command(argv: tuple[str, ...], prompt: str | None, harness: str | None) -> Command | None:
    """The command line, if there is one. Raises UsageFailure where the prompt in it is not clear."""
    try:
        return Command.parse(argv, prompt, harness) if argv else None
    except UnclearPromptError as error:
        raise UsageFailure(str(error), error.hint) from error


def _what(
    system: SessionSystem,
    key: ActivationKey | None,
    harness: str | None,
    command: Command | None,
    prompt: str | None,
    *,
    resume: bool,
) -> _What:
    """The harness and its command line: those that were given, else those of the newest checkpoint."""
    if command is not None and harness is not None:
        return _What(harness, command)
    if not resume or key is None:
        lacks = "--harness" if command is not None else "a command line"
        raise UsageFailure(f"{lacks} is missing", "incarnate run --harness NAME -- ARGV..., or --key KEY --resume")
    named = named_command(system.activation(key).ask(LatestCheckpoint()))
    if named is None:
        raise Failure(f"no checkpoint of {key} tells how to go on", "give --harness and the command line")
    told = Command(named[1], prompt) if command is None else command
    return _What(harness or named[0], told)


def _neighbours(system: SessionSystem, key: ActivationKey, what: _What) -> Neighbours:
    record = RunRecord(
        key=str(key),
        store=_whole(system.url),
        harness=what.harness,
        pid=os.getpid(),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        argv=what.command.argv,
        cwd=str(Path.cwd()),
    )
    return Neighbours(Registry(state_folder()), record, _now_ms)


def _whole(url: str) -> str:
    """The URL as it reads from every folder, without a password: others may see it."""
    file = re.fullmatch(r"(sqlite|jsonl):///(?!/)(.*)", url)
    if file is not None:
        return f"{file[1]}:///{Path.cwd()}/{file[2]}"
    return re.sub(r"//[^/@]*@", "//", url)


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def _pass_on(chunk: bytes) -> None:
    """Straight to the descriptor: nothing waits in a buffer of ours."""
    left = memoryview(chunk)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


@contextmanager
def _stopped_by_signals(supervisor: Supervisor) -> Generator[None]:
    """SIGTERM, SIGINT and SIGHUP end the harness in order; the second one in haste."""

    def stop(number: int, _frame: FrameType | None) -> None:
        # On a thread of its own: this one may hold the lock that `stop` takes.
        threading.Thread(target=supervisor.stop, args=(128 + number,), daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
