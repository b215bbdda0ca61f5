"""One changed byte in a journal: its own record is told, and the records around it can be read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from incarnate.actors.doctor import examine
from incarnate.domain.errors import LogCorruptionError
from incarnate.storage.jsonl import JsonlStore
from tests.support.stores import Log, note

COUNT = 3000  # a few hundred KB: an index, and chunks of many records


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    with JsonlStore(str(tmp_path / "journals")) as store:
        Log(store).append(0, [note(f"e{number}", "x" * 300) for number in range(COUNT)])
    return next((tmp_path / "journals").glob("*/*.jsonl"))


@pytest.fixture
def log(segment: Path) -> Iterator[Log]:
    with JsonlStore(str(segment.parents[1])) as store:
        yield Log(store)


def flip(segment: Path, offset: int, inside: bytes) -> None:
    """Change a byte of the record of the event at `offset`, where `inside` begins."""
    data = segment.read_bytes()
    byte = data.index(inside, data.index(b'{"offset":%d,' % offset))
    with segment.open("r+b") as file:
        file.seek(byte)
        file.write(bytes([data[byte] ^ 1]))


@pytest.mark.parametrize("offset", [0, 1, 1234, COUNT - 1])
def test_the_doctor_tells_the_record_that_was_changed_and_reads_all_others(
    segment: Path, log: Log, offset: int
) -> None:
    flip(segment, offset, b"xxxx")
    [found] = examine(log.store)

    assert [("damage", "unreadable", offset)] == [(one.severity, one.kind, one.offset) for one in found.findings]
    assert COUNT - 1 == found.events
    assert "has changed since it was written" in found.findings[0].text


def test_a_changed_checksum_takes_the_record_behind_it_along_and_no_other(segment: Path, log: Log) -> None:
    flip(segment, 1234, b'"crc":"')
    [found] = examine(log.store)

    assert found.events >= COUNT - 2
    assert {"unreadable"} == {one.kind for one in found.findings}


def test_a_read_that_needs_the_changed_record_is_told_and_one_that_does_not_goes_on(segment: Path, log: Log) -> None:
    flip(segment, 1234, b"xxxx")
    with log.store.snapshot(log.key) as seen:
        assert 1234 == len(seen.appended(0, 1234))
        assert COUNT - 1235 == len(seen.appended(1235, COUNT))
        with pytest.raises(LogCorruptionError, match="has changed since it was written"):
            seen.appended(1230, 1240)
