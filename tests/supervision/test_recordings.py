"""What real harnesses printed when they were killed in a tool, and when they were resumed, through the supervisor."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.events import AppendedEvent, AssistantMessage, ToolCall, ToolResult, TurnEnd, TurnStart
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.harness_files import SessionFolder
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.plan import Finish
from incarnate.supervision.reconcile import GUESSED, OUTCOME_UNKNOWN
from incarnate.supervision.supervisor import Supervisor
from tests.recordings import recorded
from tests.recordings.table import HARNESSES
from tests.support.replayed import Life, ReplayEdge

KEY = ActivationKey("supervised", "run")
SUPERVISED = [harness for harness in HARNESSES if harness.dialect in DIALECTS and not harness.folder.startswith("acp/")]
QUICK = Policy(backoff=0)


def supervise(
    harness: recorded.Harness, tmp_path: Path, *lives: str, tool: bool = False
) -> tuple[Finish, ReplayEdge, list[AppendedEvent]]:
    """The recordings as lives; what the first one left on disk is what stands there when it is dead."""
    edge = ReplayEdge(*[life(harness, scenario, tool=tool) for scenario in lives])
    dialect = find_dialect(harness.dialect)
    folder = harness.path(lives[0]) / "disk"
    files = SessionFolder(dialect, (database_of(folder, tmp_path) if harness.folder == "opencode" else folder,))
    command = Command.parse(["harness", "-p", recorded.prompt(harness, lives[0])])
    with SessionSystem.open("memory://") as system:
        supervisor = Supervisor(
            system,
            KEY,
            Harness(dialect, command, files, go_on="go on"),
            edge=edge,
            runtime=make_runtime("calling"),
            policy=QUICK,
            clock=lambda: 0,
        )
        return supervisor.run(), edge, list(system.replay(KEY))


def database_of(folder: Path, tmp_path: Path) -> Path:
    """The rows of a recording as the database that they came from."""
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database, database:
        for line in (folder / "opencode.db.rows.jsonl").read_bytes().split(b"\n")[:-1]:
            table, row = json.loads(line)["table"], json.loads(line)["row"]
            names, places = ", ".join(row), ", ".join("?" * len(row))
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({names})")
            database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))
    return tmp_path


def life(harness: recorded.Harness, scenario: str, *, tool: bool) -> Life:
    killed = bool(recorded.run_of(harness, scenario)["kill"])
    return Life(harness.stdout(scenario), -9 if killed else 0, tool and killed)


@pytest.mark.parametrize("harness", SUPERVISED, ids=lambda harness: harness.folder)
def test_a_harness_that_is_killed_in_a_tool_is_resumed_and_finishes(harness: recorded.Harness, tmp_path: Path) -> None:
    finish, edge, log = supervise(harness, tmp_path, "S4", "S5", tool=True)
    events = [one.event for one in log]

    assert Finish(0, "done") == finish
    assert [True, True] == [running.ended for running in edge.started]
    assert list(range(len(log))) == [one.offset for one in log]
    assert len(events) == len({event.id for event in events})
    assert ["interrupted", "completed"] == [event.outcome for event in events if isinstance(event, TurnEnd)]
    assert 2 == sum(isinstance(event, TurnStart) for event in events)


@pytest.mark.parametrize("harness", SUPERVISED, ids=lambda harness: harness.folder)
def test_each_call_is_answered_once_and_only_a_killed_one_by_a_guess(harness: recorded.Harness, tmp_path: Path) -> None:
    _, _, log = supervise(harness, tmp_path, "S4", "S5")
    calls = [one.event.id for one in log if isinstance(one.event, ToolCall)]
    results = [one.event for one in log if isinstance(one.event, ToolResult)]

    assert 2 == len(calls)
    assert 2 == len(results)
    assert [(GUESSED + calls[0], OUTCOME_UNKNOWN)] == [
        (result.id, result.error) for result in results if result.id.startswith(GUESSED)
    ]


@pytest.mark.parametrize("harness", SUPERVISED, ids=lambda harness: harness.folder)
def test_the_model_history_is_the_same_as_the_log(harness: recorded.Harness, tmp_path: Path) -> None:
    _, _, log = supervise(harness, tmp_path, "S4", "S5")
    history = ModelHistory()
    for one in log:
        history.apply(one)
    said = [message.text for message in history.value if message.role == "assistant" and message.text]

    assert [one.event.text for one in log if isinstance(one.event, AssistantMessage)] == said
    assert 2 == sum(message.role == "tool" for message in history.value)


@pytest.mark.parametrize("harness", SUPERVISED, ids=lambda harness: harness.folder)
def test_a_plain_run_is_the_log_that_ingest_makes_of_it(harness: recorded.Harness, tmp_path: Path) -> None:
    finish, _, log = supervise(harness, tmp_path, "S2")
    ingested = recorded.read(harness.dialect, harness.stdout("S2"), harness.prompts("S2"))
    kinds = [type(event).__name__ for event in ingested.events]

    assert Finish(0, "done") == finish
    assert kinds == [type(one.event).__name__ for one in log][: len(kinds)]


def test_the_fixtures_of_every_dialect_with_recordings_are_used() -> None:
    assert {"claude", "codex", "pi"} <= {harness.folder for harness in SUPERVISED}
    assert Path(SUPERVISED[0].path("S4")).is_dir()
