"""Transcripts that are cut back to their first rows, knowingly: what stays, what is saved, what a bad disk does."""

import errno
import os
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.errors import EventShapeError, StoreFileError
from incarnate.domain.transcripts.prefix import start_of_last
from incarnate.domain.transcripts.rows import AssistantMessageRow, Row, TurnStartRow, UserMessageRow, encode_row
from incarnate.storage.transcript_log import TranscriptLog
from incarnate.storage.transcripts import TranscriptFile
from tests.support.transcripts import ROWS

A, B, C = UserMessageRow("a"), AssistantMessageRow("b\u2028b"), TurnStartRow("turn-4")
LINE_A, LINE_B, LINE_C = (encode_row(row) + b"\n" for row in (A, B, C))


@pytest.fixture
def transcript(tmp_path: Path) -> Iterator[TranscriptFile]:
    with TranscriptFile.open(tmp_path, "s") as opened:
        for row in (A, B, C):
            opened.append(row)
        yield opened


def reason(transcript: TranscriptFile) -> str:
    return str(transcript.failure)


def refuse(*_arguments: object) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@given(st.lists(st.tuples(st.lists(ROWS, max_size=5), st.integers(0, 8)), max_size=5))
def test_a_file_and_a_log_that_are_cut_and_go_on_hold_what_a_list_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[Row], int]]
) -> None:
    folder = tmp_path_factory.mktemp("keep")
    expected: list[Row] = []
    with TranscriptFile.open(folder, "s") as opened, TranscriptLog() as log:
        for rows, keep in steps:
            expected = [*expected, *rows][:keep]
            for row in rows:
                assert opened.append(row)
                log.append(row)
            opened.keep(keep)
            log.keep(keep)

            assert (expected, expected) == (opened.events(), log.events())
            assert len(expected) == opened.rows
            assert b"".join([encode_row(row) + b"\n" for row in expected]) == opened.path.read_bytes()


def test_a_cut_that_keeps_everything_changes_nothing(transcript: TranscriptFile) -> None:
    assert transcript.keep(3) is None
    assert transcript.keep(99, save=True) is None
    assert LINE_A + LINE_B + LINE_C == transcript.path.read_bytes()
    assert [transcript.path] == list(transcript.path.parent.iterdir())


def test_what_is_cut_can_be_saved_beside(transcript: TranscriptFile) -> None:
    saved = transcript.keep(1, save=True)

    assert saved is not None
    assert saved.name.startswith(f"s.jsonl.cut-{len(LINE_A)}-")
    assert (LINE_A, LINE_B + LINE_C) == (transcript.path.read_bytes(), saved.read_bytes())


def test_empty_lines_and_foreign_line_ends_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"\n" + LINE_A + b"\r\n\n" + LINE_B[:-1] + b"\r\n" + b"\n" + LINE_C[:-1])
    with TranscriptFile.open(tmp_path, "s") as opened:
        opened.keep(2)
        opened.keep(1)
        opened.append(C)

        assert [A, C] == opened.events()


def test_a_cut_reads_back_no_further_than_it_must() -> None:
    lines = [b"%d" % number + b"\n" for number in range(100)]
    starts = [0, *accumulate(map(len, lines))]
    whole = b"".join(lines)

    assert starts == [start_of_last(whole, 100 - kept, whole=True) for kept in range(101)]
    assert start_of_last(whole[1:], 100, whole=False) is None
    assert start_of_last(whole, 101, whole=True) is None


def test_a_cut_in_a_file_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    rows = [UserMessageRow(f"{number} " + "x" * 1000) for number in range(300)]
    with TranscriptFile.open(tmp_path, "s") as opened:
        assert opened.append_encoded(map(encode_row, rows))
        for keep in (299, 150, 1, 0):
            opened.keep(keep)

            assert rows[:keep] == opened.events()


def test_turn_numbers_are_not_used_again_after_a_cut(transcript: TranscriptFile) -> None:
    transcript.keep(0)

    assert "turn-5" == transcript.next_turn_id()


def test_rows_that_wait_for_the_disk_are_cut_too(transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        transcript.append_encoded([encode_row(A), encode_row(B)])
        transcript.keep(4)

        assert "1 row could not be written (Input/output error)" in reason(transcript)
        assert [A, B, C, A] == transcript.events()
    assert transcript.append_encoded([])

    assert LINE_A + LINE_B + LINE_C + LINE_A == transcript.path.read_bytes()
    assert ("None", 4) == (reason(transcript), transcript.rows)


def test_a_cut_below_rows_that_wait_drops_them_all(transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        transcript.append(A)
        transcript.keep(1)

    assert ([A], "None") == (transcript.events(), reason(transcript))


def test_a_cut_that_the_system_refuses_changes_nothing(
    transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bad:
        bad.setattr(os, "ftruncate", refuse)
        with pytest.raises(StoreFileError, match="cannot be cut"):
            transcript.keep(1)

    assert [A, B, C] == transcript.events()


def test_a_cut_that_cannot_be_saved_is_not_made(transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as bad:
        bad.setattr(os, "write", refuse)
        with pytest.raises(StoreFileError):
            transcript.keep(1, save=True)

    assert [A, B, C] == transcript.events()


def test_a_cut_that_does_not_reach_the_disk_is_told(
    transcript: TranscriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bad:
        bad.setattr(os, "fsync", refuse)
        with pytest.raises(StoreFileError, match="the disk failed"):
            transcript.keep(1)

    assert "the disk failed" in reason(transcript)
    assert [A] == transcript.events()


@pytest.mark.parametrize("kind", [TranscriptFile, TranscriptLog])
def test_fewer_than_no_rows_cannot_be_kept(tmp_path: Path, kind: type[TranscriptFile | TranscriptLog]) -> None:
    opened = TranscriptFile.open(tmp_path, "s") if kind is TranscriptFile else TranscriptLog()
    with opened, pytest.raises(ValueError, match="-1"):
        opened.keep(-1)


def test_bytes_that_are_no_row_are_refused_and_nothing_is_written(transcript: TranscriptFile) -> None:
    with pytest.raises(EventShapeError):
        transcript.append_encoded([encode_row(A), b"{}"])

    assert [A, B, C] == transcript.events()
