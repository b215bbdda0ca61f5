"""`show --view` and `show --follow`."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from incarnate import (
    AssistantMessage,
    Change,
    ClientFrames,
    Compaction,
    ModelHistory,
    Reasoning,
    Session,
    SessionEvent,
    SessionSystem,
    StudioTranscript,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
    apply_change,
)
from incarnate.domain.codec import encode_json
from tests.support.commands import INGEST, KEY, command_line, recording, run, start

FIELDS: dict[str, Any] = {"id": "e", "parent_id": None}
EVENTS: list[SessionEvent] = [
    SystemMessage(**FIELDS, text="be brief"),
    TurnStart(**FIELDS, turn=0),
    UserMessage(**FIELDS, text="fix it"),
    Reasoning(**FIELDS, text="hm", provider_continuation="signed"),
    AssistantMessage(**FIELDS, text="on it"),
    ToolCall(**FIELDS, call_id="c", name="Bash", args={"command": "ls"}),
    ToolResult(**FIELDS, call_id="c", ok=True, result="README.md"),
    ToolCall(**FIELDS, call_id="d", name="Read"),
    TurnEnd(**FIELDS, turn=0, outcome="completed"),
]


def lines(process: "subprocess.Popen[bytes]", count: int) -> str:
    """The next so many lines that it prints."""
    assert process.stdout is not None
    return b"".join([process.stdout.readline() for _ in range(count)]).decode()


@contextmanager
def following(store: str, *options: object) -> Generator[tuple[Session, "subprocess.Popen[bytes]"]]:
    """A session, and a process that follows it until it is interrupted, well and without a word."""
    with SessionSystem.open(store) as system:
        session = system.claim(KEY)
        session.emit(AssistantMessage(**FIELDS, text="begin"))
        session.checkpoint("sha")
        process = start(command_line("show", KEY, "--follow", *options))
        try:
            yield session, process
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate()
        finally:
            process.kill()
            process.communicate()

    assert (0, b"", b"") == (process.returncode, rest, errors)


def test_the_models_view_reads_as_what_a_provider_is_sent(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit_many(EVENTS)
    expected = """\
system    be brief
user      fix it
thinking  hm
assistant on it
call      Bash {"command":"ls"}
result    Bash README.md
call      Read null
result    Read Error: no result was recorded for this tool call; whether it ran, or how far, is unknown
"""

    assert expected == run("show", KEY, "--view", "model").stdout


def test_a_summary_and_a_hidden_thought_are_told(store: str) -> None:
    with SessionSystem.open(store) as system:
        session = system.claim(KEY)
        session.emit_many(EVENTS)
        session.emit_many(
            [
                Compaction(**FIELDS, reason="auto", replaces_from=0, replaces_to=9, summary="so far"),
                Reasoning(**FIELDS, provider_continuation="blob"),
                AssistantMessage(**FIELDS, text="going on"),
            ]
        )
    expected = "summary   so far\nthinking  (kept by the provider, not readable)\nassistant going on\n"

    assert expected == run("show", KEY, "--view", "model").stdout


def test_the_clients_view_reads_as_one_frame_a_line(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit_many(EVENTS)
    shown = run("show", KEY, "--view", "frames").stdout.splitlines()

    assert '0         turn 1  status       {"phase":"start"}' == shown[0]
    assert '3         turn 1  tool         {"id":"c","name":"Bash","args":{"command":"ls"}}' == shown[3]


@pytest.mark.usefixtures("store")
def test_the_studios_view_reads_as_the_transcript() -> None:
    run(*INGEST, recording("S7"))

    assert run("show", KEY).stdout == run("show", KEY, "--view", "studio").stdout


@pytest.mark.parametrize(
    ("name", "projection"), [("studio", StudioTranscript()), ("model", ModelHistory()), ("frames", ClientFrames())]
)
def test_json_is_an_array_of_the_items_of_a_view(name: str, projection: Any, store: str) -> None:
    run(*INGEST, recording("S7"))
    with SessionSystem.open(store) as system:
        items = system.view(KEY, projection).get()
        expected = [item.to_json() if name == "model" else json.loads(encode_json(item)) for item in items]

    assert expected == json.loads(run("show", KEY, "--view", name, "--json").stdout)
    assert expected


@pytest.mark.usefixtures("store")
def test_an_unknown_view_is_a_wrong_command_line() -> None:
    assert 2 == run("show", KEY, "--view", "tomorrow").exit_code


def test_following_prints_what_comes_and_how_far_a_rewind_goes(store: str) -> None:
    with following(store) as (session, process):
        assert "assistant begin\n" == lines(process, 1)
        session.emit(ToolCall(**FIELDS, call_id="c", name="Bash"))
        assert "call      Bash null\n" == lines(process, 1)
        session.emit_many([AssistantMessage(**FIELDS, text="lost"), AssistantMessage(**FIELDS, text="lost too")])
        assert "assistant lost\nassistant lost too\n" == lines(process, 2)
        session.restore()
        session.emit(AssistantMessage(**FIELDS, text="again"))

        assert "rewound   to event 1: the last 3 above are void\nassistant again\n" == lines(process, 2)


def test_following_the_model_says_which_message_has_changed(store: str) -> None:
    with following(store, "--view", "model") as (session, process):
        session.emit(ToolCall(**FIELDS, call_id="c", name="Bash"))
        assert "assistant begin\ncall      Bash null\nresult    Bash Error: no result" == lines(process, 3)[:67]
        session.emit(ToolResult(**FIELDS, call_id="c", ok=False, result=None, error="exit 1"))

        assert "changed   message 2 above is now\nresult    Bash exit 1\n" == lines(process, 2)


@pytest.mark.parametrize("view", [(), ("--view", "studio"), ("--view", "model")])
def test_following_as_json_gives_changes_that_lead_to_the_view(view: tuple[str, ...], store: str) -> None:
    copy: list[Any] = []
    with following(store, "--json", *view) as (session, process):
        for number in range(3):
            session.emit_many([*EVENTS, AssistantMessage(**FIELDS, text=f"end {number}")])
            while not copy or f"end {number}" not in json.dumps(copy[-1]):
                change = json.loads(lines(process, 1))
                replaced = tuple((index, item) for index, item in change["replaced"])
                apply_change(copy, Change(change["generation"], change["keep"], tuple(change["items"]), replaced))
            session.restore()
        expected = json.loads(run("show", KEY, "--json", *view).stdout)

    assert expected == copy


def test_an_interrupt_of_a_terminal_ends_following_quietly(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(AssistantMessage(**FIELDS, text="begin"))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command_line("show", KEY, "--follow"), stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"begin" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    code = process.wait()
    os.close(ours)

    assert 0 == code
    assert b"Abort" not in shown
