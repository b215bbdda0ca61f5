"""What an ingest makes of damaged streams: mended or told with line and byte, and the same at the second run."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incarnate.actors.ingest import ingest
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import AssistantMessage
from tests.support.commands import KEY, recording

CLAUDE = find_dialect("claude-code")
LINES = recording("S7").read_bytes().splitlines(keepends=True)


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def feed(system: SessionSystem, data: bytes, **options: Any) -> IngestReport:
    return ingest(system, KEY, CLAUDE, io.BytesIO(data), **options)


def said(text: str, uuid: str) -> bytes:
    content = b'{"type":"text","text":"%s"}' % text.encode()
    return b'{"type":"assistant","uuid":"%s","message":{"content":[%s]},"session_id":"s"}' % (uuid.encode(), content)


def texts(system: SessionSystem) -> list[str]:
    events = [appended.event for appended in system.replay(KEY)]
    return [event.text for event in events if isinstance(event, AssistantMessage)]


@pytest.mark.parametrize(
    ("data", "mended", "refused"),
    [
        (said("a", "1") + said("b", "2") + b"\n", 1, 0),
        (said("a", "1")[:20] + said("a", "1") + said("b", "2") + b"\n", 2, 1),
        (said("a", "1") + b"\n" + said("b", "2").replace(b"b", b"b\n", 1).replace(b"\n", b"", 1) + b"\0\0\n", 1, 0),
        (b"Loading\n" + said("a", "1") + b"\n" + said("b", "2") + b" bye\n", 0, 0),
    ],
)
def test_records_are_saved_from_damaged_lines(system: SessionSystem, data: bytes, mended: int, refused: int) -> None:
    report = feed(system, data)

    assert ["a", "b"] == texts(system)
    assert (mended, refused) == (report.mended, report.refused)
    assert mended == sum(1 for _ in report.mended_lines)


@pytest.mark.parametrize(
    ("field", "mended"),
    [
        (b'"cwd":"\xff"', 1),
        (b'"cwd":"\\ud800"', 1),
        (b'"cost":NaN', 1),
        ('"cwd":"/höhle"'.encode(), 0),
        (b'"usage":"none"', 0),
        (b'"attachment":[]', 0),
    ],
)
def test_damage_in_a_field_that_nothing_reads_is_mended_and_told_too(
    system: SessionSystem, field: bytes, mended: int
) -> None:
    report = feed(system, said("a", "1").replace(b"{", b"{%s," % field, 1) + b"\n" + said("b", "2") + b"\n")

    assert ["a", "b"] == texts(system)
    assert (mended, 0) == (report.mended, report.refused)


def test_a_raw_line_feed_in_a_text_splits_no_record(system: SessionSystem) -> None:
    report = feed(system, said("one\ntwo\n\nthree", "1") + b"\n" + said("b", "2") + b"\n")

    assert ["one\ntwo\n\nthree", "b"] == texts(system)
    assert [(1, "a record over 4 lines")] == [(line.line, line.note) for line in report.mended_lines]
    assert 5 == report.lines


def test_words_between_records_are_told_and_refused_nowhere(system: SessionSystem) -> None:
    report = feed(system, b"Loading\n" + said("a", "1") + b"\n[warning] slow\n")

    assert ({"(text)": 2}, 0, True) == (report.ignored, report.refused, report.complete)
    assert [(1, 0, "Loading"), (3, len(said("a", "1")) + 9, "[warning] slow")] == [
        (line.line, line.byte, line.note) for line in report.text_lines
    ]


def test_a_line_of_a_hundred_megabytes_is_told_and_the_rest_goes_on(system: SessionSystem) -> None:
    report = feed(system, said("x" * 100_000_000, "1") + b"\n" + said("b", "2") + b"\n")

    assert ["b"] == texts(system)
    [refused] = report.refused_lines
    assert (1, 0) == (refused.line, refused.byte)


def test_two_records_without_ids_on_one_line_have_ids_of_their_own(system: SessionSystem) -> None:
    one = b'{"type":"assistant","message":{"content":"same"}}'
    feed(system, one + one + b"\n")

    assert 2 == len({appended.event.id for appended in system.replay(KEY)})


@settings(max_examples=30)
@given(st.integers(0, len(LINES) - 1), st.floats(0, 1), st.floats(0, 1))
def test_a_process_that_was_cut_and_its_successor_on_one_line_are_both_read(line: int, cut: float, stop: float) -> None:
    """A kill tears a line, and the next process goes on behind it without a line feed."""
    died = b"".join(LINES[:line]) + LINES[line][: int(cut * len(LINES[line]))]
    data = died + recording("S8a").read_bytes()
    with SessionSystem.open("memory://") as system:
        feed(system, data[: int(stop * len(data))])
        report = feed(system, data)
        log = [(appended.event.id, appended.event.parent_id) for appended in system.replay(KEY)]
    with SessionSystem.open("memory://") as system:
        feed(system, data)

        assert log == [(appended.event.id, appended.event.parent_id) for appended in system.replay(KEY)]
        assert report.session_id == "62ae3e09-8b17-4788-9313-c90fcecb0f8d"
