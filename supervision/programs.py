"""Whether a program can be found, as starting it would."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.domain.errors import HarnessNotStartedError
from incarnate.supervision.interpreters import is_bare_text, needed_by

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_program"]

_MOST_INTERPRETERS = 5  # a script may be another one's interpreter; so many Linux follows


def find_program(program: str, env: Mapping[str, str], cwd: str | None = None) -> Path:
    """The file that would be run: in the folders of `PATH` of `env`, or where its own path says, as seen from `cwd`.

    The interpreter of a script and the loader of a binary must be there too. What else the kernel thinks of a file is
    seen at the start alone, such as one for another processor.

    Raises:
        HarnessNotStartedError: there is no such program, or it may not be run.
    """
    here = Path(cwd or ".")
    if not here.is_dir():
        raise HarnessNotStartedError(program, f"its working directory: {os.strerror(errno.ENOENT)}")
    if not program:
        raise HarnessNotStartedError("''", os.strerror(errno.ENOENT))
    folders = ["."] if "/" in program else os.get_exec_path(dict(env))
    found = _executable([here / folder / program for folder in folders])
    if isinstance(found, str):
        raise HarnessNotStartedError(program, found)
    if is_bare_text(found):
        raise HarnessNotStartedError(program, f"{os.strerror(errno.ENOEXEC)}: it is a text that does not begin with #!")
    _check_needed(program, found, env, here)
    return found


def _executable(places: list[Path]) -> Path | str:
    """The first that may be run, or why none may."""
    found = next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)
    if found is not None:
        return found
    return os.strerror(errno.EACCES if any(place.exists() for place in places) else errno.ENOENT)


def _check_needed(program: str, file: Path, env: Mapping[str, str], here: Path) -> None:
    level = [file]
    for _ in range(_MOST_INTERPRETERS):
        needed, level = [one for file in level for one in needed_by(file)], []
        for one in needed:
            folders = os.get_exec_path(dict(env)) if one.is_searched and "/" not in one.name else ["."]
            found = _executable([here / folder / one.name for folder in folders])
            if isinstance(found, str):
                raise HarnessNotStartedError(program, f"{one.name!r}, which it is run with: {found}")
            level.append(found)
