"""What is supervised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from incarnate.domain.dialects.base import Dialect
    from incarnate.supervision.commands import Command
    from incarnate.supervision.harness_files import HarnessFiles

__all__ = ["Harness"]


class Harness(NamedTuple):
    """Whose records they are, the command line, and what it runs in.

    `files` are its own sessions. `env` is its whole environment, this process's unless given. `go_on` is what it is
    told when it resumes, instead of the usual.
    """

    dialect: Dialect
    command: Command
    files: HarnessFiles
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    go_on: str | None = None
