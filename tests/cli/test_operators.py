"""`fork`, `retire`, `sweep`, `rewinds`, `superseded` and `copy`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.codec import encode_appended
from incarnate.domain.errors import RetiredError
from incarnate.domain.events import AssistantMessage, UserMessage
from incarnate.domain.keys import ActivationKey
from tests.support.commands import KEY, payloads, run
from tests.support.stores import jsonl_url, sqlite_url

NEW = ActivationKey("pik-1", "forked")
DAY = 86_400_000


def note(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text=name)


def fill(store: str, key: ActivationKey = KEY, now_ms: int = 0) -> str:
    """`a b` below a checkpoint, `d` above it; `c` was superseded. Answers the checkpoint's id."""
    with SessionSystem.open(store, clock=lambda: now_ms) as system:
        session = system.claim(key)
        session.emit_many([note("a"), note("b")])
        kept = session.checkpoint("sha")
        session.emit(note("c"))
        session.restore()
        session.emit(note("d"))
        return kept.id


def names(store: str, key: ActivationKey = KEY) -> str:
    with SessionSystem.open(store) as system:
        return "".join(appended.event.id for appended in system.replay(key))


@pytest.mark.parametrize(
    ("at", "expected"), [((), "abd"), (("--at", "latest"), "ab"), (("--at", "1"), "a"), (("--at", "0"), "")]
)
def test_a_fork_holds_what_lies_below_the_place(store: str, at: tuple[str, ...], expected: str) -> None:
    fill(store)
    result = run("fork", KEY, NEW, *at)

    assert 0 == result.exit_code
    assert f"{NEW}: {len(expected)} event" in result.stdout
    assert (expected, "abd") == (names(store, NEW), names(store))


def test_a_fork_at_a_checkpoint_is_told_as_json(store: str) -> None:
    result = run("fork", KEY, NEW, "--at", fill(store), "--json")

    assert {"key": str(NEW), "incarnation": 1, "nextOffset": 2} == json.loads(result.stdout)


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (
            "4",
            f"Error: {KEY} does not reach offset 4: it ends at 3\nTry: name one up to 3, or leave --at out to fork",
        ),
        ("9" * 5000, f"Error: {KEY} does not reach offset 999"),
        ("nope", f"Error: {KEY} has no checkpoint nope\nTry: incarnate checkpoints {KEY} lists them, or leave"),
        ("-1", f"Error: {KEY} has no checkpoint -1\n"),
    ],
)
def test_a_place_that_the_log_does_not_have_is_refused(store: str, at: str, told: str) -> None:
    fill(store)
    result = run("fork", KEY, NEW, "--at", at)

    assert 1 == result.exit_code
    assert result.stderr.startswith(told)
    assert str(NEW) not in run("ls").stdout


def test_the_checkpoints_are_listed_with_the_ids_that_a_fork_takes(store: str) -> None:
    first = fill(store)
    with SessionSystem.open(store, clock=lambda: DAY) as system:
        second = system.lease(KEY, 1).checkpoint("sha-2").id
    header, *rows = run("checkpoints", KEY).stdout.splitlines()
    told = json.loads(run("checkpoints", KEY, "--json").stdout)

    assert ["OFFSET", "INCARNATION", "AT", "ID", "COMMIT"] == header.split()
    assert ["2", "1", "1970-01-01T00:00:00.000Z", first, "sha"] == rows[0].split()
    assert ["3", "1", "1970-01-02T00:00:00.000Z", second, "sha-2"] == rows[1].split()
    assert [first, second] == [row["id"] for row in told]
    assert {"id", "offset", "commitSha", "effectLedger", "incarnation", "at"} == set(told[0])
    assert 0 == run("fork", KEY, NEW, "--at", rows[0].split()[3]).exit_code
    assert "ab" == names(store, NEW)


def test_a_log_without_checkpoints_lists_none(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY)

    assert 1 == len(run("checkpoints", KEY).stdout.splitlines())
    assert "[]\n" == run("checkpoints", KEY, "--json").stdout


def test_a_fork_at_the_latest_checkpoint_needs_one(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY)

    assert f"Error: {KEY} has no checkpoint yet\n" in run("fork", KEY, NEW, "--at", "latest").stderr


def test_a_fork_onto_a_key_that_exists_is_refused(store: str) -> None:
    fill(store)
    result = run("fork", KEY, KEY)

    assert 1 == result.exit_code
    assert f"Error: {KEY} exists already\nTry: choose a key that nobody has touched\n" == result.stderr


def test_a_retired_activation_is_read_and_not_taken_and_forked(store: str) -> None:
    fill(store)
    assert f"{KEY} is retired, with 3 events\n" == run("retire", KEY).stdout
    told = {"key": str(KEY), "incarnation": 2, "nextOffset": 3, "retired": True}
    assert told == json.loads(run("retire", KEY, "--json").stdout)

    with SessionSystem.open(store) as system, pytest.raises(RetiredError):
        system.claim(KEY)
    assert 3 == len(run("replay", KEY).stdout.splitlines())
    assert 0 == run("fork", KEY, NEW).exit_code


def test_a_sweep_removes_what_is_older_and_nothing_else(store: str) -> None:
    fill(store)  # in 1970
    fill(store, NEW)
    run("retire", NEW)  # now
    swept = run("sweep", "--older-than", "30d", "--vacuum")

    assert "removed 0 retired activations and the archives of 2 rewinds: 2 events\n" == swept.stdout
    assert ("abd", "abd") == (names(store), names(store, NEW))
    assert {"activations": 0, "rewinds": 0, "events": 0} == json.loads(
        run("sweep", "--older-than", "1w", "--json").stdout
    )


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("replay",),
        ("stats",),
        ("checkpoints",),
        ("rewinds",),
        ("superseded", "1"),
        ("resume",),
        ("fork", "pik-1/on"),
    ],
)
@pytest.mark.parametrize("url", [sqlite_url, jsonl_url])
def test_a_key_that_was_swept_is_told_by_every_reader(
    command: tuple[str, ...], url: Callable[[Path], str], tmp_path: Path
) -> None:
    store = url(tmp_path)
    with SessionSystem.open(store, clock=lambda: 0) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
        system.claim(NEW)
        system.retire(KEY)
    run("retire", NEW, "--store", store)  # now, and empty: it is still there
    run("sweep", "--older-than", "1d", "--store", store)
    name, *rest = command
    swept, empty = (run(name, key, *rest, "--store", store) for key in (KEY, NEW))

    assert f"Error: {store} holds no activation {KEY} any more: it was retired and swept\n" in swept.stderr
    assert (1, "") == (swept.exit_code, swept.stdout)
    assert "any more" not in empty.stderr
    assert 0 == run("retire", KEY, "--store", store).exit_code


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5h", "1y", "9999999d", "٣d", ""])
def test_an_age_that_is_none_is_a_wrong_command_line(store: str, age: str) -> None:
    fill(store)
    result = run("sweep", "--older-than", age)

    assert 2 == result.exit_code
    assert "is no age\nTry: write a number and one of w, d, h, m and s, such as 30d\n" in result.stderr


@pytest.mark.parametrize("arguments", [("fork", KEY, NEW), ("retire", KEY), ("sweep", "--older-than", "1d")])
def test_who_changes_a_store_makes_none(arguments: tuple[object, ...], data_folder: Path) -> None:
    result = run(*arguments)

    assert 1 == result.exit_code
    assert f"Error: there is no store yet at {data_folder}/incarnate/sessions.db" in result.stderr
    assert not data_folder.exists()


@pytest.mark.parametrize("arguments", [("fork", NEW, KEY), ("retire", NEW), ("rewinds", NEW), ("superseded", NEW, "1")])
def test_an_activation_that_the_store_does_not_hold_is_not_made(arguments: tuple[object, ...], store: str) -> None:
    fill(store)
    result = run(*arguments)

    assert 1 == result.exit_code
    assert f"Error: {store} holds no activation {NEW}\n" in result.stderr
    assert str(NEW) not in run("ls").stdout


def test_rewinds_are_listed(store: str) -> None:
    fill(store)
    lines = run("rewinds", KEY).stdout.splitlines()

    assert "GENERATION        CUT       HEAD  INCARNATION  AT                        SUPERSEDED" == lines[0]
    assert "         1          2          3            1  1970-01-01T00:00:00.000Z  1" == lines[1]
    expected = {
        "generation": 1,
        "cut": 2,
        "head": 3,
        "incarnation": 1,
        "at": "1970-01-01T00:00:00.000Z",
        "swept": False,
    }
    assert [expected] == json.loads(run("rewinds", KEY, "--json").stdout)


def test_what_a_rewind_superseded_is_printed_as_a_replay_is(store: str) -> None:
    fill(store)
    with SessionSystem.open(store) as system:
        expected = b"".join([encode_appended(one) + b"\n" for one in system.replay_superseded(KEY, 1)])
    assert b'"id":"c"' in expected
    assert expected == run("superseded", KEY, "1").stdout_bytes
    assert ["c"] == [one["id"] for one in json.loads(run("superseded", KEY, "1", "--json").stdout)]


def test_a_generation_that_was_swept_or_never_was_is_refused(store: str) -> None:
    fill(store)
    assert (
        f"Error: {KEY} has not been rewound to generation 2\nTry: incarnate rewinds {KEY}\n"
        == run("superseded", KEY, "2").stderr
    )
    run("sweep", "--older-than", "1d")

    assert "swept" == run("rewinds", KEY).stdout.split()[-1]
    assert (
        1,
        f"Error: what rewind 1 of {KEY} superseded was swept\nTry: incarnate rewinds {KEY} tells what is left\n",
    ) == (
        run("superseded", KEY, "1").exit_code,
        run("superseded", KEY, "1").stderr,
    )
    assert 2 == run("superseded", KEY, "0").exit_code


def test_a_copy_holds_the_same_and_may_be_run_again(store: str, tmp_path: Path) -> None:
    fill(store)
    target = jsonl_url(tmp_path)
    first, again = run("copy", store, target), run("copy", store, target, KEY)
    told = f"{KEY}: 3 events and 1 checkpoint verified, {{}} new; archives of 1 rewind not copied\n"

    assert (0, told.format("3 events")) == (first.exit_code, first.stdout)
    assert (0, told.format("0 events")) == (again.exit_code, again.stdout)
    assert payloads(store) == payloads(target)
    assert run("replay", KEY).stdout == run("replay", KEY, "--store", target).stdout


def test_a_copy_is_told_as_json(store: str, tmp_path: Path) -> None:
    fill(store)
    expected = {"key": str(KEY), "events": 3, "added": 3, "checkpoints": 1, "archivesLeft": 1, "error": None}

    assert [expected] == json.loads(run("copy", store, jsonl_url(tmp_path), "--json").stdout)


def test_a_copy_that_is_refused_is_told_and_the_others_are_made(store: str, tmp_path: Path) -> None:
    fill(store)
    fill(store, NEW)
    target = jsonl_url(tmp_path)
    with SessionSystem.open(target) as system:
        system.claim(NEW).emit(note("other"))
    result = run("copy", store, target)

    assert 3 == result.exit_code
    assert (
        f"Error: {NEW} exists already: in {target} it holds something else at offset 0\nTry: copy it " in result.stderr
    )
    assert (f"{KEY}: ", "abd") == (result.stdout[: len(str(KEY)) + 2], names(target))
    found = json.loads(run("copy", store, target, "--json").stdout)
    assert [True, False] == [one["error"] is not None for one in found]


def test_a_key_that_is_not_there_is_refused_before_anything_is_copied(store: str, tmp_path: Path) -> None:
    fill(store)
    result = run("copy", store, jsonl_url(tmp_path), KEY, NEW)

    assert 1 == result.exit_code
    assert f"holds no activation {NEW}" in result.stderr
    assert not (tmp_path / "journals").exists()


def test_a_copy_goes_from_one_store_to_another(store: str) -> None:
    fill(store)

    assert (2, "Error: FROM and TO are the same store\nTry: name another one\n") == (
        run("copy", store, store).exit_code,
        run("copy", store, store).stderr,
    )
    assert "would be gone when this command ends" in run("copy", store, "memory://").stderr
    told = "/nowhere.db: does not exist\nTry: check FROM, which must be there; TO alone is made\n"
    assert run("copy", "sqlite:///nowhere.db", store).stderr.endswith(told)
