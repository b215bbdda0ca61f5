"""What no dialect maps yet, kept beside the log in files that a later version can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from incarnate.actors.lines import read_lines
from incarnate.domain.dialects.kept import decode_kept, encode_kept, kept_record

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from incarnate.domain.dialects.records import Piece
    from incarnate.domain.keys import ActivationKey

__all__ = ["RawRecords"]


class RawRecords:
    """The file of one activation in `folder`, which is made; a line a record, appended to, readable by its owner alone.

    Records of a file that is ingested again are not kept again. Those of a pipe, which is never read twice, are all
    kept (`again`): equal lines in equal places of two pipes are two records.
    """

    def __init__(self, folder: Path, key: ActivationKey, harness: str, *, again: bool) -> None:
        self.path = folder / f"{quote(str(key), safe='')}.jsonl"
        self._harness = harness
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._known: set[tuple[str | None, int, int, str]] | None = None if again else set(self._read())
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(descriptor, "ab")
        if self._is_torn():
            self._file.write(b"\n")

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def keep(self, piece: Piece, kind: str, file: str | None) -> int:
        """Keep one; returns how many were kept, 0 where it was before."""
        record = kept_record(self._harness, piece, kind, file)
        if self._known is not None:
            if record.identity in self._known:
                return 0
            self._known.add(record.identity)
        self._file.write(encode_kept(record))
        return 1

    def close(self) -> None:
        """Write out what is buffered and close the file."""
        self._file.close()

    def _read(self) -> list[tuple[str | None, int, int, str]]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            found = [decode_kept(line.data) for line in read_lines(file) if line.data is not None]
        return [record.identity for record in found if record is not None]

    def _is_torn(self) -> bool:
        """A kill may have left a line without its end."""
        if self.path.stat().st_size == 0:
            return False
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
