"""Lines to records, whatever damaged them."""

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.dialects.records import Broken, Found, Piece, RecordStream, Text

MIB = 1024 * 1024


def likeness(value: object) -> int:
    """A harness that alone writes `init` records, and may have written those of a `user`."""
    kind = value.get("type") if isinstance(value, dict) else None
    return {"init": 2, "user": 1}.get(str(kind), 0)


def read(data: bytes, max_bytes: int = MIB) -> list[Piece]:
    stream, pieces, byte = RecordStream(likeness, max_bytes), [], 0
    for number, line in enumerate(data.split(b"\n"), 1):
        whole = byte + len(line) < len(data)
        if whole or line:
            pieces += stream.feed(number, byte, line + b"\n" * whole, whole=whole)
        byte += len(line) + 1
    return [*pieces, *stream.close()]


def brief(pieces: Iterable[Piece]) -> list[Any]:
    """Values of records, texts as they are, and `!` before what gave nothing."""

    def told(piece: Piece) -> Any:
        if isinstance(piece, Found):
            return piece.value
        return piece.text if isinstance(piece, Text) else f"!{piece.data.decode()}"

    return [told(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}{"b":2}\n', [{"a": 1}, {"b": 2}]),
        (b'{"a":1}\0\0 {"b":2}\0\n', [{"a": 1}, {"b": 2}]),
        (b'{"type":"a","t":"te{"type":"user","b":"c"}\n', ['!{"type":"a","t":"te', {"type": "user", "b": "c"}]),
        (b'{"type":"a",{"type":"user"}\n', ['!{"type":"a",', {"type": "user"}]),
        (b'{"a":[1,{"type":"init"}\n', ['!{"a":[1,', {"type": "init"}]),
        (b'Warning: x{"type":"user"}\n', ["Warning: x", {"type": "user"}]),
        (b'{"a":1} done\n', [{"a": 1}, "done"]),
        (b'{"a":"x\ny"}\n{"b":1}\n', [{"a": "x\ny"}, {"b": 1}]),
        (b'{"a":"x\n\n\ny"}{"c":1}\n', [{"a": "x\n\n\ny"}, {"c": 1}]),
        (b'{"a":"x\n{"b":1}\n', ['!{"a":"x\n', {"b": 1}]),
        (b'{"a":"x\nfoo\nbar\n{"b":1}\n', ['!{"a":"x\n', "foo", "bar", {"b": 1}]),
        (b'{\n  "a": [\n    {},\n    2\n  ]\n}\n{"b":1}\n', [{"a": [{}, 2]}, {"b": 1}]),
        (b'{\n{"b":1}\n', ["!{\n", {"b": 1}]),
        (b'7\nnull\n"x"\nplain words\n', ["7", "null", '"x"', "plain words"]),
        (b'{"a":[NaN,"\\ud800"]}\n', [{"a": [None, "\ufffd"]}]),
        (b'{"a":1}\n\n \n\0\0\n{"b":1}\n', [{"a": 1}, {"b": 1}]),
        (b'{"a":"\xff{"}\n', [{"a": "\ufffd{"}]),
    ],
)
def test_what_damaged_the_lines_is_taken_apart(data: bytes, expected: list[Any]) -> None:
    assert expected == brief(read(data))


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"a","message":{"type":"user"}\n',  # the record inside is a part of the one that is cut
        b'{"type":"a","parts":[{"type":"user"}\n',
        b'{"type":"a","parts":[{"type":"user"},{"type":"x","t":"\n',
        b'{"type":"a","t":"te{"type":"x","b":"c"}\n',  # nobody's record
    ],
)
def test_a_part_of_a_cut_record_is_no_record(data: bytes) -> None:
    [piece] = read(data)

    assert isinstance(piece, Broken)
    assert (data, "a record that is cut short") == (piece.data, piece.reason)


def test_a_record_that_is_still_being_written_gives_none_of_its_parts() -> None:
    [piece] = read(b'{"type":"a","t":"te{"type":"user"}')

    assert isinstance(piece, Broken)
    assert piece.torn
    assert [{"type": "user"}, "!{"] == brief(read(b'{"type":"user"}{'))


def test_pieces_tell_their_line_and_byte() -> None:
    pieces = read(b'{"a":1}\noops{"type":"user"}\n{"a":"x\ny"}\n{"z')

    assert [(1, 0), (2, 8), (2, 12), (3, 28), (5, 40)] == [(piece.line, piece.byte) for piece in pieces]


def test_repairs_are_told_and_the_records_of_a_line_are_numbered() -> None:
    found = [piece for piece in read(b'{"a":1}{"b":2}\n{"c":"x\ny"}\n{\n "d": 1\n}\n') if isinstance(piece, Found)]

    assert [None, "glued to what stands before it", "a record over 2 lines", None] == [one.repair for one in found]
    assert [0, 1, 0, 0] == [one.place for one in found]
    assert [0, 0, 0, 0] == [one.mended for one in found]


def test_a_document_that_never_ends_is_given_up_at_the_limit() -> None:
    pieces = read(b"{\n" + b"  1,\n" * 100 + b'{"a":1}\n', max_bytes=50)

    assert isinstance(pieces[0], Broken)
    assert {"a": 1} == brief(pieces)[-1]


@pytest.mark.parametrize(
    "data",
    [
        b"[" * MIB,
        b'{"a":' * 200_000,
        b'{"' * 500_000,
        b'{"a":1}' * 50_000,
        b"{\n" + b"}\n" * 50_000,
        b'{"a":"\n' * 20_000,
        b'{"a":1 ' * 100_000,
        b'{"a":"' + b"x\n" * 50_000,
    ],
)
def test_hostile_lines_are_done_with_at_once(data: bytes) -> None:
    started = time.thread_time()
    read(data, 128 * MIB)
    assert time.thread_time() - started < 10


records = st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers(), min_size=1, max_size=3)


@given(st.lists(records, max_size=6))
def test_sound_lines_are_found_as_they_are(values: list[dict[str, Any]]) -> None:
    data = b"".join([json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values])

    assert values == brief(read(data))


@given(st.lists(records, min_size=1, max_size=5))
def test_glued_records_are_found_one_by_one(values: list[dict[str, Any]]) -> None:
    glued = b"".join([json.dumps(value).encode() for value in values])

    assert values == brief(read(glued + b"\n"))


@given(records, st.data())
def test_a_record_that_was_cut_anywhere_does_not_swallow_the_one_behind_it(
    value: dict[str, Any], data: st.DataObject
) -> None:
    line = json.dumps(value).encode()
    cut = data.draw(st.integers(0, len(line) - 1))

    assert {"type": "init", "n": 1} in brief(read(line[:cut] + b'{"type":"init","n":1}\n'))


@given(st.binary(max_size=200))
def test_any_bytes_are_found_told_or_blank(data: bytes) -> None:
    pieces = read(data)
    told = b"".join([piece.data for piece in pieces])

    assert len(data.translate(None, b"\0 \t\r\n")) <= len(told.translate(None, b"\0 \t\r\n")) + 3  # a byte order mark
