"""Whether a program can be found, as starting it would."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.domain.errors import HarnessNotStartedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_program"]


def find_program(program: str, env: Mapping[str, str], cwd: str | None = None) -> Path:
    """The file that would be run: in the folders of `PATH` of `env`, or where its own path says, as seen from `cwd`.

    What the kernel thinks of the file is seen at the start alone, such as a script whose interpreter is not there.

    Raises:
        HarnessNotStartedError: there is no such program, or it may not be run.
    """
    here = Path(cwd or ".")
    if not here.is_dir():
        raise HarnessNotStartedError(program, f"its working directory: {os.strerror(errno.ENOENT)}")
    folders = ["."] if "/" in program else os.get_exec_path(dict(env))
    places = [here / folder / program for folder in folders]
    found = next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)
    if found is None:
        is_there = any(place.exists() for place in places)
        raise HarnessNotStartedError(program, os.strerror(errno.EACCES if is_there else errno.ENOENT))
    return found
