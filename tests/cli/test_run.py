"""`incarnate run` as a process, around a harness that writes as Codex does."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from incarnate.actors.system import SessionSystem
from incarnate.cli.app import cli
from incarnate.cli.run_logs import RunLog, status_line
from incarnate.cli.run_output import Patient
from incarnate.cli.run_parts import tell
from incarnate.domain.events import UserMessage
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.knowledge import Known, StopAsked
from incarnate.supervision.plan import Finish

HARNESS = """
import json, os, pathlib, subprocess, sys

def say(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)

words, home = sys.argv[1:], pathlib.Path(os.environ["HOME"]) / ".codex" / "sessions"
thread = words[-2] if "resume" in words else "01a22de2-04ae-7e33-bcfe-665417e6c42" + str(len(list(home.rglob("*"))))
say("thread.started", thread_id=thread)
say("turn.started")
home.mkdir(parents=True, exist_ok=True)
(home / f"rollout-2026-{thread}.jsonl").touch()
say("item.completed", item={"id": "item_0", "type": "agent_message", "text": "asked: " + words[-1]})
if words[-1] == "do it or die":
    item = {"id": "item_1", "type": "command_execution", "command": "sleep"}
    say("item.started", item=item)
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    os.kill(os.getpid(), 9)
say("turn.completed", usage={"input_tokens": 1, "output_tokens": 1})
"""

KEY = "order-7/mend"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "harness.py").write_text(HARNESS, encoding="utf-8")
    (tmp_path / "home").mkdir()
    return tmp_path


def incarnate(place: Path, *arguments: str, home: str = "home") -> subprocess.CompletedProcess[str]:
    env = {
        "HOME": str(place / home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "INCARNATE_STATE_DIR": str(place / "runs"),
        "INCARNATE_STORE": f"sqlite:///{place}/sessions.db",
    }
    command = [sys.executable, "-m", "incarnate", *arguments]
    return subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=50, check=False)


def run(place: Path, prompt: str, *options: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "harness.py", prompt]
    return incarnate(place, "run", "--harness", "codex", "--key", KEY, "--backoff", "0", *options, "--", *line)


def log(place: Path) -> list[dict[str, Any]]:
    replayed = incarnate(place, "replay", KEY).stdout
    return [json.loads(line) for line in replayed.split("\n")[:-1]]


def users(place: Path) -> list[str]:
    return [event["text"].partition(":")[0] for event in log(place) if event["type"] == "user"]


def test_what_it_prints_is_passed_on_and_recorded(place: Path) -> None:
    ran = run(place, "do it")

    assert 0 == ran.returncode
    assert 4 == len(ran.stdout.split("\n")[:-1])
    assert ["turn-start", "user", "assistant", "usage", "turn-end"] == [event["type"] for event in log(place)]
    assert "incarnate: order-7/mend runs: incarnation 1, 0 events\n" in ran.stderr


def test_a_harness_that_dies_is_brought_back(place: Path) -> None:
    ran = run(place, "do it or die", "--go-on", "go on")

    assert 0 == ran.returncode
    assert ["do it or die", "go on (incarnation 2)"] == users(place)
    assert ["interrupted", "completed"] == [event["outcome"] for event in log(place) if event["type"] == "turn-end"]
    assert [] == list((place / "runs").glob("*.json"))


def test_the_same_command_after_a_death_and_its_end_starts_nothing(place: Path) -> None:
    run(place, "do it or die")
    again = run(place, "do it or die")

    assert (0, "") == (again.returncode, again.stdout)
    assert 2 == len(users(place))


def test_a_run_with_nothing_to_do_says_so_and_takes_nothing_over(place: Path) -> None:
    run(place, "do it")
    before = incarnate(place, "ls", "--json").stdout
    again = [run(place, "do it"), incarnate(place, "run", "--key", KEY, "--resume")]

    told = "incarnate: order-7/mend: its last turn is done, nothing was started; another prompt begins the next turn\n"
    assert [(0, "", told)] * 2 == [(one.returncode, one.stdout, one.stderr) for one in again]
    assert before == incarnate(place, "ls", "--json").stdout


def test_another_machine_goes_on_with_nothing_but_the_store(place: Path) -> None:
    (place / "elsewhere").mkdir()
    died = run(place, "do it or die", "--max-restarts", "0")
    resumed = incarnate(place, "run", "--key", KEY, "--resume", "--go-on", "go on", home="elsewhere")

    assert (7, 0) == (died.returncode, resumed.returncode)
    assert ["do it or die", "go on (incarnation 2)"] == users(place)
    assert ["compaction"] == [event["type"] for event in log(place) if event["type"] == "compaction"]


def test_a_folder_of_sessions_that_is_not_there_is_told_once_it_is_needed(place: Path) -> None:
    first = run(place, "do it", "--sessions", "absent")
    again = run(place, "and more", "--sessions", "absent")

    assert "absent" not in first.stderr
    assert "order-7/mend: its session files (01a22de2-" in again.stderr
    assert ") are not in absent (no such folder): a new session gets the log as text\n" in again.stderr


def test_logs_are_json_if_asked(place: Path) -> None:
    ran = run(place, "do it", "--log", "json")
    told = [json.loads(line) for line in ran.stderr.split("\n")[:-1]]

    assert {"at", "level", "message", "event"} <= set(told[-1])
    assert ("finished", 0) == (told[-1]["event"], told[-1]["code"])
    assert [KEY] * len(told) == [line["key"] for line in told]
    assert "claimed as incarnation 1" in [line["message"] for line in told]


@pytest.mark.parametrize(
    ("line", "options", "code"),
    [
        (["no-such-program", "do it"], [], 127),
        ([sys.executable, "-c", "print('no record')"], ["--max-restarts", "1", "--prompt", "x"], 7),
        (["harness", "--model", "m", "do it"], [], 2),
        (["harness", "do it"], ["--store", "nowhere://"], 1),
    ],
)
def test_whatever_a_run_ends_with_its_log_is_json(place: Path, line: list[str], options: list[str], code: int) -> None:
    options = ["--harness", "codex", "--key", KEY, "--backoff", "0", "--log", "json", *options]
    ran = incarnate(place, "run", *options, "--", *line)
    told = [json.loads(line) for line in ran.stderr.split("\n")[:-1]]

    assert code == ran.returncode
    assert ("failed", "error", code) == (told[-1]["event"], told[-1]["level"], told[-1]["code"])
    assert told[-1]["hint"]


def test_a_harness_that_streams_nothing_is_told_from_one_that_dies(place: Path) -> None:
    (place / "echo.py").write_text("print('done, I think')", encoding="utf-8")
    options = ["--harness", "codex", "--key", KEY, "--backoff", "0", "--max-restarts", "1"]
    ran = incarnate(place, "run", *options, "--", sys.executable, "echo.py", "do it")

    assert 7 == ran.returncode
    assert "not started again: it ended with status 0, and nothing in the 1 line that it printed is" in ran.stderr
    assert "Try: check --harness" in ran.stderr


TORN = """
print('{"type": "thread.started", "thread_id": "t1"}\\n{"type": "turn.started"}')
print('{"type": "item.completed", "item": {"id": "item_1", "type": "agent_mess\\n' * int(sys.argv[1]), end="")
print('{"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}')
"""


def run_torn(place: Path, lines: int, log: str) -> subprocess.CompletedProcess[str]:
    (place / "torn.py").write_text(f"import sys{TORN}", encoding="utf-8")
    options = ["--harness", "codex", "--key", KEY, "--prompt", "do it", "--log", log]
    return incarnate(place, "run", *options, "--", sys.executable, "torn.py", str(lines), "{prompt}")


def test_lines_that_cannot_be_read_are_told_as_they_come_and_counted_at_the_end(place: Path) -> None:
    ran = run_torn(place, 7, "text")
    told = [line for line in ran.stderr.splitlines() if "refused" in line]

    assert 0 == ran.returncode  # the turn is done: to run it again would help nobody
    assert [f"incarnate: {KEY}: refused line {line}: a record that is cut short" for line in range(3, 8)] == told[:5]
    assert f"incarnate: {KEY}: refused 2 lines more" == told[5]
    assert f"incarnate: {KEY} is level: incarnation 1, 4 events, 7 lines refused" == told[-2]
    assert f"incarnate: {KEY}: refused 7 lines of what the harness printed: no events came of that" == told[-1]


def test_lines_that_cannot_be_read_are_in_the_facts_and_in_the_last_one(place: Path) -> None:
    ran = run_torn(place, 2, "json")
    told = [json.loads(line) for line in ran.stderr.splitlines()]
    [recorded] = [line for line in told if line.get("fact") == "OutputRecorded"]

    assert [3, 4] == [line["line"] for line in told if line["event"] == "refused"]
    assert ("what it printed is recorded, 4 events; 2 lines were refused", 2) == (
        recorded["message"],
        recorded["refused"],
    )
    assert {"thread.started": 1} == recorded["ignored"]
    assert ("finished", 0, 2) == (told[-1]["event"], told[-1]["code"], told[-1]["refused"])


@pytest.mark.parametrize("code", [7, 143])
def test_whatever_a_run_ends_with_it_counts_what_was_refused(code: int) -> None:
    stream = io.StringIO()
    tell(RunLog("json", Patient(stream, None)), Finish(code, "why"), Known(refused=3, stop=StopAsked(0.0, 143)))

    assert 3 == json.loads(stream.getvalue())["refused"]


@pytest.mark.parametrize("harness", ["acp", "deepseek"])
def test_a_harness_without_a_command_line_is_not_run(place: Path, harness: str) -> None:
    refused = incarnate(place, "run", "--harness", harness, "--key", KEY, "--", "agent", "do it")

    assert 2 == refused.returncode
    assert f"'{harness}' is not one of" in refused.stderr


def test_an_end_that_is_none_has_a_code_and_a_next_step(place: Path) -> None:
    absent = incarnate(place, "run", "--harness", "codex", "--key", KEY, "--", "no-such-program", "do it")
    died = run(place, "do it or die", "--max-restarts", "0")

    assert 127 == absent.returncode
    assert "Error: no-such-program could not be started" in absent.stderr
    assert 7 == died.returncode
    assert "Try: look at what the harness says" in died.stderr


@pytest.mark.parametrize("program", ["/nope/prog", "./script"])
def test_a_program_that_cannot_be_started_leaves_no_activation_in_the_store(place: Path, program: str) -> None:
    (place / "script").write_text("#!/usr/bin/env no-such-interpreter\n", encoding="utf-8")
    (place / "script").chmod(0o755)
    refused = incarnate(place, "run", "--harness", "codex", "--key", KEY, "--", program, "x")

    assert 127 == refused.returncode
    assert "[]" == incarnate(place, "ls", "--json").stdout.strip()


def test_a_folder_of_sessions_that_lacks_those_of_a_finished_log_is_warned_of(place: Path) -> None:
    run(place, "do it")
    right, wrong = run(place, "do it"), run(place, "do it", "--sessions", "absent")
    told = json.loads(run(place, "do it", "--sessions", "absent", "--log", "json").stderr.split("\n")[-2])

    assert (0, 0) == (right.returncode, wrong.returncode)
    assert "session files" not in right.stderr
    assert "incarnate: order-7/mend: its session files (01a22de2-" in wrong.stderr
    assert ") are not in absent (no such folder): what they hold was not compared with the log\n" in wrong.stderr
    assert ("warning", "uncompared") == (told["level"], told["event"])


def test_an_end_is_told_once_whether_or_not_the_tree_outlives_the_output() -> None:
    stream = io.StringIO()
    key, told = ActivationKey("order-7", "mend"), RunLog("text", Patient(stream, None))
    alive = Known(phase="alive", incarnation=1)
    gone = Known(phase="gone", incarnation=1, status=-9)
    recorded = replace(gone, phase="recorded")
    with status_line(key, told) as tell:
        assert tell is not None
        for known in (alive, gone, recorded, replace(alive, incarnation=2), replace(recorded, incarnation=2)):
            tell(known, 3)

    assert [
        "incarnate: order-7/mend runs: incarnation 1, 3 events",
        "incarnate: order-7/mend was killed by SIGKILL: incarnation 1, 3 events",
        "incarnate: order-7/mend runs: incarnation 2, 3 events",
        "incarnate: order-7/mend was killed by SIGKILL: incarnation 2, 3 events",
    ] == stream.getvalue().splitlines()


def test_a_harness_that_was_killed_is_said_to_be(place: Path) -> None:
    ran = run(place, "do it or die", "--max-restarts", "0")

    assert "incarnate: order-7/mend was killed by SIGKILL: incarnation 1," in ran.stderr
    assert "gave up after 0 restarts: it was killed by SIGKILL" in ran.stderr


@pytest.mark.parametrize("command", [["ps"], ["ps", "--json"], ["stop", KEY]])
def test_records_that_cannot_be_read_are_no_empty_list(place: Path, command: list[str]) -> None:
    (place / "runs").touch()
    told = incarnate(place, *command)

    assert (1, "") == (told.returncode, told.stdout)
    assert "Not a directory" in told.stderr
    assert f"{place}/runs" in told.stderr


def test_a_key_that_is_retired_is_told_with_the_way_on(place: Path) -> None:
    run(place, "do it")
    incarnate(place, "retire", KEY)
    refused = run(place, "and more")

    assert 1 == refused.returncode
    assert "Error: order-7/mend is retired\nTry: fork it onto a new key to go on from where it ended" in refused.stderr


def test_a_run_needs_a_command_line_or_a_log_that_tells_one(place: Path) -> None:
    bare = incarnate(place, "run", "--harness", "codex", "--key", KEY)
    with SessionSystem.open(f"sqlite:///{place}/sessions.db") as system:
        system.claim(ActivationKey.parse(KEY)).emit(UserMessage(id="m1", parent_id=None, text="asked of no harness"))
    untold = incarnate(place, "run", "--key", KEY, "--resume")

    assert (2, 1) == (bare.returncode, untold.returncode)
    assert "no checkpoint of order-7/mend tells how to go on" in untold.stderr


def test_a_slip_in_the_key_or_the_store_to_go_on_with_makes_neither(place: Path) -> None:
    run(place, "do it")
    key = incarnate(place, "run", "--key", "order-7/mand", "--resume")
    store = incarnate(place, "run", "--key", KEY, "--resume", "--store", f"sqlite:///{place}/session.db")

    assert [1, 1] == [key.returncode, store.returncode]
    assert "Try: did you mean order-7/mend? incarnate ls lists what it holds" in key.stderr
    assert f"{place}/session.db: does not exist" in store.stderr
    assert not (place / "session.db").exists()


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e300"])
@pytest.mark.parametrize("words", [["run", "--grace"], ["run", "--backoff"], ["stop", KEY, "--wait"]], ids=" ".join)
def test_seconds_that_are_never_over_are_refused(place: Path, words: list[str], seconds: str) -> None:
    refused = CliRunner().invoke(cli, [*words, seconds], env={"INCARNATE_STATE_DIR": str(place / "runs")})

    assert (2, True) == (refused.exit_code, f"Error: Invalid value for '{words[-1]}': " in refused.stderr)


@pytest.mark.parametrize(
    "line",
    [["codex", "exec", "--json", "do it"], ["codex", "exec", "do it", "--prompt", "x"], ["codex", "--", "do it"]],
)
def test_a_line_of_a_harness_that_stands_behind_no_dashes_is_refused(place: Path, line: list[str]) -> None:
    refused = incarnate(place, "run", "--harness", "codex", "--key", KEY, *line)

    told = "Error: the harness's command line, from 'codex' on, stands behind no --\nTry: put -- before it: "
    assert (2, True) == (refused.returncode, refused.stderr.startswith(told))


def test_an_option_of_the_harness_that_has_the_name_of_ours_is_the_harnesss(place: Path) -> None:
    line = [sys.executable, "harness.py", "--max-restarts", "nine", "{prompt}"]
    ran = incarnate(place, "run", "--harness", "codex", "--key", KEY, "--prompt", "do it", "--", *line)

    assert (0, ["do it"]) == (ran.returncode, users(place))


def test_records_that_cannot_be_written_are_told_with_the_variable_that_moves_them(place: Path) -> None:
    (place / "runs").touch()
    refused = run(place, "do it")

    assert 1 == refused.returncode
    assert f"Error: {place}/runs: this run cannot be recorded there: File exists\n" in refused.stderr
    assert "Try: name a folder that can be written: INCARNATE_STATE_DIR=FOLDER" in refused.stderr
    assert "[]" == incarnate(place, "ls", "--json").stdout.strip()


def test_a_line_whose_prompt_is_not_certain_is_refused(place: Path) -> None:
    line = [sys.executable, "harness.py", "--model", "gpt-5.5", "do it"]
    refused = incarnate(place, "run", "--harness", "codex", "--key", KEY, "--", *line)

    assert 2 == refused.returncode
    assert "it is not clear what the prompt is: 'harness.py', 'gpt-5.5', 'do it'" in refused.stderr
    assert "Try: say what it is asked with --prompt TEXT" in refused.stderr


@pytest.mark.parametrize("options", [[], ["--resume"]])
@pytest.mark.parametrize("line", [["codex", "exec", "--json"], ["./once"]], ids=" ".join)
def test_a_line_in_which_nothing_is_asked_is_refused(place: Path, line: list[str], options: list[str]) -> None:
    """What it would be told at a restart could not be told to it, and the log would say that it was."""
    refused = incarnate(place, "run", "--harness", "codex", "--key", KEY, *options, "--", *line)

    told = f"Error: in the command line of {line[0]} nothing is asked\nTry: say what it is asked with --prompt TEXT"
    assert (2, True) == (refused.returncode, refused.stderr.startswith(told))
    assert "[]" == incarnate(place, "ls", "--json").stdout.strip()


def test_a_line_in_which_nothing_is_asked_goes_on_with_a_session_and_is_told_so(place: Path) -> None:
    run(place, "do it or die", "--max-restarts", "0")
    (place / "bare").write_text(f"#!{sys.executable}\n{HARNESS}", encoding="utf-8")
    (place / "bare").chmod(0o755)
    resumed = incarnate(
        place, "run", "--harness", "codex", "--key", KEY, "--resume", "--go-on", "go on", "--", "./bare"
    )

    assert 0 == resumed.returncode
    assert ["do it or die", "go on (incarnation 2)"] == users(place)
    assert "asked: go on (incarnation 2)" in resumed.stdout


def test_a_run_without_a_key_names_the_new_activation(place: Path) -> None:
    line = [sys.executable, "harness.py", "do it"]
    ran = incarnate(place, "run", "--harness", "codex", "--", *line)

    assert 0 == ran.returncode
    assert "incarnate: the activation is run-" in ran.stderr


def test_a_prompt_and_an_option_of_whatever_bytes_are_run_and_recorded(place: Path) -> None:
    line = [sys.executable, "harness.py", "\udcff", "do it \udcff"]
    ran = incarnate(place, "run", "--harness", "codex", "--key", KEY, "--prompt", "do it \udcff", "--", *line)
    again = incarnate(place, "run", "--harness", "codex", "--key", KEY, "--prompt", "do it \udcff", "--", *line)

    assert (0, 0) == (ran.returncode, again.returncode)
    assert ["turn-start", "user", "assistant", "usage", "turn-end"] == [event["type"] for event in log(place)]
    assert ["do it \ufffd"] == users(place)


def test_a_working_directory_that_is_gone_is_told(place: Path) -> None:
    (place / "gone").mkdir()
    command = [sys.executable, "-m", "incarnate", "run", "--harness", "codex", "--", "codex", "exec", "do it"]
    script = 'cd gone && rmdir ../gone && exec "$@"'
    env = {**os.environ, "INCARNATE_STATE_DIR": str(place / "runs"), "INCARNATE_STORE": f"sqlite:///{place}/s.db"}
    ran = subprocess.run(["sh", "-c", script, "sh", *command], cwd=place, env=env, capture_output=True, check=False)

    assert 1 == ran.returncode
    assert b"the working directory is gone" in ran.stderr
