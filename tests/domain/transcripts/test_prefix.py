import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.errors import EventShapeError
from incarnate.domain.transcripts.prefix import Removed, Torn, replay, sift
from incarnate.domain.transcripts.rows import Row, UserMessageRow, encode_row
from incarnate.domain.transcripts.vectors import file_answer
from tests.support.transcripts import ROWS

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"

A, B = UserMessageRow("a"), UserMessageRow("b")
LINE_A, LINE_B = encode_row(A) + b"\n", encode_row(B) + b"\n"
TORN = LINE_A[:12]


@pytest.mark.smoke
def test_every_recorded_file_is_replayed_as_the_reference_does() -> None:
    lines = (VECTORS / "transcript_files.jsonl").read_bytes().split(b"\n")
    expected: list[dict[str, Any]] = [json.loads(line) for line in lines if line]

    assert 120 == len(expected)
    assert expected == [file_answer(vector) for vector in expected]


def test_a_vector_that_is_no_base64_is_refused() -> None:
    with pytest.raises(EventShapeError):
        file_answer({"base64": "a"})


@pytest.mark.parametrize(
    ("data", "rows", "valid", "torn"),
    [
        (b"", [], 0, None),
        (LINE_A + LINE_B, [A, B], 70, None),
        (LINE_A + LINE_B[:-1], [A, B], 69, None),
        (LINE_A.replace(b"\n", b"\r\n") + LINE_B, [A, B], 71, None),
        (LINE_A + LINE_B[:-1] + b"\r", [A, B], 70, None),
        (b"\n\r\n" + LINE_A + b"\n", [A], 39, None),
        (LINE_A + b"  \n", [A], 35, Torn(2, 35)),
        (LINE_A + TORN, [A], 35, Torn(2, 35)),
        (LINE_A + TORN + b"\n" + LINE_B, [A], 35, Torn(2, 35)),
        (LINE_A + TORN + LINE_B, [A], 35, Torn(2, 35)),
        (LINE_A + LINE_B[:-1] + bytes(3) + LINE_A, [A], 35, Torn(2, 35)),
        (LINE_A + bytes(40), [A], 35, Torn(2, 35)),
        (LINE_A + LINE_B[:-1] + bytes(40), [A, B], 69, Torn(2, 69)),
        (LINE_A + TORN + bytes(40), [A], 35, Torn(2, 35)),
        (LINE_A + bytes(4) + LINE_B, [A], 35, Torn(2, 35)),
        (bytes(4), [], 0, Torn(1, 0)),
        (LINE_A + '{"type":"user_message","text":"é'.encode()[:-1], [A], 35, Torn(2, 35)),
    ],
)  # fmt: skip
def test_the_longest_valid_prefix_is_kept(data: bytes, rows: list[Row], valid: int, torn: Torn | None) -> None:
    assert (rows, valid, torn) == replay(data)


@given(st.lists(ROWS, max_size=6), st.data())
def test_a_cut_anywhere_keeps_the_records_before_it(rows: list[Row], data: st.DataObject) -> None:
    lines = [encode_row(row) + b"\n" for row in rows]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    complete = sum(1 for end in _ends(lines) if cut >= end - 1)  # the line end itself may be lacking

    replayed = replay(whole[:cut])

    assert rows[:complete] == replayed.rows
    assert sum(map(len, lines[:complete])) >= replayed.valid_bytes


def _ends(lines: list[bytes]) -> list[int]:
    return [sum(map(len, lines[: index + 1])) for index in range(len(lines))]


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([LINE_A, LINE_B, TORN, b"\n", b"\0", b" ", b"\r\n"])).map(b"".join)
)
def test_nothing_is_lost_between_what_is_kept_and_what_is_removed(data: bytes) -> None:
    kept, rows, removed = sift(data)

    assert len(data) == len(kept) + sum(len(part.data) for part in removed)
    assert all(part.data == data[part.offset : part.offset + len(part.data)] for part in removed)
    assert (rows, len(kept), None) == replay(kept)


def test_every_valid_record_is_kept_wherever_it_stands() -> None:
    data = TORN + b"\n" + LINE_A + b"  \r\n" + bytes(3) + LINE_B + TORN
    removed = [Removed(1, 0, TORN + b"\n"), Removed(3, 48, b"  \r\n"), Removed(4, 52, bytes(3)), Removed(5, 90, TORN)]

    assert (LINE_A + LINE_B, [A, B], removed) == sift(data)


def test_a_record_is_kept_without_the_nuls_behind_it_in_its_line() -> None:
    data = LINE_A[:-1] + bytes(3) + b"\n" + LINE_B

    assert (LINE_A + LINE_B, [A, B], [Removed(1, 34, bytes(3))]) == sift(data)


def test_what_is_whole_is_kept_as_it_stands() -> None:
    data = b"\n" + LINE_A[:-1] + b"\r\n\r\n" + LINE_B[:-1]

    assert (data, [A, B], []) == sift(data)
