"""What commands do on a real terminal."""

import os
import pty
import signal
import subprocess
import time

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.events import AssistantMessage
from tests.support.commands import INGEST, KEY, command_line, payloads, recording, run, start


def on_terminal(*arguments: object) -> tuple[int, bytes]:
    """Exit code and all that reaches the terminal."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "CI"}}
    process = subprocess.Popen(
        command_line(*arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # how Linux tells that the other end is closed
        pass
    os.close(ours)
    return process.wait(), shown


@pytest.mark.usefixtures("store")
def test_a_file_is_ingested_under_a_progress_bar() -> None:
    code, shown = on_terminal(*INGEST, recording("S7"))

    assert 0 == code
    assert b"100%" in shown or b"kB" in shown
    assert b"21 events" in shown


@pytest.mark.usefixtures("store")
def test_without_a_file_and_without_a_pipe_there_is_nothing_to_ingest() -> None:
    code, shown = on_terminal(*INGEST)

    assert 2 == code
    assert b"Error: nothing to ingest" in shown


def test_a_terminal_gets_colours_of_ours_and_no_control_characters_of_the_log(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(AssistantMessage(id="e", parent_id=None, text="\x1b[2J[bold]\x9b31m"))
    _, shown = on_terminal("show", KEY)
    _, replayed = on_terminal("replay", KEY)

    assert b"\x1b[1massistant" in shown
    assert b"\\u001b[2J[bold]\\u009b31m" in shown
    assert b"\x1b" not in replayed
    assert b"\\u001b[2J[bold]\\u009b31m" in replayed


def test_an_interrupt_ends_an_ingest_between_two_records(store: str) -> None:
    process = start(command_line(*INGEST), stdin=subprocess.PIPE)
    assert process.stdin is not None
    lines = recording("S7").read_bytes().splitlines(keepends=True)
    process.stdin.write(b"".join(lines[:14]))
    process.stdin.flush()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and len(payloads(store)) < 12:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()

    assert 130 == process.returncode
    assert b"Error: interrupted\nTry: run it again; a file goes on where it stopped\n" == errors
    assert 0 == run(*INGEST, recording("S7")).exit_code
    assert 21 == len(payloads(store))
