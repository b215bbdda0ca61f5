import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.dialects.reader import MAX_RECORD_DEPTH, Record, read_record
from incarnate.domain.encoding import first_violation
from incarnate.domain.errors import EventShapeError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_sound_lines_read_as_python_reads_them(value: object) -> None:
    assert Record(value, 0) == read_record(json.dumps(value, ensure_ascii=False).encode() + b"\n")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_that_a_log_can_hold_or_are_refused(line: bytes) -> None:
    try:
        record = read_record(line)
    except EventShapeError:
        return
    assert record is None or first_violation(record.value) is None


@pytest.mark.parametrize("line", [b"", b"\n", b"\r\n", b" \t\r\n", b"\0\0\0", b"\xef\xbb\xbf\n"])
def test_a_blank_line_is_no_record(line: bytes) -> None:
    assert read_record(line) is None


@pytest.mark.parametrize(
    ("line", "value", "mended"),
    [
        (b'{"a":"\\ud800"}', {"a": "\ufffd"}, 1),
        (b'{"\\udc00":["\\ud83d\\ude00","\\ude00\\ud83d"]}', {"\ufffd": ["\U0001f600", "\ufffd\ufffd"]}, 3),
        (b'"\\\\ud800 \\ud800"', "\\ud800 \ufffd", 1),
        (b'"\xff and \xef\xbf\xbd"', "\ufffd and \ufffd", 1),
        (b"[NaN,Infinity,-Infinity,1e999,1.5]", [None, None, None, None, 1.5], 4),
        (b'{"a":1}\0\0\0\0\n', {"a": 1}, 1),
        (b'\0\0{"a":1}', {"a": 1}, 1),
        (b'[NaN,"a\tb"]', [None, "a\tb"], 2),
    ],
)
def test_damage_is_mended_and_counted(line: bytes, value: object, mended: int) -> None:
    assert Record(value, mended) == read_record(line)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('"\u2028\u2029\u0085"'.encode(), "\u2028\u2029\u0085"),
        (b'{"a":1}\r\n', {"a": 1}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b"1" * 4000, int("1" * 4000)),
        (b'"\\u0000"', "\0"),
    ],
)
def test_what_only_looks_odd_is_read_unchanged(line: bytes, value: object) -> None:
    assert Record(value, 0) == read_record(line)


@pytest.mark.parametrize(
    "line", [b"hello", b'{"a":1}{"b":2}', b'{"a":{"a":1}', b"{'a':1}", b"[1,]", b'{"a"}', b'"open', b"1" * 5000]
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(EventShapeError, match=r"no JSON record: .+"):
        read_record(line)


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_nesting_is_read_up_to_its_limit_and_refused_above() -> None:
    assert read_record(nested(MAX_RECORD_DEPTH)) is not None
    with pytest.raises(EventShapeError, match="deeper than 320"):
        read_record(nested(MAX_RECORD_DEPTH + 1))


def test_brackets_in_strings_are_no_nesting() -> None:
    text = '\\" [' * 1000
    assert Record([text], 0) == read_record(json.dumps([text]).encode())


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 1_000_000,
        b'{"a":' * 500_000,
        b"[" * 400 + b'"' + b'\\"' * 1_000_000,
        b'"\\ud800' * 200_000,
        b"[" + b"1e999," * 200_000 + b"1]",
        b"-" + b"9" * 1_000_000,
    ],
)
def test_hostile_lines_are_done_with_at_once(line: bytes) -> None:
    started = time.thread_time()
    with suppress(EventShapeError):
        read_record(line)
    assert time.thread_time() - started < 5
