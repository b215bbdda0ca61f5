"""SIGKILL of a real ingesting process: the next run gives the log of an undisturbed one."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.commands import GetHead
from incarnate.domain.events import AssistantMessage
from tests.support.commands import INGEST, KEY, command_line, payloads, recording, run, start
from tests.support.stores import sqlite_url

S7 = recording("S7")
EVERY_TURN = ("--checkpoint-every", "turn")

# The command line of a process that is killed inside its n-th commit: before it, or right after it.
DYING = """
import os, signal, sys
from incarnate.cli import main
from incarnate.storage.sqlite import SqliteStore
count, when, transact = int(sys.argv.pop(1)), sys.argv.pop(1), SqliteStore.transact
def dying(*arguments):
    global count
    count -= 1
    if count == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    decision = transact(*arguments)
    if count == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return decision
SqliteStore.transact = dying
main()
"""


def checkpoints(store: str) -> list[Any]:
    with SessionSystem.open(store) as system:
        session = system.claim(KEY)
        found = [session.restore(f"turn-end:{offset}").checkpoint for offset in range(30)]
    return sorted({(one.id, one.offset) for one in found if one is not None})


def undisturbed(folder: Path, file: Path = S7) -> str:
    folder.mkdir()
    store = sqlite_url(folder)
    assert 0 == run(*INGEST, *EVERY_TURN, "--store", store, file).exit_code
    return store


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()
    assert -signal.SIGKILL == process.returncode


def wait_for(store: str, events: int, process: "subprocess.Popen[bytes]") -> None:
    """Until the process has made so many events visible."""
    deadline = time.monotonic() + 30
    file = Path(store.removeprefix("sqlite:///"))
    while not file.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.001)
    with SessionSystem.open(store) as system:
        ref = system.activation(KEY)
        while ref.ask(GetHead()).next_offset < events:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.0005)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 3, 4, 5, 6, 7])
def test_a_kill_at_any_commit_leaves_a_log_that_the_next_run_completes(
    commit: int, when: str, store: str, tmp_path: Path
) -> None:
    arguments = [str(commit), when, *INGEST, *EVERY_TURN, str(S7)]
    process = start([sys.executable, "-c", DYING, *map(str, arguments)])
    _, errors = process.communicate()
    assert -signal.SIGKILL == process.returncode, errors
    result = run(*INGEST, *EVERY_TURN, S7)

    reference = undisturbed(tmp_path / "undisturbed")
    assert 0 == result.exit_code
    assert payloads(reference) == payloads(store)
    assert checkpoints(reference) == checkpoints(store)


def test_a_kill_in_the_middle_of_a_long_file_loses_and_doubles_nothing(tmp_path: Path) -> None:
    store = sqlite_url(tmp_path, "?durability=process")
    file = tmp_path / "long.jsonl"
    line = b'{"type":"assistant","message":{"content":"event %d"}}\n'
    file.write_bytes(b"".join([line % number for number in range(4000)]))
    arguments = (*INGEST, "--store", store, file)
    for events in (1, 500, 1000, 1001, 2000):
        process = start(command_line(*arguments))
        wait_for(sqlite_url(tmp_path), events, process)
        kill(process)
    assert 0 == run(*arguments).exit_code

    assert 4000 == len(payloads(store))
    assert payloads(undisturbed(tmp_path / "undisturbed", file)) == payloads(store)


def test_a_kill_in_the_middle_of_a_line_of_a_pipe_is_continued_from_the_file(store: str, tmp_path: Path) -> None:
    process = start(command_line(*INGEST, *EVERY_TURN), stdin=subprocess.PIPE)
    assert process.stdin is not None
    lines = S7.read_bytes().splitlines(keepends=True)
    process.stdin.write(b"".join(lines[:14]) + lines[14][:100])
    process.stdin.flush()
    wait_for(store, 12, process)
    kill(process)
    run(*INGEST, *EVERY_TURN, S7)

    assert payloads(undisturbed(tmp_path / "undisturbed")) == payloads(store)


def test_an_ingest_that_someone_claims_from_stops_with_an_error(store: str) -> None:
    process = start(command_line(*INGEST), stdin=subprocess.PIPE)
    assert process.stdin is not None
    lines = S7.read_bytes().splitlines(keepends=True)
    process.stdin.write(lines[0])
    process.stdin.flush()
    wait_for(store, 1, process)
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(AssistantMessage(id="mine", parent_id=None, text="taken over"))
    _, errors = process.communicate(b"".join(lines[1:]))

    assert 1 == process.returncode
    assert b"Error: incarnation 1 of pik-1/implement-task is stale: incarnation 2 has taken over" in errors
    assert 2 == len(payloads(store))
