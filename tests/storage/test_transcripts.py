"""Transcript files: every kind of damage by its kind, failed writes, locks, turns; and the log in memory."""

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.errors import (
    ClosedError,
    ForkedError,
    LogCorruptionError,
    OutOfRangeError,
    StoreBusyError,
    StoreFileError,
    UnencodableEventError,
)
from incarnate.domain.transcripts.rows import (
    AssistantMessageRow,
    Row,
    ToolCallRow,
    TurnEndRow,
    TurnStartRow,
    UserMessageRow,
    encode_row,
)
from incarnate.storage.transcript_log import TranscriptLog
from incarnate.storage.transcripts import TranscriptFile
from tests.support.transcripts import ROWS

A, B, C = UserMessageRow("a"), AssistantMessageRow("b\u2028b"), TurnStartRow("turn-4")
LINE_A, LINE_B, LINE_C = (encode_row(row) + b"\n" for row in (A, B, C))
TORN = b'{"type":"user_mess'


def made(folder: Path, data: bytes) -> Path:
    path = folder / "s.jsonl"
    path.write_bytes(data)
    return path


def beside(path: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(path.parent.iterdir()) if file != path]


@pytest.fixture
def transcript(tmp_path: Path) -> Iterator[TranscriptFile]:
    with TranscriptFile.open(tmp_path, "s") as opened:
        yield opened


class Disk:
    """The system's calls, which fail as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full_after: int | None = None
        self.at_once: int | None = None
        self.broken = False
        self.written: list[bytes] = []
        self._write, self._fsync, self._ftruncate = os.write, os.fsync, os.ftruncate
        for name in ("write", "fsync", "ftruncate"):
            monkeypatch.setattr(os, name, getattr(self, name))

    def write(self, descriptor: int, data: bytes) -> int:
        if self.full_after == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        most = min(len(data), self.full_after or len(data), self.at_once or len(data))
        if self.full_after is not None:
            self.full_after -= most
        self.written.append(data[:most])
        return self._write(descriptor, data[:most])

    def fsync(self, descriptor: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fsync(descriptor)

    def ftruncate(self, descriptor: int, size: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._ftruncate(descriptor, size)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@given(st.lists(st.lists(ROWS, max_size=4), max_size=4))
def test_what_was_appended_is_read_back_over_any_number_of_reopens(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Row]]
) -> None:
    folder = tmp_path_factory.mktemp("reopen")
    for batch in batches:
        with TranscriptFile.open(folder, "s") as opened:
            assert all(opened.append(row) for row in batch)
    with TranscriptFile.open(folder, "s") as opened:
        found = opened.events()

    assert [row for batch in batches for row in batch] == found


def test_a_record_is_in_the_file_when_append_returns(transcript: TranscriptFile) -> None:
    transcript.append(A)
    transcript.append(B)

    assert LINE_A + LINE_B == transcript.path.read_bytes()


def test_a_record_is_one_write(transcript: TranscriptFile, disk: Disk) -> None:
    transcript.append(A)
    transcript.append(B)

    assert [LINE_A, LINE_B] == disk.written


def test_a_file_is_its_owners_alone(transcript: TranscriptFile) -> None:
    assert 0o600 == stat.S_IMODE(transcript.path.stat().st_mode)


@pytest.mark.parametrize("id", ["", "../../etc/passwd", "CON", "a/b", "x" * 300])
def test_no_session_id_leads_out_of_the_folder(tmp_path: Path, id: str) -> None:
    with TranscriptFile.open(tmp_path / "logs", id) as opened:
        assert tmp_path / "logs" == opened.path.parent
        assert [opened.path] == list((tmp_path / "logs").iterdir())


@pytest.mark.parametrize(
    "tail",
    [TORN, TORN + b"\n", LINE_B[:-9], b"   \n", b"  \r\n\n", bytes(30), TORN + bytes(5), b'{"type":"new"}\n', b"\xff"],
    ids=lambda tail: tail.decode(errors="backslashreplace"),
)
def test_a_torn_tail_is_cut_off_saved_and_reported_with_line_and_byte(
    tmp_path: Path, tail: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = made(tmp_path, LINE_A + tail)
    with caplog.at_level(logging.WARNING), TranscriptFile.open(tmp_path, "s") as opened:
        torn, rows = opened.torn, opened.events()

    assert [A] == rows
    assert LINE_A == path.read_bytes()
    assert [tail] == beside(path)
    assert torn is not None
    assert (2, len(LINE_A), len(tail)) == torn[:3]
    assert tail == Path(torn.saved or "").read_bytes()
    assert f"line 2, byte {len(LINE_A)}" in caplog.text


def test_a_crash_between_saving_and_cutting_leaves_one_copy(tmp_path: Path, disk: Disk) -> None:
    path = made(tmp_path, LINE_A + TORN)
    real, os.ftruncate = os.ftruncate, lambda _descriptor, _size: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        TranscriptFile.open(tmp_path, "s")
    os.ftruncate = real
    TranscriptFile.open(tmp_path, "s").close()

    assert disk.broken is False
    assert [TORN] == beside(path)


def test_what_cannot_be_saved_is_not_cut(tmp_path: Path, disk: Disk) -> None:
    path = made(tmp_path, LINE_A + TORN)
    disk.full_after = 3
    with pytest.raises(StoreFileError):
        TranscriptFile.open(tmp_path, "s")

    assert LINE_A + TORN == path.read_bytes()
    assert [] == beside(path)


def test_nuls_behind_a_complete_last_record_are_cut_and_the_record_stays(tmp_path: Path) -> None:
    path = made(tmp_path, LINE_A + LINE_B[:-1] + bytes(64))
    with TranscriptFile.open(tmp_path, "s") as opened:
        opened.append(C)

    assert LINE_A + LINE_B + LINE_C == path.read_bytes()


def test_a_last_record_that_lacks_its_line_end_stays_and_gets_it_with_the_next(tmp_path: Path) -> None:
    path = made(tmp_path, LINE_A + LINE_B[:-1])
    with TranscriptFile.open(tmp_path, "s") as opened:
        untouched, torn = path.read_bytes(), opened.torn
        opened.append(C)

    assert (LINE_A + LINE_B[:-1], None) == (untouched, torn)
    assert LINE_A + LINE_B + LINE_C == path.read_bytes()


def test_empty_lines_and_crlf_are_harmless_and_stay(tmp_path: Path) -> None:
    data = b"\n\r\n" + LINE_A[:-1] + b"\r\n\n" + LINE_B
    path = made(tmp_path, data)
    with TranscriptFile.open(tmp_path, "s") as opened:
        rows = opened.events()
        opened.append(C)

    assert [A, B] == rows
    assert data + LINE_C == path.read_bytes()


@pytest.mark.parametrize(
    "damage", [TORN + b"\n", b"  \n", b'{"type":"new"}\n', bytes(8), bytes(8) + b"\n", TORN + b"\n" + TORN + b"\n"]
)
def test_a_torn_record_in_front_of_valid_ones_raises_and_leaves_the_file_untouched(
    tmp_path: Path, damage: bytes
) -> None:
    data = LINE_A + damage + LINE_B + TORN
    path = made(tmp_path, data)
    with pytest.raises(LogCorruptionError) as corrupt:
        TranscriptFile.open(tmp_path, "s")

    assert f"{path}, line 2, byte {len(LINE_A)}" == corrupt.value.place
    assert "repair" in corrupt.value.hint
    assert data == path.read_bytes()
    assert [] == beside(path)


def test_turn_numbers_are_restored_from_the_file(tmp_path: Path) -> None:
    made(tmp_path, encode_row(TurnEndRow("turn-9")) + b"\n" + LINE_C + encode_row(TurnStartRow("t99")) + b"\n")
    with TranscriptFile.open(tmp_path, "s") as opened:
        first = opened.next_turn_id()
        opened.append(TurnStartRow("turn-20"))
        second = opened.next_turn_id()

    assert ("turn-10", "turn-21") == (first, second)


def test_a_number_above_the_largest_is_refused(transcript: TranscriptFile) -> None:
    transcript.append(TurnStartRow(f"turn-{2**53 - 1}"))
    with pytest.raises(OutOfRangeError):
        transcript.next_turn_id()


def test_after_clear_the_file_starts_again_at_turn_0_and_the_log_goes_on(transcript: TranscriptFile) -> None:
    log = TranscriptLog()
    for one in (transcript, log):
        one.append(C)
        one.clear()

    assert ([], []) == (transcript.events(), log.events())
    assert ("turn-0", "turn-5") == (transcript.next_turn_id(), log.next_turn_id())


def test_a_short_write_is_followed_by_the_rest(transcript: TranscriptFile, disk: Disk) -> None:
    disk.at_once = 3
    transcript.append(A)

    assert LINE_A == transcript.path.read_bytes()


def test_a_failed_write_is_counted_kept_and_written_later_in_order(transcript: TranscriptFile, disk: Disk) -> None:
    transcript.append(A)
    disk.full_after = 5
    said = [transcript.append(B), transcript.append(C)]
    on_disk, rows = transcript.path.read_bytes(), transcript.events()
    disk.full_after = None
    transcript.sync()

    assert [False, False] == said
    assert 2 == transcript.write_errors
    assert (LINE_A, [A, B, C]) == (on_disk, rows)
    assert LINE_A + LINE_B + LINE_C == transcript.path.read_bytes()


def test_what_a_broken_disk_left_of_a_record_never_merges_with_the_next(transcript: TranscriptFile, disk: Disk) -> None:
    transcript.append(A)
    disk.full_after, disk.broken = 5, True
    transcript.append(B)
    torn = transcript.path.read_bytes()
    disk.full_after, disk.broken = None, False
    transcript.append(C)

    assert LINE_A + LINE_B[:5] == torn
    assert LINE_A + LINE_B + LINE_C == transcript.path.read_bytes()


def test_an_interrupt_in_a_write_leaves_the_record_to_be_written_once(
    transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        real(descriptor, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transcript.append(A)
    monkeypatch.undo()
    transcript.append(B)

    assert [A, B] == transcript.events()
    assert LINE_A + LINE_B == transcript.path.read_bytes()


def test_sync_fails_where_rows_still_wait(transcript: TranscriptFile, disk: Disk) -> None:
    disk.full_after = 0
    transcript.append(A)
    with pytest.raises(StoreFileError, match="1 row could not be written"):
        transcript.sync()
    disk.full_after = None

    assert [A] == transcript.unwritten


def test_after_a_failed_sync_no_later_one_says_that_all_is_well(tmp_path: Path, disk: Disk) -> None:
    with TranscriptFile.open(tmp_path, "s", sync="each") as opened:
        disk.broken = True
        said = [opened.append(A)]
        disk.broken = False
        said.append(opened.append(B))
        with pytest.raises(StoreFileError):
            opened.sync()

    assert [False, False] == said
    assert LINE_A + LINE_B == opened.path.read_bytes()


def test_closing_with_rows_that_wait_says_so_and_keeps_them(tmp_path: Path, disk: Disk) -> None:
    opened = TranscriptFile.open(tmp_path, "s")
    disk.full_after = 0
    opened.append(A)
    with pytest.raises(StoreFileError, match="1 row could not be written"):
        opened.close()
    opened.close()

    assert [A] == opened.unwritten
    TranscriptFile.open(tmp_path, "s").close()


def fail_with_a_full_disk(opened: TranscriptFile, disk: Disk) -> None:
    with opened:
        disk.full_after = 0
        opened.append(A)
        raise ZeroDivisionError


def test_an_exception_on_its_way_out_is_not_hidden_by_rows_that_wait(tmp_path: Path, disk: Disk) -> None:
    opened = TranscriptFile.open(tmp_path, "s")
    with pytest.raises(ZeroDivisionError):
        fail_with_a_full_disk(opened, disk)

    assert [A] == opened.unwritten


def test_a_row_that_would_not_read_back_equal_changes_nothing(transcript: TranscriptFile) -> None:
    with pytest.raises(UnencodableEventError):
        transcript.append(ToolCallRow("c", "run", float("inf")))

    assert b"" == transcript.path.read_bytes()


def test_a_second_writer_in_the_same_process_is_refused(transcript: TranscriptFile) -> None:
    with pytest.raises(StoreBusyError, match="open in another writer"):
        TranscriptFile.open(transcript.path.parent, "s")


@pytest.mark.parametrize("change", [lambda path: path.write_bytes(LINE_B), Path.unlink], ids=["written", "removed"])
def test_a_file_that_another_program_changed_is_not_written_to(
    transcript: TranscriptFile, change: Callable[[Path], object]
) -> None:
    transcript.append(A)
    transcript.append(A)
    change(transcript.path)
    with pytest.raises(StoreFileError, match="while it was open"):
        transcript.append(C)

    assert LINE_C not in b"".join(file.read_bytes() for file in transcript.path.parent.iterdir())


def test_a_file_that_another_program_damaged_is_not_read(transcript: TranscriptFile) -> None:
    transcript.append(A)
    transcript.path.write_bytes(b"x" * len(LINE_A))
    with pytest.raises(LogCorruptionError, match="line 1, byte 0"):
        transcript.events()


def test_a_forked_child_is_refused(transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(ForkedError):
        transcript.append(A)
    transcript.close()

    assert b"" == transcript.path.read_bytes()


@pytest.mark.parametrize("kind", [TranscriptFile, TranscriptLog])
def test_nothing_goes_into_a_closed_transcript(tmp_path: Path, kind: type[TranscriptFile | TranscriptLog]) -> None:
    opened = TranscriptFile.open(tmp_path, "s") if kind is TranscriptFile else TranscriptLog()
    opened.close()
    opened.close()
    for call in (lambda: opened.append(A), opened.sync, opened.events, opened.clear):
        with pytest.raises(ClosedError):
            call()


def test_a_folder_or_a_pipe_is_no_transcript(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for id in ("s", "pipe"):
        with pytest.raises(StoreFileError):
            TranscriptFile.open(tmp_path, id)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path, LINE_A)
    with pytest.raises(StoreFileError, match="folder"):
        TranscriptFile.open(path, "s")


def test_the_log_in_memory_keeps_rows_as_they_were(tmp_path: Path) -> None:
    args = {"a": 1}
    with TranscriptLog() as log, TranscriptFile.open(tmp_path, "s") as opened:
        for one in (log, opened):
            one.append(ToolCallRow("c", "run", args))
        args["a"] = 2
        log.sync()
        rows = log.events(), opened.events()

    assert ([ToolCallRow("c", "run", {"a": 1})],) * 2 == rows
    assert 0 == log.write_errors


@pytest.mark.parametrize("text", [b"precious\n" * 100, b"one\ntwo\nthree\n", b"no row, no line end", b"\xff" * 50])
def test_a_file_that_is_no_transcript_is_not_taken_for_a_torn_one(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(text)

    with pytest.raises(LogCorruptionError):
        TranscriptFile.open(tmp_path, "notes")

    assert text == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious\n")
    (tmp_path / "link.jsonl").symlink_to(victim)

    with pytest.raises(StoreFileError):
        TranscriptFile.open(tmp_path, "link")

    assert victim.read_bytes() == b"precious\n"
