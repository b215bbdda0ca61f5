"""What docs/storage.md shows of a SQLite file is so."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from incarnate import ActivationKey, SessionSystem, UserMessage

GUIDE = (Path(__file__).parents[1] / "docs" / "storage.md").read_text("utf-8")
STATEMENTS = re.findall(r'^\$ sqlite3 -readonly sessions\.db "(.*?)"$', GUIDE, flags=re.MULTILINE | re.DOTALL)
KEY = ActivationKey("order-7", "implement-task")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with SessionSystem.open(f"sqlite:///{tmp_path}/sessions.db", clock=lambda: 5) as system:
        for key in (KEY, ActivationKey("order-8", "implement-task")):
            session = system.claim(key)
            session.emit(UserMessage(id=key.process_instance_key, parent_id=None, text="hi"))
            session.checkpoint("sha")
    return tmp_path / "sessions.db"


def asked(database: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as opened:
        return opened.execute(statement).fetchall()


def test_its_statements_find_what_they_say(database: Path) -> None:
    activations, by_number, by_key = STATEMENTS

    assert ["order-7", "order-8"] == [row[1] for row in asked(database, activations)]
    assert [(0, 1)] == [row[:2] for row in asked(database, by_number)]
    assert '"order-7"' in asked(database, by_number)[0][2]
    assert [(0, 5, "user")] == asked(database, by_key)


def test_a_statement_by_key_reads_that_log_alone(database: Path) -> None:
    plan = "\n".join(str(row[-1]) for row in asked(database, f"EXPLAIN QUERY PLAN {STATEMENTS[2]}"))

    assert "SCAN" not in plan


def test_every_column_of_every_table_is_told(database: Path) -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| (`.*) \|$", GUIDE.partition("## The JSONL store")[0], flags=re.MULTILINE))
    tables = [name for (name,) in asked(database, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {name: [row[1] for row in asked(database, f"PRAGMA table_xinfo({name})")] for name in tables}

    assert sorted(columns) == sorted(told)
    assert [] == [(name, one) for name, found in columns.items() for one in found if f"`{one}`" not in told[name]]
