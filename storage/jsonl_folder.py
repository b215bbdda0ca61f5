"""The folder of a JSONL store: what marks it as one, the folders of its journals, and the sign of a change."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.domain.errors import StoreFileError
from incarnate.domain.journal import STORE_MARK, store_version
from incarnate.domain.transcripts.names import file_name
from incarnate.storage.jsonl_files import Handle, failed
from incarnate.storage.transcript_files import folder_to_disk, to_disk, write_all

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = ["JsonlFolder"]

_MARK = "incarnate.json"
_CHANGED = "changed"
_SIGN_BYTES = 16
_VERSION = 1


class JsonlFolder:
    """The folder at the absolute `path`; made, with all that it needs, unless `read_only`.

    Raises:
        StoreFileError: it is no store of ours, is from a newer version, or cannot be opened; it was left untouched.
    """

    def __init__(self, path: str, *, read_only: bool) -> None:
        self.path = Path(path)
        self._sign = secrets.randbits(64)
        try:
            os.fsencode(path)
            self._admit(read_only=read_only)
            self._flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
            self._changed: Handle | None = None
            with suppress(FileNotFoundError):
                self._changed = Handle(self.path / _CHANGED, self._flags)
        except OSError as error:
            raise failed(error, self.path) from error
        except ValueError as error:  # NUL in a path, a lone surrogate
            raise StoreFileError(path, f"cannot be looked up ({error})") from error

    def journal(self, key: ActivationKey) -> Path:
        """The folder of a journal: a name of its own for each key, on every common file system."""
        return self.path / file_name(str(key)).removesuffix(".jsonl")

    def journals(self) -> list[Path]:
        """The folders of all journals."""
        try:
            return [Path(entry.path) for entry in os.scandir(self.path) if "~" in entry.name and entry.is_dir()]
        except OSError as error:
            raise failed(error, self.path) from error

    def touch(self) -> None:
        """Let others see that something was written. Where it fails they only see it later."""
        changed = self._changed
        if changed is not None:
            # From a number of its own in each store: of two that count from the same one would be missed.
            self._sign = (self._sign + 1) % (1 << 64)
            try:
                os.pwrite(changed.fd, b"%016x" % self._sign, 0)
            except OSError:  # suppress() would cost as much as the write
                return

    def version(self) -> int:
        """The sign of the last change."""
        try:
            changed = self._sign_file()
            return int(os.pread(changed.fd, _SIGN_BYTES, 0) or b"0", 16)
        except (FileNotFoundError, ValueError):
            return 0
        except OSError as error:
            raise failed(error, self.path) from error

    def look(self) -> None:
        """Find the sign of the folder that is there now. Where it fails others only see later what is written."""
        with suppress(OSError):
            self._sign_file()

    def close(self) -> None:
        """Let go of it."""
        self._changed = None

    def _sign_file(self) -> Handle:
        """What holds the sign. Of a folder that was put back it is another file: the old one says no more for ever."""
        changed = self._changed
        if changed is None or not changed.is_in_place():
            # A folder without a mark may be somebody else's by now, or to become a store: a file of ours in it
            # would make it one that `_admit` refuses.
            flags = self._flags if (self.path / _MARK).exists() else self._flags & ~os.O_CREAT
            changed = self._changed = Handle(self.path / _CHANGED, flags)
        return changed

    def _admit(self, *, read_only: bool) -> None:
        path = self.path
        if not path.exists():
            if read_only:
                raise StoreFileError(str(path), "does not exist", hint="check the path, or open it without read_only")
            if not path.parent.is_dir():
                raise StoreFileError(str(path), "its folder does not exist", hint=f"mkdir -p {path.parent}")
            path.mkdir(mode=0o700, exist_ok=True)
            folder_to_disk(path.parent)
        if not path.is_dir():
            raise StoreFileError(str(path), "is no folder")
        if not self._is_marked():
            if [name for name in os.listdir(path) if not name.startswith(".")] and not self._is_marked():  # noqa: PTH208
                raise StoreFileError(str(path), "holds other files and is no store of incarnate")
            if read_only:
                hint = "check the path, or open it without read_only"
                raise StoreFileError(str(path), "is no store: nothing was written to it yet", hint=hint)
            self._mark()

    def _is_marked(self) -> bool:
        try:
            version = store_version((self.path / _MARK).read_bytes())
        except FileNotFoundError:
            return False
        if version is None:
            raise StoreFileError(str(self.path / _MARK), "is not what incarnate writes")
        if version > _VERSION:
            reason = f"was written by a newer version of incarnate (format {version}, this one knows {_VERSION})"
            raise StoreFileError(str(self.path), reason, hint="upgrade incarnate")
        return True

    def _mark(self) -> None:
        descriptor, unfinished = tempfile.mkstemp(dir=self.path, prefix=".mark-")  # mode 0600
        try:
            try:
                write_all(descriptor, STORE_MARK)
                to_disk(descriptor)
            finally:
                os.close(descriptor)
            with suppress(FileExistsError):  # another process was first
                os.link(unfinished, self.path / _MARK)
        finally:
            Path(unfinished).unlink()
        folder_to_disk(self.path)
