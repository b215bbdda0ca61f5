"""What maps to nothing, kept beside the log as the harness wrote it."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incarnate.actors.ingest import ingest
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.raw_records import RawRecords
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.kept import KeptRecord, decode_kept
from incarnate.domain.dialects.registry import find_dialect
from tests.support.commands import KEY, recording

NEW = b'{"type":"new-thing","session_id":"s"}'
SAID = b'{"type":"assistant","message":{"content":"hi"}}'


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def feed(system: SessionSystem, folder: Path, data: bytes, *, again: bool = False, **options: Any) -> IngestReport:
    with RawRecords(folder, KEY, "claude-code", again=again) as raw:
        return ingest(system, KEY, find_dialect("claude-code"), io.BytesIO(data), raw=raw, at_head=again, **options)


def kept(folder: Path) -> list[KeptRecord]:
    [path] = folder.iterdir()
    found = [decode_kept(line) for line in path.read_bytes().split(b"\n") if line]
    return [record for record in found if record is not None]


def test_what_maps_to_nothing_is_kept_byte_for_byte(system: SessionSystem, tmp_path: Path) -> None:
    report = feed(
        system, tmp_path / "raw", SAID + b"\n" + NEW + b"\n" + b'{"type":"a\xff"}\n' + b"words\n" + b'{"x"}\n'
    )

    assert 4 == report.kept
    assert ["new-thing", "a\ufffd", "(text)", "(refused)"] == [one.kind for one in kept(tmp_path / "raw")]
    assert [NEW, b'{"type":"a\xff"}', b"words", b'{"x"}'] == [one.data for one in kept(tmp_path / "raw")]
    assert [(2, len(SAID) + 1), (3, len(SAID) + len(NEW) + 2)] == [(o.line, o.byte) for o in kept(tmp_path / "raw")][:2]


def test_every_record_that_the_report_counts_is_there(system: SessionSystem, tmp_path: Path) -> None:
    report = feed(system, tmp_path / "raw", recording("S7").read_bytes())

    assert sum(report.ignored.values()) == report.kept == len(kept(tmp_path / "raw"))


def test_a_file_that_is_read_again_is_kept_once(system: SessionSystem, tmp_path: Path) -> None:
    data = SAID + b"\n" + NEW + b"\n"
    reports = [feed(system, tmp_path / "raw", data), feed(system, tmp_path / "raw", data + NEW + b"\n")]

    assert [1, 1] == [report.kept for report in reports]
    assert [2, 3] == [record.line for record in kept(tmp_path / "raw")]


def test_a_pipe_is_kept_each_time(system: SessionSystem, tmp_path: Path) -> None:
    for _ in range(2):
        feed(system, tmp_path / "raw", NEW + b"\n", again=True)

    assert 2 == len(kept(tmp_path / "raw"))


def test_a_line_that_a_kill_tore_is_passed_over(system: SessionSystem, tmp_path: Path) -> None:
    feed(system, tmp_path / "raw", SAID + b"\n" + NEW + b"\n")
    [path] = (tmp_path / "raw").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    report = feed(system, tmp_path / "raw", SAID + b"\n" + NEW + b"\n")

    assert (1, [NEW]) == (report.kept, [record.data for record in kept(tmp_path / "raw")])


def test_what_is_kept_is_its_owners_alone(system: SessionSystem, tmp_path: Path) -> None:
    feed(system, tmp_path / "raw", NEW + b"\n", again=True)
    [path] = (tmp_path / "raw").iterdir()

    assert ["pik-1%2Fimplement-task.jsonl", 0o600, 0o700] == [
        path.name,
        path.stat().st_mode & 0o777,
        path.parent.stat().st_mode & 0o777,
    ]
