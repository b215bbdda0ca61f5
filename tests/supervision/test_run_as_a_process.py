"""`incarnate run`, `ps` and `stop` as processes, over a harness that prints what the real ones printed."""

import json
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from incarnate.domain.events import ToolCall, ToolResult
from tests.recordings.recorded import FIXTURES, prompt
from tests.recordings.table import BY_FOLDER
from tests.support.supervised import KEY, Place, Supervising, check, check_log, kill, until

REPLAYED = ["claude", "codex", "copilot", "gemini", "kimicode", "pi", "qwen"]


@pytest.mark.parametrize("folder", REPLAYED)
@pytest.mark.parametrize("how", [(), ("--wrapped", "--stubborn")], ids=["plain", "wrapped-stubborn"])
def test_what_was_recorded_of_a_kill_and_a_resume_happens_again(
    place: Place, folder: str, how: tuple[str, ...]
) -> None:
    harness = BY_FOLDER[folder]
    words = ["replay", str(FIXTURES / folder), "S4", "S5", "--speed", "20", *how]
    run = place.run(*words, dialect=harness.dialect, prompt=prompt(harness, "S4"), options=("--max-restarts", "1"))
    until(place.tools, "a tool in its own session")

    kill(place.lives()[-1][1])

    assert 0 == run.wait()
    check_log(place)
    assert ["start"] == (place.home / "side-effect.txt").read_text().split()
    printed = (place.home / "stdout").read_bytes()
    assert b"".join([harness.stdout(life) for life in ("S4", "S5")]) == printed


def test_a_second_run_takes_over_and_the_first_one_ends_its_harness(place: Place) -> None:
    first = place.run("steps", "5", "--tool", "60000")
    until(place.tools, "a tool")

    second = place.run("steps", "5", options=("--resume",))

    assert 6 == first.wait()
    assert 0 == second.wait()
    check(place, 5)


def pause_outside_of_a_commit(run: Supervising, place: Place) -> None:
    """One that is stopped inside of a commit keeps everybody from the file, on one machine, until it goes on."""
    while True:
        run.kill(signal.SIGSTOP)
        until(lambda: b") T " in Path(f"/proc/{run.pid}/stat").read_bytes(), "it to stop")
        with closing(sqlite3.connect(place.home / "sessions.db", timeout=0)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                run.kill(signal.SIGCONT)
            else:
                return


def test_a_first_run_that_is_paused_while_another_machine_takes_over_writes_nothing(place: Place) -> None:
    first = place.run("steps", "1", "--tool", "100", "--until", "enough")
    until(lambda: [one for one in place.events() if isinstance(one.event, ToolResult)], "a result")
    pause_outside_of_a_commit(first, place)
    second = place.run("steps", "3", options=("--resume",), state="another machine")
    until(lambda: any(one.incarnation > 1 for one in place.events()), "the second one's events")
    before = [one for one in place.events() if one.incarnation == 1]

    first.kill(signal.SIGCONT)

    assert 6 == first.wait()
    assert 0 == second.wait()
    assert before == [one for one in place.events() if one.incarnation == 1]
    check(place)


def test_ps_tells_what_lives_and_stop_ends_it(place: Place) -> None:
    run = place.run("steps", "1", "--tool", "60000")
    until(lambda: [one for one in place.events() if isinstance(one.event, ToolCall)], "a call")

    [told] = json.loads(place.command("ps", "--json").stdout)
    assert (str(KEY), run.pid, 1, 0, "alive") == tuple(
        told[name] for name in ("key", "pid", "incarnation", "restarts", "phase")
    )
    assert str(KEY) in place.command("ps").stdout
    stopped = place.command("stop", str(KEY))

    assert (0, f"{KEY} has ended\n") == (stopped.returncode, stopped.stderr)
    assert 143 == run.wait()
    assert "[]" == place.command("ps", "--json").stdout.strip()
    check_log(place)


MUFFLED = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_run_that_was_started_with_its_signals_blocked_and_ignored_hears_a_stop(place: Place) -> None:
    run = place.run("steps", "1", "--tool", "60000", below=[sys.executable, "-c", MUFFLED])
    until(place.tools, "a tool")

    assert 0 == place.command("stop", str(KEY)).returncode
    assert 143 == run.wait()
    assert "keeper.py" not in (place.home / "stderr").read_text(encoding="utf-8")
    check_log(place)


def test_stop_in_haste_ends_what_does_not_want_to(place: Place) -> None:
    run = place.run("steps", "100", "--tool", "60000", "--stubborn", options=("--grace", "50"))
    until(place.tools, "a tool")

    stopped = place.command("stop", "--now", "--json", str(KEY))

    assert {"key": str(KEY), "ended": True, "pids": [run.pid]} == json.loads(stopped.stdout)
    assert 143 == run.wait()
    check_log(place)


def test_stop_tells_when_nothing_lives_and_when_it_takes_too_long(place: Place) -> None:
    nobody = place.command("stop", str(KEY))
    assert (1, f"Error: no supervisor of {KEY} lives here\nTry: incarnate ps lists those that do\n") == (
        nobody.returncode,
        nobody.stderr,
    )
    run = place.run("steps", "100", "--tool", "60000", "--stubborn", options=("--grace", "50"))
    until(place.tools, "a tool")

    late = place.command("stop", "--wait", "0.1", str(KEY))

    assert (1, True) == (late.returncode, "has not ended in 0.1 seconds" in late.stderr)
    assert 0 == place.command("stop", "--wait", "0", str(KEY)).returncode
    assert 143 == run.wait()


def test_a_harness_that_dies_before_it_names_its_session_is_not_given_a_neighbours(place: Place) -> None:
    """Both were asked the same, and the neighbour's session is the only one that was written meanwhile."""
    other = place.run("steps", "1", "--until", "enough", options=("--key", "supervised/other"))
    until(lambda: [record for record in place.records() if record["session"]], "a session that is recorded")

    run = place.run("steps", "1", "--die", "0", options=("--max-restarts", "1"))

    assert 7 == run.wait()
    (place.home / "enough").touch()
    assert 0 == other.wait()
    check_log(place)
