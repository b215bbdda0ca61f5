"""Disks that are full, fail or go away under a JSONL store: what is told, and that it works again afterwards."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from incarnate.domain.errors import OutcomeUnknownError, StoreFileError
from incarnate.storage.jsonl import JsonlStore
from tests.support.stores import Log, checkpoint, note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journals"


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    with JsonlStore(str(folder)) as store:
        log = Log(store)
        log.append(0, "abc")
        yield log


def fails(number: int, calls: int = 1, first: Callable[..., object] | None = None) -> Any:
    """A system call that fails some times."""
    left = [calls]

    def call(*arguments: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            if first is not None:
                return first(*arguments)
            raise OSError(number, os.strerror(number))
        raise AssertionError

    return call


def journal(folder: Path) -> Path:
    [found] = [path for path in folder.iterdir() if path.is_dir()]
    return found


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("part", [0, 1, 40])
def test_a_write_that_fails_leaves_no_part_of_it_and_the_next_one_works(
    log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, part: int
) -> None:
    before = (journal(folder) / "00000001.jsonl").read_bytes()
    write = os.pwrite
    calls: list[int] = []

    def full(descriptor: int, data: bytes, byte: int) -> int:
        calls.append(len(data))
        if len(calls) == 1 and part:
            return write(descriptor, data[:part], byte)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(StoreFileError, match=os.strerror(number)):
            log.append(3, "d")

    assert before == (journal(folder) / "00000001.jsonl").read_bytes()
    assert "abc" == log.names
    log.append(3, "x")
    assert "abcx" == Log(JsonlStore(str(folder))).names


def test_part_of_a_write_that_could_not_be_cut_off_is_cut_off_by_the_next(
    log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(
            os, "pwrite", lambda fd, data, byte: write(fd, data[:30], byte) if len(data) > 150 else fails(28)()
        )
        patched.setattr(os, "ftruncate", fails(errno.EIO, 9))
        with pytest.raises(StoreFileError):
            log.append(3, [note("d", "x" * 70)])
    assert "abc" == log.names
    log.append(3, "x")

    assert "abcx" == Log(JsonlStore(str(folder))).names
    assert [] == [path for path in journal(folder).iterdir() if "torn" in path.name]


def test_a_failed_sync_is_an_unknown_outcome_and_the_next_write_makes_it_known(
    log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fails(errno.EIO))
        with pytest.raises(OutcomeUnknownError, match="the sync failed"):
            log.append(3, "d", expected=(0, 3))
    synced: list[bytes] = []
    write = os.write

    def seen(descriptor: int, data: bytes) -> int:
        synced.append(bytes(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", seen)
    log.append(3, "d", expected=(0, 3))  # the repeat is answered from the log

    assert "abcd" == log.names == Log(JsonlStore(str(folder))).names
    assert any(b'"id":"d"' in data for data in synced), "what was unsure is written again before it is believed"


def test_while_syncs_fail_nothing_is_acknowledged(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fails(errno.EIO, 9))
        with pytest.raises(OutcomeUnknownError):
            log.append(3, "d")
        for _ in range(3):
            with pytest.raises(StoreFileError):
                log.append(4, "e")
            with pytest.raises(StoreFileError):
                log.lease(1)
    assert "abcd" == log.names
    log.append(4, "e")

    assert "abcde" == log.names


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_journal_or_segment_that_cannot_be_made_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with JsonlStore(str(folder), segment_bytes=1) as store:
        log = Log(store)
        for expected in ("", "a"):
            with monkeypatch.context() as patched:
                if call == "replace":
                    patched.setattr(Path, call, fails(errno.ENOSPC, 9))
                elif call == "fsync":
                    patched.setattr("incarnate.storage.jsonl_files.to_disk", fails(errno.ENOSPC, 9))
                else:
                    patched.setattr(os, call, fails(errno.ENOSPC, 9))
                with pytest.raises(StoreFileError, match="the disk is full; nothing was written") as refused:
                    log.append(len(expected), "x")
                assert refused.value.is_full
            assert expected == log.names
            log.append(len(expected), "a" if not expected else "b")
            log.append(1, "") if expected else None

        assert "ab" == log.names == Log(JsonlStore(str(folder))).names
    assert [] == list(journal(folder).glob("*.new"))


@pytest.mark.parametrize("before", ["abc", "abcd"])
def test_a_folder_that_was_removed_is_told_and_used_again_when_it_is_back(log: Log, folder: Path, before: str) -> None:
    log.append(3, before[3:])
    place = journal(folder)
    shutil.copytree(place, folder.parent / "copy")
    shutil.rmtree(place)
    for use in (lambda: log.append(len(before), "e"), log.claim, lambda: log.names):
        with pytest.raises(StoreFileError):
            use()
    assert not place.exists()
    shutil.copytree(folder.parent / "copy", place)

    log.append(len(before), "e")
    assert f"{before}e" == log.names == Log(JsonlStore(str(folder))).names


def test_a_journal_that_was_replaced_by_a_shorter_one_is_told_and_one_that_was_cut_too(log: Log, folder: Path) -> None:
    file = journal(folder) / "00000001.jsonl"
    old = file.read_bytes()
    log.append(3, "defg")
    new = file.read_bytes()
    file.with_name("restored").write_bytes(old)
    file.with_name("restored").replace(file)

    for use in (lambda: log.append(7, "x"), log.claim, lambda: log.names):
        with pytest.raises(StoreFileError, match="was replaced by one that does not hold what this one held"):
            use()
    file.with_name("restored").write_bytes(new)
    file.with_name("restored").replace(file)
    assert "abcdefg" == log.names
    log.append(7, "x")
    assert "abcdefgx" == log.names
    os.truncate(file, len(old))
    with pytest.raises(StoreFileError, match="has become shorter while it was open"):
        log.append(8, "y")
    assert "abc" == Log(JsonlStore(str(folder))).names


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def deleted(path: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, path.with_name("elsewhere"))
        shutil.rmtree(path)
    else:
        shutil.copy(path, path.with_name("elsewhere"))
        path.unlink()


def replaced(path: Path) -> None:
    moved(path)
    if path.with_name("elsewhere").is_dir():
        shutil.copytree(path.with_name("elsewhere"), path)
        cut(path / "00000001.jsonl", path / "00000001.jsonl")
    else:
        cut(path.with_name("elsewhere"), path)


def cut(segment: Path, to: Path) -> None:
    """Its first line and nothing else."""
    to.write_bytes(segment.read_bytes().split(b"\n")[0] + b"\n")


def put_back(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.with_name("elsewhere").replace(path)


@pytest.mark.parametrize("lost", [moved, deleted, replaced])
@pytest.mark.parametrize("place", ["the journal", "the only segment", "the last of three segments"])
@pytest.mark.parametrize("since", ["at once", "later"])
def test_a_journal_that_is_lost_while_it_is_open_is_told_until_it_is_back(
    folder: Path, lost: Callable[[Path], None], place: str, since: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if since == "later":  # as if the folder had not been touched for long
        monkeypatch.setattr("incarnate.storage.settled._TICK_NS", -1)
    names = "abc"
    with JsonlStore(str(folder), segment_bytes=1 if "three" in place else 1 << 20) as store:
        log = Log(store)
        for offset, name in enumerate(names):
            log.append_one(offset, name)
        if since == "later":
            log.append_one(3, "d")
        before = log.names
        home = journal(folder)
        path = home if place == "the journal" else max(home.glob("*.jsonl"))
        lost(path)

        for use in (lambda: log.append_one(len(before), "x"), log.claim, lambda: log.names):
            with pytest.raises(StoreFileError, match=r"was (removed|replaced) .*while it was open|what this one held"):
                use()
        put_back(path)

        log.append_one(len(before), "y")
        assert f"{before}y" == log.names == Log(JsonlStore(str(folder))).names


@pytest.mark.parametrize("lost", [moved, deleted])
def test_a_write_behind_a_segment_that_is_lost_is_refused(folder: Path, lost: Callable[[Path], None]) -> None:
    with JsonlStore(str(folder), segment_bytes=1) as store:
        log = Log(store)
        for offset, name in enumerate("abc"):
            log.append_one(offset, name)
        first = min(journal(folder).glob("*.jsonl"))
        lost(first)
        with pytest.raises(StoreFileError, match="was removed while it was open"):
            log.append_one(3, "x")
        put_back(first)
        log.append_one(3, "d")

        assert "abcd" == log.names


def test_a_lock_file_that_was_renamed_keeps_nobody_out_and_is_made_anew(log: Log, folder: Path) -> None:
    lock = journal(folder) / "lock"
    lock.rename(lock.with_name("old"))
    log.append(3, "d")

    assert lock.exists()
    assert "abcd" == log.names


def test_a_disk_without_rights_is_told(log: Log, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    log.put(checkpoint("cp", 1))
    opened = os.open

    def read_only(path: Any, flags: int, *mode: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *mode)

    with JsonlStore(str(folder)) as store:
        other = Log(store)
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", read_only)
            assert "abc" == other.names
            with pytest.raises(StoreFileError, match="the disk is read-only"):
                other.claim()

        assert 2 == other.claim().fence


def test_i11_what_another_did_not_wait_for_reaches_the_disk_before_an_answer_rests_on_it(
    log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.lease(7)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    with JsonlStore(str(folder), durability="process") as other:
        for each in (Log(other), log):
            before = len(synced)
            assert 7 == each.lease(7).fence
            assert before < len(synced)
