"""Disks that are full or read-only, files that are deleted, replaced or locked, on SQLite and JSONL.

Each time: an error of ours, nothing acknowledged lost, and the store usable again when the cause is gone.
"""

import fcntl
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from incarnate.domain.commands import Claim
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.domain.errors import (
    IncarnateError,
    OutcomeUnknownError,
    StoreBusyError,
    StoreFileError,
)
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from tests.support.faults import agent, goes_on
from tests.support.stores import KEY, Log, jsonl_url, note, sqlite_url


class OnDisk(NamedTuple):
    """A back end whose files can be harmed: its URL, and the file that holds the log of KEY."""

    url: Callable[[Path, str], str]
    file: Callable[[Path], Path]
    lock: Callable[[Path], Generator[None]]
    remove: Callable[[Path, Path], object]


def move_away(file: Path, to: Path) -> None:
    file.rename(to)


def keep_a_copy(file: Path, to: Path) -> None:
    shutil.copy(file, to)
    file.unlink()


def journal(folder: Path) -> Path:
    [found] = [path for path in (folder / "journals").iterdir() if path.is_dir()]
    return found


def locked_database(folder: Path) -> Generator[None]:
    with closing(sqlite3.connect(folder / "sessions.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield


def locked_journal(folder: Path) -> Generator[None]:
    with (journal(folder) / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


ON_DISK = {
    "sqlite": OnDisk(sqlite_url, lambda folder: folder / "sessions.db", locked_database, move_away),
    "jsonl": OnDisk(jsonl_url, lambda folder: journal(folder) / "00000001.jsonl", locked_journal, keep_a_copy),
}


@pytest.fixture(params=ON_DISK)
def backend(request: pytest.FixtureRequest) -> OnDisk:
    return ON_DISK[request.param]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk))
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system may be mounted here, as root in a container may: {done.stderr}")


def fill(log: Log, size: int = 20_000) -> tuple[list[str], IncarnateError]:
    """Append until it fails; what was acknowledged, and the error."""
    written: list[str] = []
    try:
        while len(written) < 1000:
            [appended] = log.append(len(written), [note(f"e{len(written)}", "x" * size)])
            written.append(appended.event.id)
    except IncarnateError as error:
        return written, error
    raise AssertionError("the disk is never full")


def names(store: Store) -> list[str]:
    return [appended.event.id for appended in Log(store, KEY).events]


def test_a_full_disk_is_told_and_the_store_works_again_when_there_is_room(backend: OnDisk, disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(1_900_000))
    with open_store(backend.url(disk, "")) as store:
        log = Log(store, KEY)
        written, error = fill(log)
        assert isinstance(error, StoreFileError | OutcomeUnknownError)
        assert "full" in str(error)
        for _ in range(3):  # it stays an error, and what is there can be read meanwhile
            with pytest.raises(IncarnateError, match="full"):
                log.append(log.head.next_offset, [note("more", "x" * 20_000)])
            assert written == names(store)[: len(written)]
        assert len(names(store)) <= len(written) + 1
        ballast.unlink()
        log.append(log.head.next_offset, "z")

        assert "z" == names(store)[-1]
    goes_on(backend.url(disk, ""), KEY)


def test_a_store_that_cannot_be_made_on_a_full_disk_is_made_when_there_is_room(backend: OnDisk, disk: Path) -> None:
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1000))
    with pytest.raises(IncarnateError), open_store(backend.url(disk, "")) as store:
        Log(store, KEY).claim()
    ballast.unlink()

    goes_on(backend.url(disk, ""), KEY)


def test_a_disk_that_is_read_only_is_told_and_can_be_read(backend: OnDisk, disk: Path) -> None:
    with open_store(backend.url(disk, "")) as store:
        Log(store, KEY).append(0, "abc")
    mount("-o", "remount,ro", str(disk))
    with pytest.raises(StoreFileError), open_store(backend.url(disk, "")) as store:
        Log(store, KEY).append(3, "d")
    with open_store(backend.url(disk, ""), read_only=True) as store:
        assert ["a", "b", "c"] == names(store)
    mount("-o", "remount,rw", str(disk))

    goes_on(backend.url(disk, ""), KEY)


@pytest.fixture
def of_others() -> Iterator[Path]:
    """A folder that its owner may write to, and everybody else may only read."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


def test_a_user_without_rights_is_told_and_can_read(backend: OnDisk, of_others: Path) -> None:
    with open_store(backend.url(of_others, "")) as store:
        Log(store, KEY).append(0, "abc")
    for path in [of_others, *of_others.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with agent("as_nobody", backend.url(of_others, "")) as child:
        said = child.end()
    for path in [of_others, *of_others.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)

    assert ["StoreFileError", "read 3"] == said
    goes_on(backend.url(of_others, ""), KEY)


@pytest.fixture
def log(backend: OnDisk, tmp_path: Path) -> Iterator[Log]:
    """An open store with events, on which both its writer and its readers have been at work."""
    with open_store(backend.url(tmp_path, "?busy=0.3")) as store:
        log = Log(store, KEY)
        log.append(0, "abc")
        assert "abc" == log.names
        yield log


def test_a_file_that_is_deleted_under_an_open_store_is_told_and_used_again_when_it_is_back(
    backend: OnDisk, tmp_path: Path, log: Log
) -> None:
    file = backend.file(tmp_path)
    backend.remove(file, tmp_path / "away")
    with pytest.raises((StoreFileError, OutcomeUnknownError), match="while it was open") as told:
        log.append(3, "d")
    for use in (lambda: log.append(3, "x"), log.claim, lambda: log.names):
        with pytest.raises(StoreFileError, match="while it was open"):
            use()
    assert not file.exists()
    (tmp_path / "away").rename(file)
    expected = "abcd" if told.type is OutcomeUnknownError else "abc"  # only the first may have been written
    assert expected == log.names
    log.append(len(expected), "e")

    log.store.close()
    with open_store(log.store.url) as store:
        assert list(f"{expected}e") == names(store)


def another(folder: Path, backend: OnDisk) -> Path:
    """The file of another store, with another log of the same key."""
    folder.mkdir()
    with open_store(backend.url(folder, "")) as store:
        Log(store, KEY).append(0, "xy")
    return backend.file(folder)


def test_a_file_that_is_replaced_under_an_open_store_is_told_and_nothing_goes_to_the_new_one(
    backend: OnDisk, tmp_path: Path, log: Log
) -> None:
    file = backend.file(tmp_path)
    other = another(tmp_path / "other", backend)
    new = other.read_bytes()
    backend.remove(file, tmp_path / "away")
    other.rename(file)
    with pytest.raises((StoreFileError, OutcomeUnknownError), match="was replaced"):
        log.append(3, "d", expected=(0, 3))
    for use in (lambda: log.append(3, "x"), log.claim, lambda: log.names):
        with pytest.raises(StoreFileError, match="was replaced"):
            use()
    assert new == file.read_bytes()
    file.unlink()
    (tmp_path / "away").rename(file)
    log.append(3, "d", expected=(0, 3))  # where the outcome was unknown it is the repeat, and else the first

    assert "abcd" == log.names
    log.store.close()
    goes_on(backend.url(tmp_path, ""), KEY)


def test_a_write_during_which_the_file_is_replaced_is_not_acknowledged(tmp_path: Path) -> None:
    backend = ON_DISK["sqlite"]  # a journal is added to under the lock, and whoever replaces it takes that first
    other = another(tmp_path / "other", backend)
    with open_store(backend.url(tmp_path, "")) as store:
        Log(store, KEY).append(0, "abc")

        def replace_it(stored: StoredLog) -> Decision:
            if other.exists():
                other.replace(backend.file(tmp_path))
            return decide(stored, Claim(), None, 0)

        with pytest.raises(OutcomeUnknownError, match="was replaced while it was open"):
            store.transact(KEY, replace_it, 0)


@pytest.mark.parametrize("ends", [["-wal"], ["-shm"], ["-wal", "-shm"]], ids=" and ".join)
def test_a_write_ahead_log_that_is_deleted_under_an_open_store_is_told(ends: list[str], tmp_path: Path) -> None:
    file = ON_DISK["sqlite"].file(tmp_path)
    with open_store(ON_DISK["sqlite"].url(tmp_path, "")) as store:
        log = Log(store, KEY)
        log.append(0, "abc")
        for end in ends:
            file.with_name(file.name + end).unlink()

        with pytest.raises(OutcomeUnknownError, match="was removed while it was open"):
            log.append(3, "d")
        for use in (lambda: log.append(3, "x"), log.claim, lambda: log.names):
            with pytest.raises(StoreFileError, match="was removed while it was open"):
                use()


def test_a_lock_that_is_held_for_longer_than_the_wait_is_told(backend: OnDisk, tmp_path: Path, log: Log) -> None:
    with contextmanager(backend.lock)(tmp_path):
        began = time.monotonic()
        with pytest.raises(StoreBusyError):
            log.append(3, "d")
        assert 0.3 <= time.monotonic() - began
        assert "abc" == log.names

    log.append(3, "e")
    assert "abce" == log.names
