"""How a command fails: `Error: ...`, `Try: ...` on standard error, and an exit code that says which kind it was."""

from __future__ import annotations

import errno
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click
from click.exceptions import NoArgsIsHelpError

from incarnate.cli.text import printable
from incarnate.domain.errors import HeadMovedError, IncarnateError, RetiredError, StaleIncarnationError
from incarnate.storage.permissions import DENIALS, PERMISSIONS_HINT, denied

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = [
    "EXIT_DAMAGED",
    "EXIT_FAILED",
    "EXIT_INCOMPLETE",
    "EXIT_INTERRUPTED",
    "EXIT_ODD",
    "EXIT_USAGE",
    "Failure",
    "Group",
    "UsageFailure",
]

EXIT_FAILED = 1
EXIT_USAGE = 2  # click's own
EXIT_INCOMPLETE = 3
EXIT_DAMAGED = 4
EXIT_ODD = 5
EXIT_INTERRUPTED = 130  # as shells have it: 128 and the number of SIGINT

_SHELL_HINTS: dict[type[IncarnateError], str] = {
    StaleIncarnationError: "leave it to whoever has it now; run ingest again only to take it back",
    HeadMovedError: "run it again",
    RetiredError: "fork it onto a new key to go on from where it ended, or name another key",
}
"""The next step of a person, where the library's own hint is for a program."""


class Failure(click.ClickException):
    """The command was refused or failed; `hint` is the next step."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it on standard error."""
        for line in self._lines():
            click.echo(line, file=sys.stderr if file is None else file)

    def _lines(self) -> Iterator[str]:
        yield f"Error: {printable(self.message)}"
        if self.hint:
            yield f"Try: {printable(self.hint)}"


class UsageFailure(Failure):
    """The command line itself is wrong."""

    exit_code = EXIT_USAGE


class Interrupted(Failure):
    """Somebody pressed Ctrl-C."""

    exit_code = EXIT_INTERRUPTED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it below the `^C` that a terminal shows."""
        if sys.stderr.isatty():
            click.echo(err=True)
        super().show(file)


class Group(click.Group):
    """A group of commands whose errors are ours: the library's, those of files, and click's about the command line."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options of the group itself, whose help may find no room."""
        try:
            with _usage_errors(), _file_errors():
                return super().make_context(info_name, args, parent, **extra)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted", "run it again") from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever it raises that a person can cause becomes a failure."""
        try:
            with _usage_errors(), _file_errors():
                return super().invoke(ctx)
        except IncarnateError as error:
            raise Failure(str(error), _SHELL_HINTS.get(type(error), error.hint)) from error
        except KeyboardInterrupt as error:
            ingesting = ctx.invoked_subcommand == "ingest"
            hint = "run it again; a file goes on where it stopped" if ingesting else "run it again"
            raise Interrupted("interrupted", hint) from error


@contextmanager
def _usage_errors() -> Generator[None]:
    try:
        yield
    except NoArgsIsHelpError:
        raise  # it is the help
    except click.UsageError as error:
        # One line: click lists choices below each other.
        message = " ".join(error.format_message().split())
        command = "incarnate" if error.ctx is None else error.ctx.command_path
        raise UsageFailure(message, f"{command} --help") from error


@contextmanager
def _file_errors() -> Generator[None]:
    try:
        yield
    except IncarnateError:
        raise  # a timeout of ours is a system error too
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # whoever read our output has gone: click ends quietly
        raise _file_failure(error) from error


def _file_failure(error: OSError) -> Failure:
    why = error.strerror or str(error)
    if not isinstance(error.filename, str):  # what is read and written by its name is told by who does it
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        hint = "make room, or send the output somewhere else" if full else "run it again, and check the disk"
        return Failure(f"cannot write the output: {why}" if full else why, hint)
    if error.errno in DENIALS:
        return Failure(f"{error.filename}: {denied(error.filename)}", PERMISSIONS_HINT)
    return Failure(f"{error.filename}: {why}", "check the path")
