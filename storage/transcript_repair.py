"""Repair of a transcript file whose damage stands in front of valid records: the decision that opening leaves open."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from incarnate.domain.errors import StoreFileError
from incarnate.domain.transcripts.prefix import Sifted, sift
from incarnate.storage.transcript_files import Cut, open_locked, read_bytes, replace_file, save_beside, translated

__all__ = ["Repair", "repair"]


class Repair(NamedTuple):
    """What was kept of a transcript file, and what was removed from it, or would be by a dry run."""

    path: str
    rows: int
    removed: list[Cut]
    saved: str | None


def repair(path: str | os.PathLike[str], *, dry_run: bool = False) -> Repair:
    """Keep every valid record of the file, in order, and move all the rest into a file beside it.

    The file is replaced in one step when what is removed is safe on the disk; without damage it stays as it is. A dry
    run changes nothing, and may look at a file that is open in a writer.

    Raises:
        StoreFileError: it cannot be read or written, or holds no valid record at all; it was left untouched.
        StoreBusyError: a writer has it open.
    """
    try:
        file = Path(path).resolve()  # what a link leads to is repaired, the link stays
        if dry_run:
            if not file.is_file():  # a device may be read without end
                raise StoreFileError(str(file), "is no regular file", hint="check the path")
            return _report(file, _checked(file, sift(file.read_bytes())), None)
        return _repair(file)
    except (OSError, ValueError) as error:
        raise translated(error if isinstance(error, OSError) else OSError(str(error)), Path(path), "read") from error


def _repair(file: Path) -> Repair:
    descriptor = open_locked(file, create=False)
    try:
        status = os.fstat(descriptor)
        sifted = _checked(file, sift(read_bytes(descriptor, status.st_size)))
        if not sifted.removed:
            return _report(file, sifted, None)
        removed = b"".join(part.data for part in sifted.removed)
        saved = save_beside(file, sifted.removed[0].offset, removed)
        replace_file(file, sifted.kept, stat.S_IMODE(status.st_mode))
        return _report(file, sifted, str(saved))
    finally:
        os.close(descriptor)


def _checked(file: Path, sifted: Sifted) -> Sifted:
    if sifted.removed and not sifted.rows:
        hint = "check the path; a transcript without a single whole record can be moved away"
        raise StoreFileError(str(file), "holds no transcript row; nothing was changed", hint=hint)
    return sifted


def _report(file: Path, sifted: Sifted, saved: str | None) -> Repair:
    cuts = [Cut(part.line, part.offset, len(part.data), saved) for part in sifted.removed]
    return Repair(str(file), len(sifted.rows), cuts, saved)
