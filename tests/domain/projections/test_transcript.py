"""The rows of a log, and what they leave out."""

from hypothesis import given

from incarnate import Opaque, SessionEvent
from incarnate.domain.projections.transcript import LeftOut, TranscriptRows
from incarnate.domain.transcripts.rows import encode_row
from incarnate.domain.transcripts.translation import to_rows
from tests.support.projections import STEPS, appended, fold, hold_against_replay, recorded_logs


def test_the_rows_of_every_recorded_log_come_back_byte_for_byte() -> None:
    for log in recorded_logs():
        assert log["rows"] == [row.decode() for row in fold(TranscriptRows(), log["events"])]
        assert {} == fold(LeftOut(), log["events"])


@given(STEPS)
def test_i7_rows_and_what_they_leave_out_equal_the_fold_of_a_fresh_replay(
    steps: list[SessionEvent | Opaque | float],
) -> None:
    hold_against_replay(TranscriptRows(), steps)
    hold_against_replay(LeftOut(), steps)


@given(STEPS)
def test_rows_and_counts_are_those_of_the_translation(steps: list[SessionEvent | Opaque | float]) -> None:
    events = [step for step in steps if not isinstance(step, float | int)]
    translated = to_rows(events)

    assert list(map(encode_row, translated.rows)) == list(fold(TranscriptRows(), events))
    assert translated.left_out == fold(LeftOut(), events)


def test_counts_stay_as_they_were_when_they_were_read() -> None:
    live = LeftOut()
    [usage] = appended([Opaque("novel", "e", None, b'{"type":"novel","id":"e","parentId":null}')])
    before = live.value
    live.apply(usage)

    assert ({}, {"novel": 1}) == (before, live.value)
