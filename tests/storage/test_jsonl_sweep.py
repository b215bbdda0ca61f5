"""Sweeping a JSONL store: segments are written anew without what was swept, wherever others stand in them."""

from pathlib import Path

import pytest

from incarnate.domain.commands import AppendMany, Retire
from incarnate.domain.errors import RetiredError, StoreFileError
from incarnate.domain.keys import ActivationKey
from incarnate.storage import jsonl_archive
from incarnate.storage.jsonl import JsonlStore
from incarnate.storage.port import Swept
from tests.support.stores import KEY, Log, checkpoint, note

OLD, YOUNG = 10, 100
ALL = 1 << 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journals"


def fill(folder: Path, segment_bytes: int) -> None:
    """A log with six rewinds, of which every other one is old, whose events lie in one another."""
    with JsonlStore(str(folder), segment_bytes=segment_bytes) as store:
        log = Log(store)
        log.append(0, [note(f"live-{n}", "x" * 50) for n in range(20)])
        for number, cut in enumerate((12, 16, 8, 10, 5, 5)):
            old = number % 2 == 0
            kind = "young" if old else "old"  # the next rewind supersedes what this one writes
            batch = tuple(note(f"{kind}-{number}-{n}", "y" * 50) for n in range(10))
            log.do(AppendMany(1, cut, batch), OLD if old else YOUNG)
            log.put(checkpoint(f"cp-{number}", cut + 3))


def everything(store: JsonlStore) -> tuple[object, ...]:
    log = Log(store)
    with store.snapshot(KEY) as snapshot:
        archives = [
            [appended.event.id for appended in snapshot.superseded(rewind.generation, 0, ALL, ALL)]
            for rewind in snapshot.rewinds()
        ]
        return log.everything(), archives, snapshot.checkpoint_ids(), [r.swept for r in snapshot.rewinds()]


def text(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*/*.jsonl")))


@pytest.mark.parametrize("segment_bytes", [1, 1500, 1 << 26])
def test_a_sweep_removes_old_archives_from_the_disk_and_nothing_else(folder: Path, segment_bytes: int) -> None:
    fill(folder, segment_bytes)
    with JsonlStore(str(folder)) as other, JsonlStore(str(folder)) as store:
        before = everything(other)
        archives: list[list[str]] = before[1]  # type: ignore[assignment]
        swept = store.sweep(YOUNG)
        after = everything(store)

        assert Swept(0, 3, sum(map(len, archives[::2]))) == swept
        assert [[], archives[1], [], archives[3], [], archives[5]] == after[1]
        assert (before[0], before[2], [True, False] * 3) == (after[0], after[2], after[3])
        assert after == everything(other)
        gone = {name for names in archives[::2] for name in names}
        assert [] == [name for name in gone if f'"id":"{name}"'.encode() in text(folder)]
        assert all(f'"id":"{name}"'.encode() in text(folder) for names in archives[1::2] for name in names)
        Log(other).append(15, "z")
        assert [*Log(store).events] == [*Log(other).events]
    with JsonlStore(str(folder), read_only=True) as reader:
        assert "z" == Log(reader).events[-1].event.id
        assert after[1] == everything(reader)[1][:6]  # type: ignore[index]


def test_a_second_sweep_or_vacuum_finds_nothing_to_do(folder: Path) -> None:
    fill(folder, 1500)
    with JsonlStore(str(folder)) as store:
        store.sweep(YOUNG)
        once = sorted((path.name, path.stat().st_ino) for path in folder.glob("*/*.jsonl"))
        assert Swept(0, 0, 0) == store.sweep(YOUNG)
        store.vacuum()
        assert once == sorted((path.name, path.stat().st_ino) for path in folder.glob("*/*.jsonl"))
        assert Swept(0, 3, 24) == store.sweep(ALL)


def test_what_a_failed_sweep_left_is_removed_by_the_next_vacuum(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, 1500)

    def full(path: Path, *_: object) -> None:
        raise StoreFileError(str(path), "the disk is full; nothing was written")

    with JsonlStore(str(folder)) as store:
        before = everything(store)
        with monkeypatch.context() as patched:
            patched.setattr(jsonl_archive, "make_segment", full)
            with pytest.raises(StoreFileError):
                store.sweep(ALL)
        assert [[]] * 6 == everything(store)[1]
        assert before[0] == everything(store)[0]
        assert b"young-" in text(folder)
        store.vacuum()

        assert before[0] == everything(store)[0]
        assert text(folder).count(b'"event":') == len(Log(store).events)


def test_a_swept_activation_leaves_one_small_segment(folder: Path) -> None:
    fill(folder, 1500)
    with JsonlStore(str(folder)) as other, JsonlStore(str(folder)) as store:
        log = Log(store)
        assert 15 == Log(other).head.next_offset
        with store.snapshot(KEY) as snapshot:
            before = snapshot.rewinds()
        log.do(Retire(), OLD)
        store.sweep(YOUNG)

        assert ["00"] == [path.name[:2] for path in folder.glob("*/*.jsonl")]
        assert len(text(folder)) < 2000
        for again in (store, other, JsonlStore(str(folder))):
            assert ([], None, 0) == (Log(again).events, Log(again).latest, Log(again).head.next_offset)
            assert ([], []) == (list(again.activations()), list(again.keys()))
            with again.snapshot(KEY) as snapshot:
                assert [r.cut for r in before] == [r.cut for r in snapshot.rewinds()]
            with pytest.raises(RetiredError):
                Log(again).claim()


def test_a_fork_of_many_segments_holds_each_event_and_checkpoint_once(folder: Path) -> None:
    fill(folder, 500)
    forked = ActivationKey("pik", "forked")
    with JsonlStore(str(folder)) as store:
        store.fork(KEY, forked, 12, 7)
        store.sweep(ALL)

        assert Log(store).events[:12] == Log(store, forked).events
        with JsonlStore(str(folder)) as again, again.snapshot(forked) as snapshot:
            assert [8] == [found.offset for name in snapshot.checkpoint_ids() if (found := snapshot.checkpoint(name))]
        Log(store, forked).append(12, "z")
        assert "z" == Log(store, forked).events[-1].event.id
