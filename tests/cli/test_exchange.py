"""`stats`, `export`, `import` and `repair`: a log told, and exchanged with what others write and read."""

import json
import os
import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    ModelHistory,
    Opaque,
    SessionEvent,
    SessionSystem,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
    to_anthropic,
    to_openai_chat,
)
from incarnate.domain.transcripts.rows import UserMessageRow, decode_row, encode_row
from tests.support.commands import INGEST, KEY, payloads, recording, run, start
from tests.support.stores import sqlite_url

FIELDS: dict[str, Any] = {"id": "e", "parent_id": None}
OTHER = ActivationKey("pik-2", "copy")
NOVEL = b'{"type":"novel","id":"n","parentId":null,"offset":7,"number":123456789012345678901234567890,"a":1.0}'
EVENTS: Sequence[SessionEvent | Opaque] = [
    TurnStart(**FIELDS, turn=3),
    UserMessage(**FIELDS, text="fix \x1b[2J it\u2028"),
    ToolCall(**FIELDS, call_id="c", name="Bash", args={"b": 1, "a": 2}),
    ToolResult(**FIELDS, call_id="gone", ok=True, result=None),
    Opaque("novel", "n", None, NOVEL),
    Usage(**FIELDS, input_tokens=3, output_tokens=4, model="m"),
    TurnEnd(**FIELDS, turn=3, outcome="cancelled"),
]

# A process that is killed in its n-th commit: before it, or right after it.
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


def put(store: str, events: Sequence[SessionEvent | Opaque] = EVENTS, key: ActivationKey = KEY) -> None:
    with SessionSystem.open(store) as system:
        system.claim(key).emit_many(events)


def exported(form: str, key: ActivationKey = KEY) -> bytes:
    return run("export", key, "--format", form).stdout_bytes


def rows(*texts: str) -> bytes:
    return b"".join([encode_row(UserMessageRow(text)) + b"\n" for text in texts])


def made(folder: Path, data: bytes, name: str = "file.jsonl") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def imported(file: Path, *options: object, key: ActivationKey = OTHER) -> dict[str, Any]:
    result = run("import", file, "--key", key, "--json", *options)
    assert result.exit_code in {0, 3}, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


# stats


def test_stats_count_what_a_log_holds(store: str) -> None:
    put(store)
    shown = run("stats", KEY).stdout

    assert "events      7, rewound 0 times\n" in shown
    assert "turns       1 begun, 1 ended: 1 cancelled\n" in shown
    assert "no result   1: Bash c\n" in shown
    assert "no call     1: gone\n" in shown
    assert "tokens      m: 3 in, 4 out, 0 from the cache, 0 to the cache, 0 reasoning\n" in shown


def test_stats_as_json_are_the_analysis_and_the_usage_by_model(store: str) -> None:
    put(store)
    told = json.loads(run("stats", KEY, "--json").stdout)

    assert (str(KEY), 1, 7, 0) == (told["key"], told["incarnation"], told["nextOffset"], told["generation"])
    assert ["turn-3"] == told["analysis"]["turnIds"]["ids"]
    assert 4 == told["analysis"]["nextTurn"]
    assert [("m", 3)] == [(used["model"], used["tokens"]["inputTokens"]) for used in told["usage"]["byModel"]]


def test_stats_list_what_is_wrong_with_turn_ids(store: str) -> None:
    put(store, [TurnStart(**FIELDS, turn=turn) for turn in (2, 1, 1)] + [TurnStart(**FIELDS, turn=0, label="t\x1b")])
    shown = run("stats", KEY).stdout

    assert "going back  2: turn-1 after turn-2, turn-1 after turn-1\n" in shown
    assert "used again  1: turn-1\n" in shown
    assert "no number   1: t\\u001b\n" in shown


# export


def test_a_transcript_is_exported_as_rows_and_what_has_none_is_told(store: str) -> None:
    put(store)
    result = run("export", KEY, "--format", "transcript")
    lines = result.stdout_bytes.split(b"\n")

    assert 5 == len([decode_row(line) for line in lines if line])
    assert b'{"type":"tool_call","id":"c","name":"Bash","args":{"a":2,"b":1}}' in lines
    assert "left out: 1 novel\nleft out: 1 usage\n" == result.stderr


def test_canonical_events_are_exported_as_they_are_replayed(store: str) -> None:
    put(store)

    assert run("replay", KEY).stdout_bytes == exported("canonical")
    assert run("replay", KEY, "--json").stdout == run("export", KEY, "--format", "canonical", "--json").stdout


@pytest.mark.usefixtures("store")
def test_a_history_is_exported_as_a_provider_takes_it(store: str) -> None:
    run(*INGEST, recording("S7"))
    with SessionSystem.open(store) as system:
        history = system.view(KEY, ModelHistory()).get()

    assert to_openai_chat(history) == json.loads(exported("openai"))
    assert to_anthropic(history) == json.loads(exported("anthropic"))


def test_an_export_into_a_file_is_whole_and_its_owners_alone(store: str, tmp_path: Path) -> None:
    put(store)
    file = tmp_path / "log.jsonl"
    told = json.loads(run("export", KEY, "--format", "transcript", "-o", file, "--json").stdout)

    assert exported("transcript") == file.read_bytes()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert (5, {"novel": 1, "usage": 1}) == (told["lines"], told["leftOut"])
    assert (
        f"{file}: 5 lines\nleft out: 1 novel\nleft out: 1 usage\n"
        == run("export", KEY, "--format", "transcript", "-o", file).stdout
    )


def test_an_export_that_fails_leaves_the_file_as_it_was(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    file = made(tmp_path, b"before", "log.jsonl")
    with monkeypatch.context() as bad:
        bad.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        result = run("export", KEY, "--format", "canonical", "-o", file)

    assert 1 == result.exit_code
    assert b"before" == file.read_bytes()
    assert ["log.jsonl"] == [left.name for left in tmp_path.iterdir() if "log" in left.name]


def test_an_export_keeps_a_link_and_the_mode_of_its_file(store: str, tmp_path: Path) -> None:
    put(store)
    file = made(tmp_path, b"", "log.jsonl")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    run("export", KEY, "--format", "canonical", "-o", tmp_path / "link")

    assert (tmp_path / "link").is_symlink()
    assert (exported("canonical"), 0o640) == (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))


def test_an_export_may_go_into_a_pipe(store: str, tmp_path: Path) -> None:
    put(store)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    run("export", KEY, "--format", "transcript", "-o", pipe)
    read = os.read(reader, 1 << 16)
    os.close(reader)

    assert exported("transcript") == read


# import


def test_canonical_events_come_back_as_they_were(store: str, tmp_path: Path) -> None:
    put(store)
    report = imported(made(tmp_path, exported("canonical")))

    assert payloads(store) == payloads(store, OTHER)
    assert ("canonical", 7, 7, 0, 1) == tuple(
        report[name] for name in ("format", "events", "appended", "skipped", "incarnation")
    )


def test_a_place_that_stands_elsewhere_in_an_unknown_event_is_stripped_too(store: str, tmp_path: Path) -> None:
    line = b'{"at":"x","offset":0,"incarnation":1,"type":"novel","id":"n","parentId":null,"b":[1,2]}\n'
    imported(made(tmp_path, line))

    assert [b'{"type":"novel","id":"n","parentId":null,"b":[1,2]}'] == payloads(store, OTHER)


@pytest.mark.usefixtures("store")
def test_a_transcript_comes_back_byte_for_byte(tmp_path: Path) -> None:
    run(*INGEST, recording("S7"))
    transcript = exported("transcript")
    report = imported(made(tmp_path, transcript))

    assert "transcript" == report["format"]
    assert transcript == exported("transcript", OTHER)


def test_a_second_import_adds_nothing_and_claims_nothing(store: str, tmp_path: Path) -> None:
    file = made(tmp_path, rows("a", "b"))
    imported(file)
    before = payloads(store, OTHER)
    report = imported(file)

    assert (0, 2, 0, None) == tuple(report[name] for name in ("appended", "skipped", "beyond", "incarnation"))
    assert before == payloads(store, OTHER)


def test_a_file_that_has_grown_is_continued(store: str, tmp_path: Path) -> None:
    imported(made(tmp_path, rows("a")))
    report = imported(made(tmp_path, rows("a", "b")))

    assert (1, 1) == (report["appended"], report["skipped"])
    assert 2 == len(payloads(store, OTHER))


def test_what_the_log_holds_after_the_file_is_told(store: str, tmp_path: Path) -> None:
    imported(made(tmp_path, rows("a")))
    put(store, EVENTS[:2], OTHER)

    assert 2 == imported(made(tmp_path, rows("a")))["beyond"]
    assert "beyond       2 events" in run("import", tmp_path / "file.jsonl", "--key", OTHER).stdout


def test_a_log_that_holds_something_else_is_refused_and_not_claimed(store: str, tmp_path: Path) -> None:
    put(store, EVENTS[:1], OTHER)
    result = run("import", made(tmp_path, rows("a")), "--key", OTHER)

    assert 1 == result.exit_code
    assert "Error: line 1 is not what pik-2/copy holds at offset 0; nothing was appended" in result.stderr
    assert "Try: import it under a key of its own, or add --append" in result.stderr
    assert 1 == json.loads(run("ls", "--json").stdout)[0]["incarnation"]
    assert 1 == len(payloads(store, OTHER))


def test_that_a_key_is_retired_is_said_before_what_an_import_differs_in(store: str, tmp_path: Path) -> None:
    put(store)
    imported(made(tmp_path, exported("canonical")))
    run("retire", OTHER)
    same, other = (run("import", made(tmp_path, data), "--key", OTHER) for data in (exported("canonical"), rows("x")))

    assert (0, 1) == (same.exit_code, other.exit_code)
    assert f"Error: {OTHER} is retired\n" in other.stderr


def test_append_puts_a_file_behind_the_log_once(store: str, tmp_path: Path) -> None:
    put(store, EVENTS[:2], OTHER)
    file = made(tmp_path, rows("a", "b"))

    assert [2, 0, 0] == [imported(file, "--append")["appended"] for _ in range(3)]
    with SessionSystem.open(store) as system:
        events = [appended.event for appended in system.replay(OTHER)]
    assert ["e", "e", events[2].id] == [events[1].id, events[2].parent_id, events[3].parent_id]


def test_append_goes_on_where_it_was_killed(store: str, tmp_path: Path) -> None:
    put(store, EVENTS[:2], OTHER)
    imported(made(tmp_path, rows("a", "b")), "--append")
    report = imported(made(tmp_path, rows("a", "b", "c")), "--append")

    assert (1, 2) == (report["appended"], report["skipped"])
    assert 5 == len(payloads(store, OTHER))


def test_append_of_another_file_that_begins_alike_is_put_at_the_head(store: str, tmp_path: Path) -> None:
    imported(made(tmp_path, rows("a", "b")))
    report = imported(made(tmp_path, rows("a", "c")), "--append")

    assert (2, 0) == (report["appended"], report["skipped"])
    assert 4 == len(payloads(store, OTHER))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("tail", [b'{"type":"user_mess', b"\0\0\0", b"   \n", b'{"type":"user_mess\n\n'])
def test_a_torn_end_is_left_out_and_told(tail: bytes, tmp_path: Path) -> None:
    result = run("import", made(tmp_path, rows("a") + tail), "--key", OTHER)

    assert 3 == result.exit_code
    assert f"torn         line 2, byte {len(rows('a'))}, to the end was left out: " in result.stdout
    assert rows("a") == exported("transcript", OTHER)


@pytest.mark.usefixtures("store")
def test_a_last_record_without_its_line_end_counts(tmp_path: Path) -> None:
    report = imported(made(tmp_path, b"\r\n" + rows("a")[:-1] + b"\r\n\n" + rows("b")[:-1]))
    cut = imported(made(tmp_path, rows("a", "b")[:-1] + b"\0\0"), key=KEY)

    assert (2, None) == (report["appended"], report["torn"])
    assert (2, {"line": 2, "offset": len(rows("a", "b")) - 1, "reason": "NULs"}) == (cut["appended"], cut["torn"])


def test_damage_in_front_of_records_is_refused_before_anything_is_appended(store: str, tmp_path: Path) -> None:
    file = made(tmp_path, rows("a") + b"{}\n" + rows("b"))
    result = run("import", file, "--key", OTHER)

    assert 1 == result.exit_code
    assert f"Error: {file}, line 2, byte {len(rows('a'))}: no transcript row" in result.stderr
    assert f"Try: incarnate repair --dry-run {file}" in result.stderr
    assert [] == payloads(store, OTHER)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"type":"result"}\n', b"not json\n", b"[]\n"])
def test_a_file_that_is_neither_is_refused(data: bytes, tmp_path: Path) -> None:
    result = run("import", made(tmp_path, data), "--key", OTHER)

    assert 1 == result.exit_code
    assert "Try: check the file" in result.stderr


@pytest.mark.usefixtures("store")
def test_a_named_format_is_what_counts(tmp_path: Path) -> None:
    result = run("import", made(tmp_path, rows("a")), "--key", OTHER, "--format", "canonical")

    assert 1 == result.exit_code
    assert "no line is a whole record" in result.stderr


@pytest.mark.usefixtures("store")
def test_what_cannot_be_read_twice_is_a_wrong_command_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert 2 == run("import", tmp_path / "pipe", "--key", OTHER).exit_code


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
@pytest.mark.parametrize("options", [(), ("--append",)], ids=["", "append"])
def test_an_import_killed_in_any_commit_is_completed_by_the_next(
    options: tuple[str, ...], commit: int, when: str, store: str, tmp_path: Path
) -> None:
    file = made(tmp_path, rows(*map(str, range(2500))))
    if options:
        put(store, EVENTS[:2], OTHER)
    arguments = ("import", file, "--key", OTHER, *options)
    process = start([sys.executable, "-c", DYING, str(commit), when, *map(str, arguments)])
    _, errors = process.communicate()
    assert -signal.SIGKILL == process.returncode, errors
    report = imported(file, *options)

    assert 2500 == report["appended"] + report["skipped"]
    assert 2500 + 2 * len(options) == len(payloads(store, OTHER))


def test_an_import_makes_the_store(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    imported(made(tmp_path, rows("a")), "--store", url)

    assert 1 == len(payloads(url, OTHER))


# repair


def test_repair_keeps_every_valid_record_and_tells_the_rest(tmp_path: Path) -> None:
    damaged = rows("a") + b"torn\n" + rows("b") + b"\0\0"
    file = made(tmp_path, damaged)
    looked = run("repair", file, "--dry-run")
    assert damaged == file.read_bytes()
    done = run("repair", file)

    assert f"line 2, byte {len(rows('a'))}: 5 bytes would be removed\n" in looked.stdout
    assert f"{file}: 2 records would be kept\n" in looked.stdout
    assert f"{file}: 2 records kept; what was removed is in {file}.torn-" in done.stdout
    assert rows("a", "b") == file.read_bytes()
    assert f"{file}: 2 records, no damage\n" == run("repair", file).stdout


def test_repair_as_json_says_where_what_stood(tmp_path: Path) -> None:
    file = made(tmp_path, rows("a") + b"torn\n" + rows("b"))
    told = json.loads(run("repair", file, "--dry-run", "--json").stdout)

    assert [{"line": 2, "offset": len(rows("a")), "length": 5}] == told["removed"]
    assert (2, True, None) == (told["rows"], told["dryRun"], told["saved"])


def test_what_is_no_transcript_is_not_repaired(tmp_path: Path) -> None:
    file = made(tmp_path, b"a shopping list\n")
    result = run("repair", file)

    assert 1 == result.exit_code
    assert "holds no transcript row; nothing was changed" in result.stderr
