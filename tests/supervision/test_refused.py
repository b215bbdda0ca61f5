"""What a harness prints and nobody can read: counted, told, and no reason to end a session."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.plan import Finish
from incarnate.supervision.supervisor import Supervisor
from tests.support.replayed import Life, NoFiles, ReplayEdge

KEY = ActivationKey("supervised", "run")


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}).encode() + b"\n"


BEGUN = line("thread.started", thread_id="thread-1") + line("turn.started")
ENDED = line("turn.completed", usage={"input_tokens": 1, "output_tokens": 1})
DONE = line("item.completed", item={"id": "item_0", "type": "agent_message", "text": "done"})
SILENT = line("item.completed", item={"id": "item_1", "type": "agent_message"})
CUT = b'{"type": "item.completed", "item": {"id": "item_2", "te\n'
KILLED = Life(BEGUN + CUT, -9)


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", "incarnate")
    return caplog


def supervised(system: SessionSystem, *lives: Life) -> Supervisor:
    harness = Harness(find_dialect("codex"), Command.parse(["codex", "exec", "do it"]), NoFiles())
    runtime, policy = make_runtime("calling"), Policy(backoff=0)
    return Supervisor(system, KEY, harness, edge=ReplayEdge(*lives), runtime=runtime, policy=policy)


def told(logged: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [record for record in logged.records if getattr(record, "event", "") == event]


def spread(text: str, lines: int) -> bytes:
    """An answer whose line feeds are raw, so that it stands on so many lines: more than are put together."""
    item = {"id": "item_9", "type": "agent_message", "text": "\n".join([text] * lines)}
    return line("item.completed", item=item).replace(rb"\n", b"\n")


def test_what_cannot_be_read_is_told_as_it_comes(system: SessionSystem, logged: pytest.LogCaptureFixture) -> None:
    finish = supervised(system, Life(BEGUN + CUT + DONE + SILENT + b"no record\n" + ENDED)).run()

    assert Finish(0, "done") == finish
    assert [
        (logging.WARNING, "supervised/run: refused line 3: a record that is cut short"),
        (logging.WARNING, "supervised/run: refused line 5: codex: agent_message without text"),
    ] == [(record.levelno, record.getMessage()) for record in told(logged, "refused")]


def test_records_over_more_lines_than_are_put_together_are_refused(
    system: SessionSystem, logged: pytest.LogCaptureFixture
) -> None:
    supervised(system, Life(BEGUN + spread("one", 36) + spread("two", 36) + ENDED)).run()

    assert [] == [one for one in system.replay(KEY) if isinstance(one.event, AssistantMessage)]
    assert [3, 39] == [record.__dict__["line"] for record in told(logged, "refused")]


def test_of_much_that_cannot_be_read_the_first_lines_are_told_and_all_counted(
    system: SessionSystem, logged: pytest.LogCaptureFixture
) -> None:
    supervisor = supervised(system, Life(BEGUN + CUT * 100 + DONE + ENDED))
    supervisor.run()
    messages = [record.getMessage() for record in told(logged, "refused")]

    assert 6 == len(messages)
    assert "supervised/run: refused 95 lines more" == messages[-1]
    assert 100 == supervisor.known.refused


def test_the_facts_and_the_end_count_what_was_refused_in_all_lives(
    system: SessionSystem, logged: pytest.LogCaptureFixture
) -> None:
    supervised(system, KILLED, KILLED, Life(BEGUN + CUT + DONE + b"text\n" + line("new.kind") + ENDED)).run()
    recorded = [one for one in told(logged, "learned") if one.__dict__["fact"] == "OutputRecorded"]
    [finished] = told(logged, "finished")

    assert "what it printed is recorded, 5 events; 1 line was refused" == recorded[-1].getMessage()
    assert {"(text)": 1, "new.kind": 1}.items() <= recorded[-1].__dict__["ignored"].items()
    assert [3, 3] == [one.__dict__["refused"] for one in (recorded[-1], finished)]


def test_an_output_that_ends_inside_a_record_is_told(system: SessionSystem, logged: pytest.LogCaptureFixture) -> None:
    supervised(system, Life(BEGUN + DONE + ENDED + CUT[:-1])).run()
    [torn] = told(logged, "refused")

    assert "supervised/run: the output ends inside the record of line 5: " in torn.getMessage()


def test_nothing_is_said_of_an_output_that_is_whole(system: SessionSystem, logged: pytest.LogCaptureFixture) -> None:
    supervisor = supervised(system, Life(BEGUN + b"text that is no record\n" + DONE + ENDED))
    supervisor.run()

    assert [] == told(logged, "refused")
    assert 0 == supervisor.known.refused


def test_a_record_that_the_log_cannot_hold_is_told_with_its_line(
    system: SessionSystem, logged: pytest.LogCaptureFixture
) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"n": deep}
    item = {"id": "item_3", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": deep}
    supervisor = supervised(system, Life(BEGUN + line("item.started", item=item) + DONE + ENDED))
    supervisor.run()
    [refused] = told(logged, "refused")

    assert (3, 1) == (refused.__dict__["line"], supervisor.known.refused)
    assert refused.getMessage().startswith("supervised/run: refused line 3: nested deeper than 256 levels")
    assert 400 > len(refused.getMessage())
    assert ["done"] == [one.event.text for one in system.replay(KEY) if isinstance(one.event, AssistantMessage)]
