"""A dialect that reads only some fields of a record makes the same of it as of the whole record."""

from pathlib import Path

import msgspec
import pytest

from incarnate.domain.dialects.base import Normalized, Normalizer, ReadsFields
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import DialectError

FIXTURES = Path(__file__).parents[3] / "fixtures"
FOLDERS = {"claude-code": "claude", "codex": "codex"}


class Vector(msgspec.Struct):
    harness: str
    records: list[msgspec.Raw]


def recorded(harness: str) -> list[list[bytes]]:
    """The lines of every recording."""
    found = sorted((FIXTURES / "recordings" / FOLDERS[harness]).rglob("*.jsonl"))
    return [list(filter(None, path.read_bytes().split(b"\n"))) for path in found if path.name != "requests.jsonl"]


def invented(harness: str) -> list[list[bytes]]:
    """The records of every vector, many of which no harness would write."""
    lines = (FIXTURES / "vectors" / "dialects.jsonl").read_bytes().split(b"\n")
    vectors = [msgspec.json.decode(line, type=Vector) for line in lines if b'"records"' in line]
    return [[bytes(record) for record in vector.records] for vector in vectors if vector.harness == harness]


def means(normalizer: Normalizer, value: object) -> Normalized | str:
    try:
        return normalizer.feed(value)
    except DialectError as error:
        return str(error)


def some_fields(dialect: ReadsFields, line: bytes, whole: object) -> object:
    """As an ingest does it: the whole record where the fields are of a shape that the harness does not write."""
    try:
        return dialect.decode(line)
    except msgspec.MsgspecError:
        return whole


@pytest.mark.parametrize("harness", FOLDERS)
def test_the_fields_that_are_read_are_all_that_a_record_means(harness: str) -> None:
    dialect = find_dialect(harness)
    assert isinstance(dialect, ReadsFields)
    for session in recorded(harness) + invented(harness):
        known, guessed = dialect.normalizer(), dialect.normalizer()
        for line in session:
            record = read_record(line)
            assert record is not None
            part = some_fields(dialect, line, record.value)
            assert means(known, record.value) == means(guessed, part)
            assert dialect.session_id(record.value) == dialect.session_id(part)
            assert dialect.record_id(record.value) == dialect.record_id(part)


@pytest.mark.parametrize("harness", FOLDERS)
def test_what_the_harness_writes_is_read_in_one_go(harness: str) -> None:
    dialect = find_dialect(harness)
    assert isinstance(dialect, ReadsFields)
    for session in recorded(harness):
        for line in session:
            assert isinstance(dialect.decode(line), dict)


@pytest.mark.parametrize(
    "count", [b"7", b"7.0", b"1.5", b"-1", b"true", b"null", b'"7"', b"1e400", b"9007199254740992", b"[]"]
)
def test_a_count_of_any_shape_means_what_it_does_in_the_whole_record(count: bytes) -> None:
    dialect = find_dialect("claude-code")
    assert isinstance(dialect, ReadsFields)
    usage = b'{"input_tokens":5,"output_tokens":%s,"reasoning":3,"thinking_tokens":4}' % count
    message = b'{"type":"assistant","session_id":"s","message":{"id":"m","content":[],"usage":%s}}'
    by_model = b'{"m":{"inputTokens":9,"outputTokens":%s,"input_tokens":4}}' % count
    result = b'{"type":"result","session_id":"s","usage":%s,"model_usage_since_last_result":%s}'
    known, guessed = dialect.normalizer(), dialect.normalizer()
    for line in (message % usage, message % count, result % (usage, by_model), result % (count, count)):
        record = read_record(line)
        assert record is not None
        assert means(known, record.value) == means(guessed, some_fields(dialect, line, record.value))
