import fcntl
import os
import stat
from pathlib import Path

import pytest

from incarnate.domain.errors import LogCorruptionError, StoreBusyError, StoreFileError
from incarnate.domain.transcripts.rows import UserMessageRow, encode_row
from incarnate.storage.transcript_repair import repair
from incarnate.storage.transcripts import TranscriptFile

A, B = UserMessageRow("a"), UserMessageRow("b")
LINE_A, LINE_B = encode_row(A) + b"\n", encode_row(B) + b"\n"
TORN = b'{"type":"user_mess'
DAMAGED = LINE_A + TORN + b"\n" + bytes(3) + LINE_B[:-1] + b"\r\n" + TORN


def damaged(folder: Path) -> Path:
    path = folder / "s.jsonl"
    path.write_bytes(DAMAGED)
    return path


def test_every_valid_record_is_kept_and_all_the_rest_saved_beside(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    with pytest.raises(LogCorruptionError):
        TranscriptFile.open(tmp_path, "s")
    report = repair(path)
    with TranscriptFile.open(tmp_path, "s") as transcript:
        rows = transcript.events()

    assert [A, B] == rows
    assert LINE_A + LINE_B[:-1] + b"\r\n" == path.read_bytes()
    assert report.saved is not None
    assert TORN + b"\n" + bytes(3) + TORN == Path(report.saved).read_bytes()
    assert [(2, 35, 19), (3, 54, 3), (4, 93, 18)] == [cut[:3] for cut in report.removed]
    assert 2 == report.rows


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    dry = repair(path, dry_run=True)
    untouched = path.read_bytes(), list(tmp_path.iterdir())
    wet = repair(path)

    assert (DAMAGED, [path]) == untouched
    assert dry == wet._replace(removed=[cut._replace(saved=None) for cut in wet.removed], saved=None)


def test_a_whole_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n" + LINE_A + LINE_B[:-1])
    before = path.stat()
    report = repair(path)

    assert (2, [], None) == report[1:]
    assert os.path.samestat(before, path.stat())


def test_the_mode_stays_and_a_link_leads_to_what_is_repaired(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    path.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    report = repair(link)

    assert str(path) == report.path
    assert link.is_symlink()
    assert 0o640 == stat.S_IMODE(path.stat().st_mode)


def test_a_file_that_a_writer_has_open_is_refused(tmp_path: Path) -> None:
    with TranscriptFile.open(tmp_path, "s") as transcript, pytest.raises(StoreBusyError):
        repair(transcript.path)


def test_a_writer_that_opened_the_file_before_it_was_replaced_writes_to_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = damaged(tmp_path)
    real = fcntl.flock

    def repaired_before(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        repair(path)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", repaired_before)
    with TranscriptFile.open(tmp_path, "s") as transcript:
        transcript.append(A)

    assert path.read_bytes().endswith(LINE_A)


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_no_transcript_is_refused_and_left_untouched(tmp_path: Path, *, dry_run: bool) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(84))
    with pytest.raises(StoreFileError, match="no transcript row"):
        repair(path, dry_run=dry_run)

    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_not_there_is_not_made(tmp_path: Path, *, dry_run: bool) -> None:
    with pytest.raises(StoreFileError):
        repair(tmp_path / "none.jsonl", dry_run=dry_run)

    assert [] == list(tmp_path.iterdir())


def test_a_failed_repair_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = damaged(tmp_path)
    monkeypatch.setattr(Path, "replace", lambda _path, _target: (_ for _ in ()).throw(OSError(5, "broken")))
    with pytest.raises(StoreFileError, match="broken"):
        repair(path)

    assert DAMAGED == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())
