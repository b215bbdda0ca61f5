"""`ls`, `replay` and `resume`."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.checkpoints import EffectEntry
from incarnate.domain.codec import encode_appended
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from tests.support.commands import INGEST, KEY, recording, run

pytestmark = pytest.mark.usefixtures("store")

SESSION = "7047a2a0-9a1f-4d1d-9bce-b68d33358904"


def note(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text=name)


def plan(*options: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(run("resume", KEY, *options, "--json").stdout)
    return loaded


def test_a_list_names_what_the_store_holds(store: str) -> None:
    with SessionSystem.open(store, clock=lambda: 0) as system:
        system.lease(ActivationKey("b", "x/y"), 0)
        system.claim(ActivationKey("a", "z\n\x1b[31m")).emit(note("e"))
    lines = run("ls").stdout.splitlines()

    assert "   EVENTS  INCARNATION  REWINDS  UPDATED                   KEY" == lines[0]
    assert "        1            1        0  1970-01-01T00:00:00.000Z  a/z\\u000a\\u001b[31m" == lines[1]
    assert "        0            0        0  1970-01-01T00:00:00.000Z  b/x%2Fy" == lines[2]


def test_a_list_as_json_has_every_number_of_the_head(store: str) -> None:
    with SessionSystem.open(store, clock=lambda: 0) as system:
        system.claim(KEY).emit(note("e"))
    expected = {
        "key": str(KEY),
        "incarnation": 1,
        "nextOffset": 1,
        "generation": 0,
        "nextTurn": 0,
        "createdAt": "1970-01-01T00:00:00.000Z",
        "updatedAt": "1970-01-01T00:00:00.000Z",
    }

    assert [expected] == json.loads(run("ls", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["a/1", "a/2", "a%2Fb/1", "b/1"]),
        (("a/",), ["a/1", "a/2"]),
        (("a",), ["a/1", "a/2", "a%2Fb/1"]),
        (("a%2F",), ["a%2Fb/1"]),
        (("c",), []),
        (("--limit", "2"), ["a/1", "a/2"]),
        (("a", "--limit", "1"), ["a/1"]),
        (("--limit", "0"), []),
        (("--limit", "9"), ["a/1", "a/2", "a%2Fb/1", "b/1"]),
    ],
)
def test_a_list_may_be_of_a_beginning_and_of_the_first_ones(
    store: str, arguments: tuple[str, ...], expected: list[str]
) -> None:
    with SessionSystem.open(store) as system:
        for key in ("b/1", "a%2Fb/1", "a/2", "a/1"):
            system.claim(ActivationKey.parse(key))

    assert expected == [row["key"] for row in json.loads(run("ls", *arguments, "--json").stdout)]
    assert expected == [line.split()[-1] for line in run("ls", *arguments).stdout.splitlines()[1:]]


def test_a_store_where_the_beginning_of_a_key_stands_is_told(store: str) -> None:
    result = run("ls", store)

    told = "Error: PREFIX is a URL, and no beginning of a key\nTry: incarnate ls --store URL\n"
    assert (2, told) == (result.exit_code, result.stderr)


def test_a_store_without_activations_lists_an_empty_array(store: str) -> None:
    SessionSystem.open(store).close()

    assert [] == json.loads(run("ls", "--json").stdout)


def test_a_replay_is_the_canonical_bytes_of_its_range(store: str) -> None:
    run(*INGEST, recording("S7"))
    with SessionSystem.open(store) as system:
        expected = b"".join([encode_appended(appended) + b"\n" for appended in system.replay(KEY, 3, 9)])

    assert expected == run("replay", KEY, "--from", "3", "--to", "9").stdout_bytes


def test_a_range_that_ends_before_it_starts_is_a_wrong_command_line() -> None:
    run(*INGEST, recording("S7"))
    result = run("replay", KEY, "--from", "9", "--to", "3")

    assert 2 == result.exit_code
    assert "Error: --from 9 lies above --to 3\n" in result.stderr


@pytest.mark.parametrize("options", [(), ("--to", "50"), ("--json",)])
def test_a_range_that_starts_beyond_the_head_is_refused(options: tuple[str, ...]) -> None:
    run(*INGEST, recording("S7"))
    result = run("replay", KEY, "--from", "22", *options)

    assert (1, "") == (result.exit_code, result.stdout)
    assert result.stderr.splitlines() == [
        f"Error: {KEY} does not reach offset 22: its next event goes to 21",
        "Try: give --from an offset up to 21, or leave it out",
    ]
    assert (0, "") == (run("replay", KEY, "--from", "21").exit_code, run("replay", KEY, "--from", "21").stdout)


def test_resume_prints_the_line_that_goes_on() -> None:
    run(*INGEST, "--checkpoint-every", "turn", recording("S7"))
    shown = run("resume", KEY).stdout

    assert "checkpoint  turn-end:21, commit -, taken " in shown
    assert "seed        21 events, " in shown
    assert "discards    0 events above the checkpoint\n" in shown
    assert f"resume      claude -p 'go on' --resume={SESSION} --output-format stream-json --verbose\n" in shown


def test_resume_as_json_holds_the_invocation_and_the_seed(store: str) -> None:
    run(*INGEST, "--checkpoint-every", "turn", recording("S7"))
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(note("late"))
    found = plan()
    size = len(run("replay", KEY, "--to", "21").stdout_bytes)

    assert {"events": 21, "bytes": size, "nextOffset": 21} == found["seed"]
    assert (1, 2, "turn-end:21") == (found["discards"], found["incarnation"], found["checkpoint"]["id"])
    assert {"transport": "cli", "sessionId": SESSION, "args": ["--resume", SESSION]} == found["resume"]["invocation"]


def test_resume_takes_no_lease_and_changes_nothing() -> None:
    run(*INGEST, "--checkpoint-every", "turn", recording("S7"))
    before = run("ls", "--json").stdout
    plan()

    assert before == run("ls", "--json").stdout


def test_another_session_can_be_named() -> None:
    run(*INGEST, "--checkpoint-every", "turn", recording("S7"))
    told = plan("--session-id", "it's; rm -rf /")["resume"]

    assert "it's; rm -rf /" == told["invocation"]["sessionId"]
    assert told["command"] == shlex.split(told["shell"])
    assert "sdk" == plan("--harness", "@github/copilot", "--session-id", "s")["resume"]["invocation"]["transport"]


def test_a_session_goes_on_without_a_terminal_by_the_line_that_is_printed() -> None:
    run(*INGEST, recording("S7"))
    found = plan("--harness", "codex", "--session-id", "ID", "--prompt", "and now?")["resume"]

    assert "codex exec --json --skip-git-repo-check resume ID 'and now?'" == found["shell"]


def test_a_session_of_another_harness_is_told() -> None:
    run(*INGEST, "--checkpoint-every", "turn", recording("S7"))
    result = run("resume", KEY, "--harness", "codex")

    assert f"Error: the newest checkpoint of {KEY} names a session of claude-code\n" in result.stderr


def test_a_session_that_is_named_in_the_last_record_is_resumed() -> None:
    stream = Path(recording("S7")).parents[2] / "copilot" / "S2" / "stdout.jsonl"
    every = ("--checkpoint-every", "turn")
    first, again = [json.loads(run("ingest", "--key", KEY, *every, stream, "--json").stdout) for _ in range(2)]

    assert first["sessionId"] == plan()["resume"]["invocation"]["sessionId"]
    assert 0 == again["checkpoints"]


def test_a_session_that_only_an_sdk_resumes_has_no_command_line() -> None:
    run(*INGEST, recording("S7"))
    sdk = ("--harness", "deepseek", "--session-id", "s")
    told = plan(*sdk)["resume"]

    assert {"transport": "sdk", "sessionId": "s", "call": "restore", "args": ["s"]} == told["invocation"]
    assert (None, None) == (told["command"], told["shell"])
    assert "by the harness's SDK: restore('s')" in run("resume", KEY, *sdk).stdout


def test_without_a_checkpoint_there_is_no_session_to_resume_and_nothing_is_discarded() -> None:
    run(*INGEST, recording("S7"))
    found, shown = plan(), run("resume", KEY).stdout

    assert {"events": 0, "bytes": 0, "nextOffset": 21} == found["seed"]
    assert (None, 0, None) == (found["checkpoint"], found["discards"], found["resume"])
    assert "checkpoint  none yet\n" in shown
    assert "seed        none: a lease goes on at the head, offset 21\n" in shown
    assert "discards    nothing: without a checkpoint the log is kept\n" in shown
    assert f"resume      unknown: {KEY} has no checkpoint yet; give --harness and --session-id\n" in shown


@pytest.mark.parametrize("scenario", ["S4", "S4t", "S7k"])
def test_an_agent_that_was_killed_in_its_first_turn_is_resumed_from_its_own_log(scenario: str) -> None:
    told = json.loads(run(*INGEST, "--checkpoint-every", "turn", recording(scenario), "--json").stdout)
    found, shown = plan(), run("resume", KEY).stdout

    assert told["sessionId"] == found["resume"]["invocation"]["sessionId"]
    assert (1, told["nextOffset"] - 1) == (found["seed"]["events"], found["discards"])
    assert "seed        1 event, " in shown


@pytest.mark.parametrize("options", [("--session-id", "s"), ("--harness", "claude-code")])
def test_half_a_session_is_a_wrong_command_line(options: tuple[str, str]) -> None:
    run(*INGEST, recording("S7"))
    result = run("resume", KEY, *options)

    assert 2 == result.exit_code
    assert f"Error: {KEY} has no checkpoint yet\nTry: give both --harness and --session-id\n" == result.stderr


def test_a_harness_that_this_version_does_not_know_is_named(store: str) -> None:
    detail = {"harness": "tomorrow", "sessionId": "s"}
    with SessionSystem.open(store) as system:
        session = system.claim(KEY)
        session.checkpoint("sha", [EffectEntry(id="x", kind="harness-session", detail=detail)])

    assert "unknown: this version has no dialect tomorrow" in run("resume", KEY).stdout
    assert plan()["resume"] is None
