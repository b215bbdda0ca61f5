"""What `incarnate run` tells on standard error while it runs: lines, JSON lines, or one line of status."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Literal, cast

import click
from rich.console import Console
from rich.text import Text

from incarnate.cli.errors import EXIT_FAILED
from incarnate.cli.run_output import Patient, patient
from incarnate.cli.text import printable
from incarnate.domain.errors import IncarnateError
from incarnate.domain.wording import counted
from incarnate.supervision.status_words import status_words

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from incarnate.domain.keys import ActivationKey
    from incarnate.supervision.knowledge import Known

__all__ = ["LogForm", "RunLog", "logging_to", "status_line"]

LogForm = Literal["text", "json", "none"]

_LOGGER = logging.getLogger("incarnate")

_ABOUT = ("event", "fact", "phase", "incarnation", "restarts", "code", "hint", "key", "line", "refused", "ignored")


class RunLog:
    """Standard error as one run writes it: each line of ours in the form that was asked for.

    Attributes:
        key: the activation, as soon as it is known.
        refused: how many lines of the harness gave no events because they were damaged, once that is known.
        stream: where it goes.
    """

    def __init__(self, form: LogForm, stream: Patient) -> None:
        self.form = form
        self.stream = stream
        self.key: ActivationKey | None = None
        self.refused = 0

    def say(self, event: str, message: str) -> None:
        """Tell what is no error."""
        self._write(f"incarnate: {printable(message)}", {"level": "info", "event": event, "message": message})

    def warn(self, event: str, message: str) -> None:
        """Tell what may be wrong, though the run goes well; nothing where nothing was asked for."""
        if self.form != "none":
            self._write(f"incarnate: {printable(message)}", {"level": "warning", "event": event, "message": message})

    def fail(self, message: str, hint: str, code: int) -> None:
        """Tell why the run ends, and what to do next."""
        told: dict[str, object] = {"level": "error", "event": "failed", "message": message, "hint": hint, "code": code}
        text = f"Error: {printable(message)}" + (f"\nTry: {printable(hint)}" if hint else "")
        self._write(text, told)

    def _write(self, text: str, told: dict[str, object]) -> None:
        about: dict[str, object] = {} if self.key is None else {"key": str(self.key)}
        about |= {"refused": self.refused} if self.refused else {}
        line = json.dumps({"at": _at(time.time()), **told, **about}) if self.form == "json" else text
        self.stream.write(f"{line}\n")


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"incarnate: {printable(record.getMessage())}"


class _Json(logging.Formatter):
    def __init__(self, run: RunLog) -> None:
        super().__init__()
        self._run = run

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "at": _at(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        told |= {name: getattr(record, name) for name in _ABOUT if hasattr(record, name)}
        if self._run.key is not None:
            told.setdefault("key", str(self._run.key))
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


@contextmanager
def logging_to(form: LogForm) -> Generator[RunLog]:
    """Log to standard error meanwhile: each fact as JSON, or what a person should know as text.

    What the run fails with is told in the same form: a unit's log stays one JSON object a line.
    """
    with patient(sys.stderr) as stream, _logging_to(RunLog(form, stream)) as run:
        yield run


@contextmanager
def _logging_to(run: RunLog) -> Generator[RunLog]:
    form = run.form
    handler = logging.StreamHandler(run.stream)
    handler.setFormatter(_Json(run) if form == "json" else _Text())
    level = _LOGGER.level
    _LOGGER.setLevel(logging.INFO if form == "json" else logging.WARNING)
    if form != "none":
        _LOGGER.addHandler(handler)
    try:
        yield run
    except click.ClickException as error:
        run.fail(error.message, getattr(error, "hint", ""), error.exit_code)
        raise click.exceptions.Exit(error.exit_code) from error
    except IncarnateError as error:
        run.fail(str(error), error.hint, EXIT_FAILED)
        raise click.exceptions.Exit(EXIT_FAILED) from error
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)


@contextmanager
def status_line(key: ActivationKey, told: RunLog) -> Generator[Callable[[Known, int], object] | None]:
    """What to tell of each change: one line that changes on a terminal that shows no output, else a line each."""
    stream = told.stream
    if told.form != "text":
        yield None
        return
    if stream.isatty() and not sys.stdout.isatty():
        console = Console(file=cast("IO[str]", stream), force_terminal=True, highlight=False)
        with console.status(Text(f"{printable(str(key))} begins")) as status:
            yield lambda known, offset: status.update(Text(_told(key, known, offset)))
        return
    last = [""]

    def tell(known: Known, offset: int) -> None:
        line = _told(key, known, offset)
        phase = _phase(known)
        change = f"{phase} {known.incarnation}"
        if phase in _TELLING and change != last[0]:
            last[0] = change
            stream.write(f"incarnate: {line}\n")

    yield tell


_TELLING = {"alive", "gone", "level"}


def _phase(known: Known) -> str:
    """Of what was recorded to its end before its tree had ended, nobody hears that it is gone."""
    return "gone" if known.phase == "recorded" else known.phase


def _told(key: ActivationKey, known: Known, offset: int) -> str:
    words = {
        "alive": "runs",
        "gone": status_words(known.status),
        "level": "is level",
    }
    phase = _phase(known)
    what = words.get(phase, phase)
    restarts = f", {counted(known.restarts, 'restart')}" if known.restarts else ""
    refused = f", {counted(known.refused, 'line')} refused" if known.refused else ""
    about = f"incarnation {known.incarnation}, {counted(offset, 'event')}{restarts}{refused}"
    return f"{printable(str(key))} {what}: {about}"
