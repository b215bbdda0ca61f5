"""How a command fails: `Error: ...`, `Try: ...` on standard error, and an exit code that says which kind it was."""

from __future__ import annotations

import errno
import sys
from typing import IO, TYPE_CHECKING, Any

import click

from incarnate.cli.text import printable
from incarnate.domain.errors import IncarnateError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXIT_FAILED", "EXIT_INCOMPLETE", "EXIT_USAGE", "Failure", "Group", "UsageFailure"]

EXIT_FAILED = 1
EXIT_USAGE = 2  # click's own
EXIT_INCOMPLETE = 3


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


class Group(click.Group):
    """A group of commands whose errors are the library's."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the library or of a file becomes a failure."""
        try:
            return super().invoke(ctx)
        except IncarnateError as error:
            raise Failure(str(error), error.hint) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # whoever read our output has gone: click ends quietly
            raise Failure(str(error)) from error
