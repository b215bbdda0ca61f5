"""The index of a journal: how much it spares, and that it is believed only where the journal bears it out."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from incarnate.storage.jsonl import JsonlStore
from tests.support.stores import Log, checkpoint, note

EVENTS = 3000


def fill(folder: Path, segment_bytes: int = 1 << 26) -> None:
    with JsonlStore(str(folder), durability="process", segment_bytes=segment_bytes) as store:
        log = Log(store)
        for offset in range(0, EVENTS, 100):
            log.append(offset, [note(f"e{number}", "x" * 600) for number in range(offset, offset + 100)])
            log.put(checkpoint(f"cp-{offset}", offset))
        log.append(EVENTS - 50, [note("last", "y")])
        log.append(EVENTS - 49, [note("end", "y")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "journals"
    fill(path)
    return path


def index(folder: Path) -> Path:
    [found] = folder.glob("*/index")
    return found


@contextmanager
def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Generator[list[int]]:
    """How many bytes are read of files."""
    sizes: list[int] = []
    pread = os.pread

    def counting(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        sizes.append(len(data))
        return data

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", counting)
        yield sizes


def everything(folder: Path) -> tuple[object, ...]:
    with JsonlStore(str(folder), read_only=True) as store:
        log = Log(store)
        with store.snapshot(log.key) as snapshot:
            middle = [appended.event.id for appended in snapshot.appended(1490, 1510)]
            archived = [appended.event.id for appended in snapshot.superseded(1, 0, EVENTS, 1 << 30)]
            return log.head, middle, archived, snapshot.rewinds(), snapshot.checkpoint_ids(), log.latest, log.names[-7:]


def test_opening_reads_the_end_of_the_journal_and_a_replay_seeks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(file.stat().st_size for file in folder.glob("*/*.jsonl"))
    with counted_reads(monkeypatch) as sizes, JsonlStore(str(folder)) as store:
        log = Log(store)
        assert EVENTS - 48 == log.head.next_offset
        opened = sum(sizes)
        with store.snapshot(log.key) as snapshot:
            assert ["e2000"] == [appended.event.id for appended in snapshot.page(2000, 2001, 1)]

    assert size > 2_000_000
    assert opened < 100_000
    assert sum(sizes) - opened < 400_000


def test_a_rewind_reads_nothing_of_what_it_supersedes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlStore(str(folder)) as store:
        log = Log(store)
        before = log.head
        with counted_reads(monkeypatch) as sizes:
            log.append(10, "x")

        assert 0 == sum(sizes)
        assert (11, before.generation + 1) == (log.head.next_offset, log.head.generation)


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def removed(file: Path) -> None:
    file.unlink()


def of_another_version(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"index 1", b"index 9"))


def of_another_journal(file: Path) -> None:
    other = file.parent.parent.parent / "other"
    fill(other)
    index(other).replace(file)


@pytest.mark.parametrize("harm", [truncated, flipped, emptied, removed, of_another_version, of_another_journal])
def test_an_index_that_is_missing_or_wrong_is_made_anew_from_the_journal(
    folder: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, file = everything(folder), index(folder)
    harm(file)

    assert before == everything(folder)
    with JsonlStore(str(folder)) as store:
        Log(store).claim()
    with counted_reads(monkeypatch) as sizes, JsonlStore(str(folder)) as store:
        assert 2 == Log(store).head.fence
    assert sum(sizes) < 100_000
    assert before[1:] == everything(folder)[1:]


def test_an_index_that_is_older_than_the_journal_is_read_on_from(folder: Path) -> None:
    old = index(folder).read_bytes()
    with JsonlStore(str(folder)) as store:
        log = Log(store)
        log.append(log.head.next_offset, [note("more", "z" * 100_000)])
        log.append(2000, "x")
        log.next_turn()
    newer = everything(folder)
    assert old != index(folder).read_bytes()
    index(folder).write_bytes(old)

    assert newer == everything(folder)


def test_an_index_of_more_than_the_journal_holds_is_not_believed(folder: Path) -> None:
    [file] = folder.glob("*/*.jsonl")
    data = file.read_bytes()
    end = data.index(b'\n{"at":', len(data) // 2) + 1  # where a checkpoint begins
    file.write_bytes(data[:end])

    with JsonlStore(str(folder)) as store:
        log = Log(store)
        assert log.offsets == list(range(log.head.next_offset))
        assert 1000 < log.head.next_offset < 2000


def test_an_index_of_many_segments_spares_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "many"
    fill(folder, segment_bytes=200_000)
    before = everything(folder)
    with counted_reads(monkeypatch) as sizes, JsonlStore(str(folder)) as store:
        assert before[0] == Log(store).head

    assert len(list(folder.glob("*/*.jsonl"))) > 8
    assert sum(sizes) < 600_000


def test_where_an_index_cannot_be_saved_nothing_is_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index(folder).unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, JsonlStore(str(folder)) as store:
        patched.setattr("tempfile.mkstemp", full)
        log = Log(store)
        log.append(log.head.next_offset, [note("big", "x" * 100_000)])

    assert [] == list(folder.glob("*/index"))
    with JsonlStore(str(folder)) as store:
        assert "big" == Log(store).events[-1].event.id
