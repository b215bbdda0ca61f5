"""A stream's pieces, one by one and together: the same, wherever it is damaged and however it arrives."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.actors.ingest_source import Records, Sourced, StreamSource
from incarnate.actors.lines import MAX_LINE_BYTES, read_lines
from incarnate.domain.dialects.records import Found, Piece, RecordStream

SOUND = b'{"type":"a","n":1}\n'
LINES = st.lists(
    st.sampled_from(
        [
            *(SOUND, SOUND * 70, b"\n", b"words\n", b'{"type":"a"}{"type":"b"}\n', b'{"type":"a\n', b'b"}\n'),
            *(b'{"n":NaN}\n', b"\0\0" + SOUND, b'{"t":"\xff"}\n', b"[1]\n", b"3\n", b"\xef\xbb\xbf" + SOUND, b'{"cut'),
        ]
    ),
    max_size=12,
)


def likeness(record: Any) -> int:
    return int("type" in record) if isinstance(record, dict) else 0


class Pipe:
    """Gives each of these by itself."""

    def __init__(self, left: list[bytes]) -> None:
        self.left = left

    def read1(self, _size: int, /) -> bytes:
        return self.left.pop(0) if self.left else b""


def line_by_line(data: bytes) -> list[Piece]:
    """What the source is to find, without any short cut."""
    records = RecordStream(likeness, MAX_LINE_BYTES)
    pieces: list[Piece] = []
    for line in read_lines(io.BytesIO(data)):
        assert line.data is not None
        pieces += records.feed(line.number, line.start, line.data, whole=line.whole)
    return pieces + records.close()


@given(LINES)
def test_the_pieces_of_a_stream_are_those_of_its_lines(lines: list[bytes]) -> None:
    data = b"".join(lines)

    assert line_by_line(data) == [sourced.piece for sourced in StreamSource(io.BytesIO(data), likeness)]


@given(LINES)
def test_sound_records_together_are_those_that_are_found_one_by_one(lines: list[bytes]) -> None:
    data = b"".join(lines)
    one_by_one = list(StreamSource(io.BytesIO(data), likeness))
    pieces: list[Piece] = []
    for part in StreamSource(io.BytesIO(data), likeness).together():
        pieces += [part.piece] if isinstance(part, Sourced) else [Found(*one) for one in part.each()]

    assert [sourced.piece for sourced in one_by_one] == pieces


def test_no_record_waits_for_one_that_has_not_arrived() -> None:
    pipe = Pipe([SOUND * 2, SOUND])
    first = next(StreamSource(pipe, likeness).together())

    assert isinstance(first, Records)
    assert (2, False, [SOUND]) == (len(first.values), first.more, pipe.left)


@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_all_but_the_last_of_what_arrived_together_have_more_behind_them(count: int) -> None:
    sizes: list[int] = []
    source = StreamSource(io.BytesIO(SOUND * count), likeness, sizes.append)
    more = [sourced.more for sourced in source]

    assert [True] * (count - 1) + [False] == more
    assert (count, [len(SOUND)] * count) == (source.lines, sizes)
