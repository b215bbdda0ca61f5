import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.codec import decode_event, encode_event
from incarnate.domain.errors import EventShapeError, UnencodableEventError
from incarnate.domain.events import FailedOutcome, TurnError
from incarnate.domain.transcripts.rows import (
    Row,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    UserMessageRow,
    decode_row,
    encode_row,
)
from incarnate.domain.transcripts.translation import to_event, to_row
from incarnate.domain.transcripts.vectors import row_answer
from tests.support.transcripts import OPAQUE, ROWS

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"


def vectors() -> list[dict[str, Any]]:
    lines = (VECTORS / "transcript_rows.jsonl").read_bytes().split(b"\n")
    return [json.loads(line) for line in lines if line]


def through_an_event(row: Row) -> Row | None:
    event = decode_event(encode_event(to_event(row, "e1", None)).payload)
    return to_row(event)


@pytest.mark.smoke
def test_every_recorded_line_is_refused_or_rewritten_byte_for_byte_as_the_reference_does() -> None:
    assert 240 == len(vectors())
    assert vectors() == [row_answer(vector) for vector in vectors()]


@pytest.mark.smoke
def test_every_recorded_row_survives_the_way_through_an_event_byte_for_byte() -> None:
    rows = [decode_row(vector["line"].encode()) for vector in vectors() if vector["ok"]]
    expected = [vector["rewritten"] for vector in vectors() if vector["ok"]]

    actual = [encode_row(back).decode() for row in rows if (back := through_an_event(row)) is not None]

    assert expected == actual


@given(ROWS)
def test_any_row_reads_back_equal(row: Row) -> None:
    assert row == decode_row(encode_row(row))


@given(ROWS)
def test_any_row_survives_the_way_through_an_event_byte_for_byte(row: Row) -> None:
    back = through_an_event(row)

    assert back is not None
    assert encode_row(row) == encode_row(back)


@given(st.dictionaries(st.text(), st.integers(), max_size=8))
def test_keys_are_sorted_by_their_utf_8_bytes(args: dict[str, int]) -> None:
    written = json.loads(encode_row(ToolCallRow("c", "run", args)))

    assert sorted(args, key=str.encode) == list(written["args"])


@given(OPAQUE)
def test_a_row_is_one_line(value: object) -> None:
    assert b"\n" not in encode_row(ToolResultRow("c", value))


def test_a_row_without_parent_has_no_parent_id_and_value_and_error_are_always_written() -> None:
    assert b'{"type":"tool_result","id":"c","value":null,"error":null}' == encode_row(ToolResultRow("c", None))


def test_fields_stand_in_the_order_of_their_declaration() -> None:
    row = ToolResultRow("c", {"b": 1, "a": 2}, "boom", "p")
    expected = b'{"type":"tool_result","id":"c","value":{"a":2,"b":1},"error":"boom","parent_id":"p"}'

    assert expected == encode_row(row)


@pytest.mark.parametrize("line", [b'{"type":"turn_end","id":"t"}', b'{"outcome":null,"id":"t","type":"turn_end"}'])
def test_a_legacy_turn_end_was_completed(line: bytes) -> None:
    assert TurnEndRow("t", "completed") == decode_row(line)


def test_a_failed_outcome_is_written_with_its_kind_and_message() -> None:
    row = TurnEndRow("t", FailedOutcome(TurnError("stream", "gone")))
    expected = b'{"type":"turn_end","id":"t","outcome":{"error":{"kind":"stream","message":"gone"}}}'

    assert expected == encode_row(row)


def test_integers_of_any_size_stay_exact() -> None:
    row = ToolCallRow("c", "run", 10**40)

    assert row == decode_row(encode_row(row))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"\xef\xbb\xbf" + b'{"type":"user_message","text":"a byte order mark"}',
        b'{"type":"user_message","text":"\\ud83d"}',
        b'{"type":"user_message","text":"\xff"}',
        b'{"type":"user_message","text":"a"}{"type":"user_message","text":"b"}',
        b'{"type":"usage","id":"u"}',
        b'{"type":"tool_result","id":"c","error":null}',
        b'{"type":"turn_end","id":"t","outcome":"unheard of"}',
        b'{"type":"tool_call","id":"c","name":"n","args":' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"type":"tool_call","id":"c","name":"n","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"tool_call","id":"c","name":"n","args":1e999}',
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)
def test_what_is_no_row_is_refused(line: bytes) -> None:
    with pytest.raises(EventShapeError):
        decode_row(line)


@pytest.mark.parametrize(
    ("row", "path"),
    [
        (ToolCallRow("c", "run", {"a": [float("nan")]}), "$.args.a[0]"),
        (ToolResultRow("c", {"a": "\ud83d"}), "$.value.a"),
        (UserMessageRow("\ud83d"), "$.text"),
        (ToolCallRow("c", "run", (1, 2)), "$.args"),
    ],
    ids=str,
)
def test_what_would_not_read_back_equal_is_refused_with_its_path(row: Row, path: str) -> None:
    with pytest.raises(UnencodableEventError) as refused:
        encode_row(row)

    assert path == refused.value.path
