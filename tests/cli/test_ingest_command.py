import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from incarnate.domain.keys import ActivationKey
from tests.support.commands import INGEST, KEY, payloads, recording, run

pytestmark = pytest.mark.usefixtures("store")

S7 = recording("S7")
EVERY_TURN = ("--checkpoint-every", "turn")


def report(*arguments: object, stdin: bytes | None = None) -> dict[str, Any]:
    result = run(*INGEST, *arguments, "--json", stdin=stdin)
    loaded: dict[str, Any] = json.loads(result.stdout)
    return {**loaded, "exit": result.exit_code}


def test_the_report_tells_what_became_of_the_lines() -> None:
    told = report(S7)
    expected = {
        "key": "pik-1/implement-task",
        "harness": "claude-code",
        "sessionId": "7047a2a0-9a1f-4d1d-9bce-b68d33358904",
        "incarnation": 1,
        "nextOffset": 21,
        "lines": 24,
        "mapped": 15,
        "appended": 21,
        "skipped": 0,
        "beyond": 0,
        "held": 0,
        "checkpoints": 0,
        "textLines": [],
        "mended": 0,
        "mendedLines": [],
        "refused": 0,
        "refusedLines": [],
        "torn": None,
        "kept": 0,
        "unusedPrompts": 0,
        "unpromptedTurns": 0,
        "exit": 0,
    }

    assert 9 == sum(told.pop("ignored").values())
    assert expected == told


def test_a_person_reads_the_same_report(tmp_path: Path) -> None:
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(S7.read_bytes() + b'{"type":5}\n{"type":"new\\u001b[31m"}\n{"torn')
    result = run(*INGEST, file)

    assert 3 == result.exit_code
    for part in (
        "pik-1/implement-task, incarnation 1, next offset 21",
        "21 events",
        "3 system/thinking_tokens",
        "1 new\\u001b[31m",
        "line 25: claude-code: a record has a type",
        "the stream ends inside the record of line 27",
    ):
        assert part in result.stdout
    assert "\x1b" not in result.stdout


def test_a_second_run_skips_what_the_log_holds() -> None:
    run(*INGEST, S7)
    told = report(S7)

    assert (21, 0, 2) == (told["skipped"], told["appended"], told["incarnation"])


def test_standard_input_is_appended_at_the_head(store: str) -> None:
    report("-", stdin=recording("S8x1").read_bytes())
    told = report(stdin=recording("S8x2").read_bytes())

    assert told["appended"] > 0
    assert told["nextOffset"] == len(payloads(store))


def test_where_file_and_log_part_it_is_refused_with_the_line(store: str) -> None:
    run(*INGEST, S7)
    before = payloads(store)
    result = run(*INGEST, recording("S2"))

    assert 1 == result.exit_code
    assert "" == result.stdout
    assert "Error: line 1 is not what pik-1/implement-task holds at offset 0" in result.stderr
    assert "Try: append all runs of one session to one file" in result.stderr
    assert before == payloads(store)


def test_damaged_lines_make_the_exit_code_3() -> None:
    told = report("-", stdin=b"{}\n")

    assert (3, 1, [{"line": 1, "reason": "claude-code: a record has a type"}]) == (
        told["exit"],
        told["refused"],
        told["refusedLines"],
    )


def test_a_torn_last_line_makes_the_exit_code_3() -> None:
    told = report("-", stdin=S7.read_bytes()[:-20])

    assert (3, 24) == (told["exit"], told["torn"]["line"])


def test_a_file_that_is_not_there_is_a_wrong_command_line() -> None:
    assert 2 == run(*INGEST, "missing.jsonl").exit_code


def test_an_unknown_harness_is_answered_with_the_known_ones() -> None:
    result = run("ingest", "--harness", "nobody", "--key", KEY, S7)

    assert 2 == result.exit_code
    assert "'@github/copilot', 'acp'" in result.stderr


def test_checkpoints_name_no_commit_without_a_repository() -> None:
    told = report(*EVERY_TURN, S7)
    found = json.loads(run("resume", KEY, "--json").stdout)

    assert (3, "-", 21) == (told["checkpoints"], found["checkpoint"]["commitSha"], found["checkpoint"]["offset"])


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", "-C", str(folder), *identity, *arguments], text=True).strip()


def test_checkpoints_name_the_head_of_the_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "world")
    run(*INGEST, *EVERY_TURN, "--repo", tmp_path, S7)
    found = json.loads(run("resume", KEY, "--json").stdout)

    assert git(tmp_path, "rev-parse", "HEAD") == found["checkpoint"]["commitSha"]


def test_a_folder_without_a_commit_is_refused_before_anything_is_claimed(tmp_path: Path) -> None:
    result = run(*INGEST, *EVERY_TURN, "--repo", tmp_path, S7)

    assert 1 == result.exit_code
    assert f"Error: {tmp_path} has no commit to name" in result.stderr
    assert 1 == run("show", KEY).exit_code


def test_a_repository_without_checkpoints_is_a_wrong_command_line(tmp_path: Path) -> None:
    result = run(*INGEST, "--repo", tmp_path, S7)

    assert 2 == result.exit_code
    assert "Try: add --checkpoint-every turn" in result.stderr


@pytest.mark.parametrize("scenario", ["S1", "S2p", "S4tp", "S7k", "S8x3-compact", "S9"])
def test_real_recordings_are_taken_whole(scenario: str, store: str) -> None:
    told = report(*EVERY_TURN, recording(scenario))

    assert (0, 0) == (told["exit"], told["refused"])
    assert told["appended"] == len(payloads(store)) > 0


def test_a_file_of_another_harness_is_refused_and_takes_no_activation() -> None:
    run(*INGEST, S7)
    before = run("ls", "--json").stdout
    result = run("ingest", "--harness", "kimi", "--key", KEY, S7, "--json")

    assert (1, "") == (result.exit_code, result.stdout)
    assert "Error: none of the 24 lines is a record of kimi that makes an event (" in result.stderr
    assert "\nTry: check --harness" in result.stderr
    assert before == run("ls", "--json").stdout


def test_a_file_of_damaged_lines_alone_is_refused_with_the_first(tmp_path: Path) -> None:
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(b"{}\n")
    result = run(*INGEST, file)

    assert 1 == result.exit_code
    assert (
        "Error: its only line is no record of claude-code that makes an event (line 1: claude-code: a record has a type"
        in result.stderr
    )


def test_an_empty_file_is_told_and_takes_no_activation(tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.touch()
    result = run(*INGEST, file)

    assert 1 == result.exit_code
    assert f"Error: {file} is empty\nTry: check --harness" in result.stderr
    assert [] == json.loads(run("ls", "--json").stdout)


def test_what_is_empty_is_told_where_nobody_said_whose_it_is(tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.touch()

    (tmp_path / "empty" / "below").mkdir(parents=True)
    for empty in (file, file.parent / "empty", "/dev/null"):
        assert f"Error: {empty} is empty\nTry: run it again once" in run("ingest", "--key", KEY, empty).stderr
    assert "Error: standard input is empty\n" in run("ingest", "--key", KEY, stdin=b"").stderr


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x7fELF\0\xff\n", "it holds no record of any known harness\nTry: check what it is"),
        (b'{"x":1}\n', "no known harness writes such records\nTry: check what it is"),
    ],
)
def test_where_no_harness_would_help_none_is_asked_for(data: bytes, told: str) -> None:
    assert f"Error: standard input: {told}" in run("ingest", "--key", KEY, stdin=data).stderr


@pytest.mark.parametrize("scenario", ["S1", "S2"])
def test_that_a_key_is_retired_is_said_before_what_it_holds(scenario: str) -> None:
    run(*INGEST, recording("S1"))
    run("retire", KEY)

    assert f"Error: {KEY} is retired\nTry: fork it" in run(*INGEST, recording(scenario)).stderr


def test_a_pipe_that_holds_nothing_of_the_harness_is_warned_about_at_the_end() -> None:
    foreign = run("ingest", "--harness", "kimi", "--key", KEY, stdin=S7.read_bytes())
    empty = run(*INGEST, stdin=b"")

    assert [0, 0] == [foreign.exit_code, empty.exit_code]
    assert "Warning: none of the 24 lines is a record of kimi that makes an event (" in foreign.stderr
    assert "Warning: the pipe is empty\nTry: check --harness" in empty.stderr


def test_numbers_in_the_report_agree_with_their_nouns(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_bytes(b'{"type":"assistant","message":{"content":"hi"}}\n')

    assert "appended     1 event\n" in run(*INGEST, file).stdout


def test_two_runs_of_one_session_in_one_file_are_taken_one_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(recording("S4").read_bytes())
    died = report(*EVERY_TURN, file)
    with file.open("ab") as grown:
        grown.write(recording("S5").read_bytes())
    resumed = report(*EVERY_TURN, file)

    assert died["sessionId"] == resumed["sessionId"]
    assert (died["appended"], 0) == (resumed["skipped"], resumed["exit"])


def test_an_empty_line_keeps_the_next_run_apart_from_the_line_that_a_kill_tore(tmp_path: Path, store: str) -> None:
    file, whole = tmp_path / "run.jsonl", tmp_path / "whole.jsonl"
    died, resumed = recording("S4").read_bytes(), recording("S5").read_bytes()
    whole_lines = died.splitlines(keepends=True)[:-1]
    file.write_bytes(died[:-40])
    assert 3 == report(*EVERY_TURN, file)["exit"]
    with file.open("ab") as grown:
        grown.write(b"\n" + resumed)
    told = report(*EVERY_TURN, file)
    whole.write_bytes(b"".join(whole_lines) + resumed)
    run("ingest", "--harness", "claude-code", "--key", "pik-1/whole", whole)

    assert (3, [len(whole_lines) + 1]) == (told["exit"], [line["line"] for line in told["refusedLines"]])
    assert payloads(store, ActivationKey("pik-1", "whole")) == payloads(store)


def test_a_prompt_is_taken_for_each_turn() -> None:
    without, prompted = report(S7), report("--key", "pik-1/asked", "--prompt", "do it", "--prompt", "", S7)

    assert without["appended"] + 1 == prompted["appended"]


@pytest.mark.parametrize(
    ("prompts", "numbers", "told"),
    [
        (
            ("x",),
            (0, 1),
            "Warning: 1 turn more than there are prompts: the last ones got none\nTry: give --prompt once",
        ),
        (("x", ""), (0, 0), ""),
        (
            ("x", "", "y"),
            (1, 0),
            "Warning: 1 prompt more than there are turns: the last given stand nowhere\nTry: give",
        ),
    ],
)
def test_prompts_that_are_not_as_many_as_the_turns_are_warned_about(
    prompts: tuple[str, ...], numbers: tuple[int, int], told: str
) -> None:
    result = run(*INGEST, *(word for prompt in prompts for word in ("--prompt", prompt)), "--json", S7)
    found = json.loads(result.stdout)

    assert (0, numbers) == (result.exit_code, (found["unusedPrompts"], found["unpromptedTurns"]))
    assert told == result.stderr[: len(told)]
    assert bool(told) == bool(result.stderr)
