"""The JSONL store: a folder, and in it a journal for each activation that `less` and `jq` can read.

A write is one commit at the end of one journal, decided and written under the lock of the activation, upon the journal
as it is then, whoever wrote to it last. Nothing is ever overwritten. Readers take no lock and never write.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from incarnate.domain.errors import ClosedError, ForkedError, LogCorruptionError, ReadOnlyError, StoreFileError
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.jsonl_archive import fork, is_due, remove_swept, sweep
from incarnate.storage.jsonl_folder import JsonlFolder
from incarnate.storage.jsonl_journal import Journal, key_in
from incarnate.storage.jsonl_log import JsonlLog
from incarnate.storage.jsonl_writer import JsonlWriter, Writing
from incarnate.storage.paths import path_in
from incarnate.storage.port import ActivationInfo, Snapshot, Store, Swept

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from incarnate.domain.decisions import Decision
    from incarnate.storage.port import Decide

__all__ = ["Durability", "JsonlStore"]

Durability = Literal["commit", "process"]

_MOST_OPEN = 128  # journals, with up to seven descriptors each, of the 1,024 that a process may usually have


class JsonlStore(Store):
    """Logs in one folder.

    Args:
        path: the folder, made for its owner alone if it is not there.
        durability: `commit` syncs the disk at every commit; `process` only where I11 asks for it, so that events may
            be lost to a power cut, though not to the death of the process.
        busy_seconds: how long to wait for another process before `StoreBusyError`.
        segment_bytes: a journal goes on in a new file when one would become longer.
        read_only: never write; the folder must exist.

    Raises:
        StoreFileError: the folder is no store of ours, is from a newer version, or cannot be opened.
    """

    def __init__(
        self,
        path: str,
        *,
        durability: Durability = "commit",
        busy_seconds: float = 5.0,
        segment_bytes: int = 64 * 1024 * 1024,
        read_only: bool = False,
    ) -> None:
        self.url = f"jsonl:///{path_in(path)}"
        self._folder = JsonlFolder(os.path.abspath(path), read_only=read_only)  # noqa: PTH100 - links stay; the process may go elsewhere
        folder = self._folder
        self._writing = Writing(durability == "commit", busy_seconds, segment_bytes, folder.touch, folder.look)
        self._read_only = read_only
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.RLock()  # a signal handler may come in while it is held
        self._writers: OrderedDict[ActivationKey, JsonlWriter] = OrderedDict()
        self._keys: dict[str, ActivationKey] = {}  # by the name of their folder

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        writer = self._writers.get(key)
        if writer is None or self._read_only or self._closed or os.getpid() != self._pid:
            writer = self._to_write(key)
        writer.used = True
        return writer.append_alone(decide) or writer.transact((decide,), now_ms)

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        return self._to_write(key).transact(decides, now_ms)

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        yield self._log(key)

    def activations(self) -> Iterator[ActivationInfo]:
        for key in self._all_keys():
            log = self._log(key, keep=False)
            if log.seen is not None and not log.seen.fold.swept:
                fold, head = log.seen.fold, log.head
                updated_ms = fold.updated_ms if head.next_offset else 0
                yield ActivationInfo(key, head, fold.created_ms, max(fold.created_ms, updated_ms))

    def keys(self) -> Iterator[ActivationKey]:
        for key in self._all_keys(damaged=True):
            try:
                log = self._log(key, keep=False)
            except (LogCorruptionError, StoreFileError):
                yield key
            else:
                if log.seen is not None and not log.seen.fold.swept:
                    yield key

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        target = self._to_write(new_key)
        return fork(self._log(key), target, offset, now_ms)

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        self._check_writable()
        done = [
            sweep(self._to_write(key), before_ms)
            for key in (self._all_keys() if keys is None else sorted(set(keys)))
            if is_due(self._log(key, keep=False), before_ms)
        ]
        return Swept(
            sum(one.activations for one in done), sum(one.rewinds for one in done), sum(one.events for one in done)
        )

    def vacuum(self) -> None:
        self._check_writable()
        for key in self._all_keys():
            remove_swept(self._to_write(key))

    def version(self) -> int:
        """A number drawn at every commit, this process's own too."""
        self._check_usable()
        return self._folder.version()

    def damage(self) -> Iterator[str]:
        self._check_usable()
        for folder in self._folder.journals():
            try:
                key_in(folder)
            except (LogCorruptionError, StoreFileError) as error:  # it has no key to be listed by
                yield str(error)

    def close(self) -> None:
        if os.getpid() != self._pid or self._closed:
            return  # the files are the parent's
        with self._lock:
            self._closed = True
            writers = list(self._writers.values())
            self._writers.clear()
        for writer in writers:
            writer.close()
        self._folder.close()

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:  # the child would share the parent's locks
            raise ForkedError("the process was forked after this store was opened")
        if self._closed:
            raise ClosedError(f"{self.url} is closed")

    def _check_writable(self) -> None:
        self._check_usable()
        if self._read_only:
            raise ReadOnlyError(f"{self.url} was opened read-only")

    def _to_write(self, key: ActivationKey) -> JsonlWriter:
        self._check_writable()
        return self._writer(key)

    def _writer(self, key: ActivationKey) -> JsonlWriter:
        """The one of `key`. Those used last stay open; another opening of the same journal does no harm."""
        writer = self._writers.get(key)
        if writer is None:
            with self._lock:
                self._check_usable()
                writer = self._writers.setdefault(
                    key, JsonlWriter(Journal(self._folder.journal(key), key), self._writing)
                )
                while len(self._writers) > _MOST_OPEN:
                    self._drop_one()
        writer.used = True
        return writer

    def _drop_one(self) -> None:
        """Let go of the one that was opened longest ago and not used since the last look at it."""
        while True:
            key, writer = self._writers.popitem(last=False)
            if not writer.used:
                return
            writer.used = False
            self._writers[key] = writer

    def _log(self, key: ActivationKey, *, keep: bool = True) -> JsonlLog:
        """What is there of `key`; `keep` its files open. A listing does not: those in use would have to make room."""
        self._check_usable()
        writer = self._writer(key) if keep else self._writers.get(key)
        journal = Journal(self._folder.journal(key), key) if writer is None else writer.journal
        with journal.lock:
            return JsonlLog(journal, journal.look())

    def _all_keys(self, *, damaged: bool = False) -> list[ActivationKey]:
        """Every key; with `damaged`, a journal that does not even tell its key is passed over."""
        self._check_usable()
        for folder in self._folder.journals():
            if folder.name not in self._keys:
                with suppress(*((LogCorruptionError, StoreFileError) if damaged else ())):
                    key = key_in(folder)
                    if key is not None:
                        self._keys[folder.name] = key
        return sorted(self._keys.values())
