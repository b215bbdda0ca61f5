"""What `incarnate run` is made of: what it runs, who its neighbours are, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.existing import open_existing
from incarnate.cli.options import open_system
from incarnate.domain.commands import GetHead, LatestCheckpoint
from incarnate.domain.errors import UnclearPromptError
from incarnate.domain.wording import counted
from incarnate.supervision.boundaries import named_command
from incarnate.supervision.commands import Command, legible
from incarnate.supervision.fact_words import absent_words
from incarnate.supervision.neighbours import Neighbours
from incarnate.supervision.plan import (
    EXIT_DONE,
    EXIT_FENCED,
    EXIT_GAVE_UP,
    EXIT_NOT_STARTED,
    EXIT_UNFINISHED,
    EXIT_UNRECORDED,
)
from incarnate.supervision.registry import STATE_VARIABLE, STOP_IN_HASTE, Registry, RunRecord, state_folder

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from incarnate.actors.system import SessionSystem
    from incarnate.cli.run_logs import RunLog
    from incarnate.domain.keys import ActivationKey
    from incarnate.supervision.harness_files import SessionFolder
    from incarnate.supervision.knowledge import Known
    from incarnate.supervision.plan import Finish
    from incarnate.supervision.supervisor import Supervisor

__all__ = ["What", "neighbours", "opened", "parsed", "stopped_by_signals", "tell", "warn_of_absent", "what_to_run"]

_HINTS = {
    EXIT_FENCED: "leave it to whoever has it now; run it again only to take it back",
    EXIT_GAVE_UP: "look at what the harness says on standard error; run it again to go on",
    EXIT_UNFINISHED: "run it again with another prompt to go on",
    EXIT_UNRECORDED: "see to the store and run it again: what is missing is taken from the harness's own files",
    EXIT_NOT_STARTED: "check the command line after --",
}


_DONE_BEFORE = "its last turn is done, nothing was started; another prompt begins the next turn"
_UNREAD_HINT = "check --harness, and that the command line asks for the format that streams: incarnate harnesses"
_SECRET_OPTIONS = {"password", "sslpassword"}  # as PostgreSQL's client library has them


class What(NamedTuple):
    """A harness and its command line."""

    harness: str
    command: Command


def tell(told: RunLog, finish: Finish, known: Known) -> None:
    """Say what was refused, how it ended, and what to do next; of a good end that was watched no more need be said."""
    told.refused = known.refused
    if known.refused and told.form == "text":  # JSON has it in each line
        lines = counted(known.refused, "line")
        told.warn("refused", f"{told.key}: refused {lines} of what the harness printed: no events came of that")
    if finish.code == EXIT_DONE:
        if not known.lives and told.form == "text":  # JSON has the supervisor's own words for it
            told.say("done_before", f"{told.key}: {_DONE_BEFORE}")
        return
    if known.stop is not None and finish.code == known.stop.code:
        told.say("stopped", f"{told.key} stopped, as it was asked to; run it again to go on")
        return
    hint = known.hint or (_UNREAD_HINT if known.unread else _HINTS.get(finish.code, "run it again to go on"))
    told.fail(finish.reason, hint, finish.code)


def warn_of_absent(told: RunLog, known: Known, folder: SessionFolder) -> None:
    """Say that a folder that was named lacks the session of a log in which nothing was left to do: a slip, mostly."""
    outlook = known.outlook
    if not known.lives and outlook.session is not None and not outlook.is_here:
        absent = absent_words(outlook.session, folder.place())
        told.warn("uncompared", f"{told.key}: {absent}: what they hold was not compared with the log")


def opened(store: str | None, key: ActivationKey | None, *, is_told: bool) -> SessionSystem:
    """The system over `store`, to be written to. Unless it is told what to run, it must hold `key`, whose log tells."""
    return open_system(store, read_only=False) if is_told or key is None else open_existing(store, key)


def parsed(argv: tuple[str, ...], prompt: str | None, harness: str | None, *, resume: bool) -> Command | None:
    """The command line, if there is one. Raises UsageFailure where the prompt in it is not clear, or there is none."""
    try:
        return Command.parse(argv, prompt, harness, goes_on=resume) if argv else None
    except UnclearPromptError as error:
        raise UsageFailure(str(error), error.hint) from error


def what_to_run(
    system: SessionSystem,
    key: ActivationKey | None,
    harness: str | None,
    command: Command | None,
    prompt: str | None,
    *,
    resume: bool,
) -> What:
    """The harness and its command line: those that were given, else those of the newest checkpoint."""
    if command is not None and harness is not None:
        if command.prompt is None and (key is None or not system.activation(key).ask(GetHead()).next_offset):
            error = command.asks_nothing()  # there is nothing to go on with either
            raise UsageFailure(str(error), error.hint)
        return What(harness, command)
    if not resume or key is None:
        lacks = "--harness" if command is not None else "a command line"
        raise UsageFailure(f"{lacks} is missing", "incarnate run --harness NAME -- ARGV..., or --key KEY --resume")
    named = named_command(system.activation(key).ask(LatestCheckpoint()))
    if named is None or not named[1]:
        raise Failure(f"no checkpoint of {key} tells how to go on", "give --harness and the command line")
    told = parsed(named[1], prompt, named[0], resume=True) if command is None else command
    assert told is not None, "a checkpoint names no empty command line"
    return What(harness or named[0], told)


def neighbours(system: SessionSystem, key: ActivationKey, what: What) -> Neighbours:
    """The other supervisors of this machine, and our own record among them."""
    record = RunRecord(
        key=str(key),
        store=legible(_whole(system.url)),
        harness=what.harness,
        pid=os.getpid(),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        argv=tuple([legible(word) for word in what.command.argv]),
        cwd=legible(_working_folder()),
    )
    folder = state_folder()
    try:
        return Neighbours(Registry(folder), record, _now_ms)
    except OSError as error:
        why = f"{folder}: this run cannot be recorded there: {error.strerror}"
        raise Failure(why, f"name a folder that can be written: {STATE_VARIABLE}=FOLDER") from error


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise Failure("the working directory is gone", "change to one that is there") from error


def _whole(url: str) -> str:
    """The URL as it reads from every folder, without who opens it and by which password: others may see it."""
    file = re.fullmatch(r"(sqlite|jsonl):///(?!/)(.*)", url)
    if file is not None:
        return f"{file[1]}:///{_working_folder()}/{file[2]}"
    base, mark, options = url.partition("?")
    named = [one for one in options.split("&") if one.partition("=")[0] not in _SECRET_OPTIONS]
    # A password may hold an @ and a / of its own; what begins with / names a file, of which either may be a part.
    return re.sub(r"(?<=://)(?!/).*@", "", base) + (mark if any(named) else "") + "&".join(named)


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


@contextmanager
def stopped_by_signals(supervisor: Supervisor) -> Generator[None]:
    """SIGTERM, SIGINT and SIGHUP end the harness in order; the second one in haste, and so does `STOP_IN_HASTE`.

    What was ignored when we began stays so: nohup asks for that, and a shell for what it starts in the background.
    """
    heard_of: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        heard_of.append(number)
        # On a thread of its own: this one may hold the lock that `stop` takes.
        threading.Thread(target=supervisor.stop, args=(128 + number,), daemon=True).start()

    def stop_in_haste(_number: int, _frame: FrameType | None) -> None:
        # After another stop it is the second one: a third would hardly wait for the store.
        for _ in range(1 if heard_of else 2):
            stop(signal.SIGTERM, None)

    heard = [
        signal.SIGTERM,
        *[one for one in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN],
    ]
    before = {number: signal.signal(number, stop) for number in heard}
    before[STOP_IN_HASTE] = signal.signal(STOP_IN_HASTE, stop_in_haste)
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, before)  # or no stop is ever heard, whoever had us start so
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
