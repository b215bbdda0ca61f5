"""A SQLite file with a damaged page, or with rows that somebody edited: told, and nothing else raised."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.diagnosis import Diagnosis
from incarnate.domain.errors import LogCorruptionError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.storage.sqlite import SqliteStore
from incarnate.storage.sqlite_files import PAGE_BYTES
from tests.support.commands import run

KEYS = [ActivationKey("pik", name) for name in ("a", "b")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "sessions.db"
    with SessionSystem.open(f"sqlite:///{file}") as system:
        for key in KEYS:
            session = system.claim(key)
            session.emit_many([AssistantMessage(id=f"e{n}", parent_id=None, text="x" * 400) for n in range(200)])
            session.checkpoint("sha")
            session.emit_many([AssistantMessage(id=f"f{n}", parent_id=None, text="y") for n in range(3)])
            session.restore()
            session.emit_many([AssistantMessage(id=f"g{n}", parent_id=None, text="z") for n in range(3)])
    return file


def pages(file: Path) -> Iterator[int]:
    return iter(range(1, file.stat().st_size // PAGE_BYTES))  # not the first: without it, it is no database


def overwrite(file: Path, page: int, data: bytes, at: int = 0) -> None:
    with file.open("r+b") as opened:
        opened.seek(page * PAGE_BYTES + at)
        opened.write(data)


def examined(file: Path) -> list[Diagnosis]:
    with SessionSystem.open(f"sqlite:///{file}", read_only=True) as system:
        return list(system.examine())


def kinds(found: list[Diagnosis]) -> set[tuple[str, str]]:
    return {(finding.severity, finding.kind) for one in found for finding in one.findings}


def test_a_whole_file_has_no_damage(file: Path) -> None:
    with SqliteStore(str(file)) as store:
        assert [] == list(store.damage())
    assert set() == kinds(examined(file))


def test_any_page_of_zeros_is_damage_that_the_doctor_tells(file: Path) -> None:
    whole = file.read_bytes()
    for page in pages(file):
        overwrite(file, page, bytes(PAGE_BYTES))

        assert ("damage", "store") in kinds(examined(file)), f"page {page}"
        file.write_bytes(whole)


def test_any_page_that_lost_its_header_is_damage_that_the_doctor_tells(file: Path) -> None:
    whole = file.read_bytes()
    for page in pages(file):
        overwrite(file, page, os.urandom(16))

        assert ("damage", "store") in kinds(examined(file)), f"page {page}"
        file.write_bytes(whole)


def test_the_command_says_where_and_what_to_do(file: Path) -> None:
    overwrite(file, next(pages(file)), bytes(PAGE_BYTES))

    result = run("doctor", f"sqlite:///{file}")

    assert 4 == result.exit_code
    assert result.stdout.startswith("the store\n  damage  ")
    assert "Try: bring the store back from a copy" in result.stdout


def edit(file: Path, statement: str, value: Any) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        assert db.execute(statement, (value,)).rowcount


ODD = [-1, -(2**62), 253_402_300_800_000, 2**62, "noon", b"\0", 1.5]
TIMES = ["UPDATE event SET at_ms = ?", "UPDATE activation SET created_ms = ?", "UPDATE rewind SET at_ms = ?"]


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("statement", TIMES)
@pytest.mark.parametrize("command", ["ls", "replay", "rewinds", "export", "show", "doctor"])
def test_times_that_somebody_else_stored_are_shown_or_told_with_their_place(
    file: Path, statement: str, value: Any, command: str
) -> None:
    edit(file, statement, value)
    key = [] if command in {"ls", "doctor"} else [str(KEYS[0])]
    form = ["--format", "canonical"] if command == "export" else []

    result = run(command, *key, *form, "--store", f"sqlite:///{file}")

    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if result.exit_code and command != "doctor":
        assert "Usage" not in result.stderr
        assert "sessions.db, pik/a" in result.stderr


@pytest.mark.parametrize("column", ["incarnation", "at_ms"])
def test_a_column_that_holds_no_integer_is_told_with_its_row(file: Path, column: str) -> None:
    edit(file, f"UPDATE event SET {column} = ? WHERE offset = 202", "x")

    with SessionSystem.open(f"sqlite:///{file}") as system, pytest.raises(LogCorruptionError, match="pik/a, offset"):
        list(system.replay(KEYS[0]))
