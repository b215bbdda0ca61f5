"""The rows of a log, and what they leave out."""

from hypothesis import given

from incarnate import AppendedEvent, Opaque, SessionEvent
from incarnate.domain.projections.transcript import TranscriptRows
from incarnate.domain.transcripts.rows import encode_row
from incarnate.domain.transcripts.translation import to_rows
from tests.support.projections import STEPS, appended, fold, hold_against_replay, recorded_logs


def test_the_rows_of_every_recorded_log_come_back_byte_for_byte() -> None:
    for log in recorded_logs():
        assert log["rows"] == [row.decode() for row in fold(TranscriptRows(), log["events"])]


@given(STEPS)
def test_i7_the_rows_equal_the_fold_of_a_fresh_replay(steps: list[SessionEvent | Opaque | float]) -> None:
    hold_against_replay(TranscriptRows(), steps)


@given(STEPS)
def test_rows_and_counts_are_those_of_the_translation(steps: list[SessionEvent | Opaque | float]) -> None:
    live = TranscriptRows()
    kept: list[SessionEvent | Opaque] = []
    for step in steps:
        if isinstance(step, float | int):
            live.rewind(round(step * len(kept)))
            del kept[live.next_offset :]
        else:
            live.apply(AppendedEvent(len(kept), 1, 0, step))
            kept.append(step)
    translated = to_rows(kept)

    assert list(map(encode_row, translated.rows)) == list(live.value)
    assert translated.left_out == live.diagnostics


def test_counts_stay_as_they_were_when_they_were_read() -> None:
    live = TranscriptRows()
    [novel] = appended([Opaque("novel", "e", None, b'{"type":"novel","id":"e","parentId":null}')])
    before = live.diagnostics
    live.apply(novel)

    assert ({}, {"novel": 1}) == (before, live.diagnostics)
