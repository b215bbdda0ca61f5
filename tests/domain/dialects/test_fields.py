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
