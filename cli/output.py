"""What a command writes into a file that the user named."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.cli.errors import Failure
from incarnate.storage.permissions import DENIALS, PERMISSIONS_HINT

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import BinaryIO

__all__ = ["written_whole"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def written_whole(path: Path) -> Generator[BinaryIO]:
    """A stream whose bytes are at `path` when the block ends well, all of them; else what was there still is.

    A new file is its owner's alone, as a log may hold secrets. A pipe or a device is written to as it is.

    Raises:
        Failure: the system does not let it be written.
    """
    try:
        with _whole(Path(os.path.realpath(path))) as opened:  # a link stays one; resolve() fails at one to itself
            yield opened
    except BrokenPipeError:
        raise
    except OSError as error:
        # What it says names a file that the user knows nothing of, or none.
        raise Failure(f"cannot write {path}: {error.strerror or error}", _next_step(path, error)) from error


def _next_step(path: Path, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return f"mkdir -p {shlex.quote(str(path.parent))}, or name another file"
    if error.errno in DENIALS:
        return f"{PERMISSIONS_HINT}, or name another file"
    return "name another file" + (", or make room" if error.errno in _FULL else "")


@contextmanager
def _whole(path: Path) -> Generator[BinaryIO]:
    mode = 0o600
    with suppress(FileNotFoundError):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            with path.open("wb") as opened:
                yield opened
            return
        mode = stat.S_IMODE(status.st_mode)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}-")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield opened
            opened.flush()
            os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
