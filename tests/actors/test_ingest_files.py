"""Files, session folders, databases and pipes as an ingest finds them."""

import io
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.actors.ingest import ingest, ingest_source
from incarnate.actors.ingest_files import open_session, sniff_stream
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.system import SessionSystem
from incarnate.domain.codec import encode_event
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.errors import DialectError, SessionChoiceError, StoreFileError
from incarnate.domain.events import ToolCall, UserMessage
from tests.support.commands import KEY

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
ALL = list(DIALECTS.values())


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def take(system: SessionSystem, path: Path, session: str | None = None, **options: Any) -> IngestReport:
    with open_session(path, ALL, session=session) as opened:
        return ingest_source(system, KEY, opened.dialect, opened.source, session_id=opened.session, **options)


def events_of(system: SessionSystem) -> list[Any]:
    return [appended.event for appended in system.replay(KEY)]


def payloads(system: SessionSystem) -> list[bytes]:
    return [encode_event(appended.event).payload for appended in system.replay(KEY)]


@pytest.mark.parametrize(
    ("folder", "harness", "inside"),
    [
        ("claude/S7", "claude-code", 8),
        ("claude/S7k", "claude-code", 5),
        ("qwen/S7", "qwen-code", 6),
        ("kimicode/S7", "kimi", 8),
        ("copilot/S7", "@github/copilot", 6),
    ],
)
def test_a_session_folder_is_read_with_its_sub_agents(
    system: SessionSystem, folder: str, harness: str, inside: int
) -> None:
    report = take(system, RECORDINGS / folder / "disk")
    events = events_of(system)
    calls = [event.call_id for event in events if isinstance(event, ToolCall) and event.parent_call_id is UNSET]
    within = [event for event in events if event.parent_call_id is not UNSET]

    assert (harness, 0) == (report.harness, report.refused)
    assert report.session_id is not None
    assert inside <= len(within)
    assert {event.parent_call_id for event in within} <= set(calls)


def test_what_a_sub_agent_did_stands_where_it_happened(system: SessionSystem) -> None:
    take(system, RECORDINGS / "claude" / "S7" / "disk")
    events = events_of(system)
    calls = [at for at, event in enumerate(events) if isinstance(event, ToolCall) and event.parent_call_id is UNSET]
    within = [at for at, event in enumerate(events) if event.parent_call_id is not UNSET]

    assert calls[0] < within[0]
    assert within[-1] < len(events) - 1


def until(path: Path, moment: str) -> bytes:
    """The file as it was then."""
    kept: list[bytes] = []
    for line in path.read_bytes().splitlines(keepends=True):
        if json.loads(line).get("timestamp", "") >= moment:
            break
        kept.append(line)
    return b"".join(kept)


def test_a_folder_that_has_grown_is_continued(system: SessionSystem, tmp_path: Path) -> None:
    whole = RECORDINGS / "claude" / "S7" / "disk"
    moments = sorted(
        json.loads(line).get("timestamp", "")
        for path in whole.rglob("*.jsonl")
        for line in path.read_bytes().splitlines()
        if b'"message"' in line
    )
    shutil.copytree(whole, tmp_path / "grown")
    for path in (tmp_path / "grown").rglob("*.jsonl"):
        path.write_bytes(until(path, moments[len(moments) // 2]))
    first = take(system, tmp_path / "grown")
    second = take(system, whole)

    assert (first.appended, 0) == (second.skipped, second.beyond)
    assert first.appended > 5 < second.appended
    with SessionSystem.open("memory://") as undisturbed:
        take(undisturbed, whole)

        assert payloads(undisturbed) == payloads(system)


def test_one_of_several_sessions_is_named_by_the_beginning_of_its_id(system: SessionSystem) -> None:
    with pytest.raises(SessionChoiceError, match=r"holds \d+ sessions: .*, \.\.\."):
        take(system, RECORDINGS / "pi")
    report = take(system, RECORDINGS / "pi", "01a22ddd-b393")

    assert "01a22ddd-b393-73d7-9167-382ae5b5d5f7" == report.session_id
    with pytest.raises(SessionChoiceError, match="not one that 'nobody' names"):
        take(system, RECORDINGS / "pi", "nobody")


def test_a_folder_without_sessions_says_so(system: SessionSystem, tmp_path: Path) -> None:
    with pytest.raises(DialectError, match="no record of any known harness"):
        take(system, tmp_path)
    (tmp_path / "notes.jsonl").write_bytes((RECORDINGS / "pi" / "S2" / "stdout.jsonl").read_bytes())
    with pytest.raises(SessionChoiceError, match="holds 0 sessions"):
        take(system, tmp_path)


def test_the_session_of_a_harness_that_never_prints_it_is_in_the_name_of_its_file(system: SessionSystem) -> None:
    [path] = (RECORDINGS / "kimicode" / "S2" / "disk").rglob("wire.jsonl")

    assert "session_ba52f470-fbae-4ccb-ae88-4f433778ea6a" == take(system, path).session_id


def test_a_session_that_no_record_names_is_named_by_whoever_knows_it(system: SessionSystem) -> None:
    path = RECORDINGS / "kimi" / "S2" / "stdout.jsonl"

    assert ("given", None) == (take(system, path, "given").session_id, take(system, path).session_id)


def dump(path: Path, scenario: str) -> None:
    """The rows of a recording as the database that they came from."""
    lines = (RECORDINGS / "opencode" / scenario / "disk" / "opencode.db.rows.jsonl").read_bytes().splitlines()
    with closing(sqlite3.connect(path)) as database, database:
        for line in lines:
            table, row = json.loads(line)["table"], json.loads(line)["row"]
            names, places = ", ".join(row), ", ".join("?" * len(row))
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({names})")
            database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))


def test_the_database_of_opencode_is_read_as_its_rows_are(system: SessionSystem, tmp_path: Path) -> None:
    dump(tmp_path / "opencode.db", "S7")
    report = take(system, tmp_path)
    events = events_of(system)

    assert ("opencode", "ses_dd21868e0ffe54Og2nH4dG0XmA") == (report.harness, report.session_id)
    assert (18, 0) == (report.appended, take(system, tmp_path / "opencode.db").appended)
    assert {"call_stubS70004"} == {event.parent_call_id for event in events if event.parent_call_id is not UNSET}


def test_an_older_database_is_read_by_its_messages_and_parts(system: SessionSystem, tmp_path: Path) -> None:
    dump(tmp_path / "opencode.db", "S5")
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database, database:
        database.execute("DROP TABLE event")
    take(system, tmp_path, ended=True)
    told = [type(appended.event).__name__ for appended in system.replay(KEY)]

    assert 2 == told.count("UserMessage")
    assert (2, 1, 2) == (told.count("ToolCall"), told.count("ToolResult"), told.count("Usage"))


def test_another_database_is_refused(system: SessionSystem, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database, database:
        database.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreFileError, match="no database of OpenCode"):
        take(system, tmp_path / "opencode.db")


def test_a_pipe_is_told_by_its_first_records_and_nothing_of_it_is_lost(system: SessionSystem) -> None:
    data = (RECORDINGS / "pi" / "S2" / "stdout.jsonl").read_bytes()

    class Dripping(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read1(min(size or 50, 50))

    dialect, rejoined = sniff_stream(Dripping(b"Loading...\n" + data), ALL)
    report = ingest(system, KEY, dialect, rejoined, at_head=True)

    assert ("pi", 1 + data.count(b"\n")) == (dialect.name, report.lines)
    assert 12 == report.appended


def test_a_pipe_whose_harness_is_named_is_not_read_to_find_out() -> None:
    stream = io.BytesIO(b"x")

    assert (find_dialect("pi"), stream) == sniff_stream(stream, [find_dialect("pi")])


def test_prompts_go_with_whatever_is_read(system: SessionSystem) -> None:
    take(system, RECORDINGS / "opencode" / "S2" / "stdout.jsonl", prompts=["do it"])

    assert ["do it"] == [a.event.text for a in system.replay(KEY) if isinstance(a.event, UserMessage)]
