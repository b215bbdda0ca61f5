"""How commands fail: one shape for every error, with a next step that a person can take in a shell."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.errors import StaleIncarnationError
from incarnate.domain.events import UserMessage
from incarnate.domain.keys import ActivationKey
from tests.support.commands import INGEST, KEY, command_line, recording, run
from tests.support.stores import jsonl_url, sqlite_url

# The command as somebody whom nothing belongs to; what it imports is imported before it gives its rights away.
STRANGER = """
import difflib, os, random
import incarnate.cli.app, incarnate.cli.output, incarnate.storage.jsonl, incarnate.storage.sqlite
from incarnate.cli import main
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
main()
"""


def as_stranger(*arguments: object, **environment: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", STRANGER, *map(str, arguments)]
    named = {name: str(value) for name, value in environment.items()}
    return subprocess.run(command, env={**os.environ, **named}, capture_output=True, text=True, check=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that anybody may enter and only its owner may write to; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        yield Path(name)
        Path(name).chmod(0o755)


def test_a_folder_that_is_no_store_is_told_and_left_alone(tmp_path: Path) -> None:
    result = run("ls", "--store", f"jsonl:///{tmp_path}")

    assert 1 == result.exit_code
    assert (
        f"Error: {tmp_path}: is no store: nothing was written to it yet\nTry: incarnate ingest makes it"
        in result.stderr
    )
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ls", "--sotre", "x"), "Error: No such option '--sotre'."),
        (("lss",), "Error: No such command 'lss'."),
        (("--unknown",), "Error: No such option '--unknown'."),
        (("show",), "Error: Missing argument 'KEY'.\nTry: incarnate show --help\n"),
        (("ingest",), "Error: Missing option '--key'."),
        (
            ("replay", "a/b", "--from", "x"),
            "Error: Invalid value for '--from': 'x' is not a whole number of at least 0.",
        ),
        (
            ("export", "a/b", "--format", "html", "--max-size", "0.1"),
            "Error: Invalid value for '--max-size': '0.1' is not a whole number of MB, from 1 to 1024.",
        ),
        (("superseded", "a/b", "0"), "Error: Invalid value for 'GENERATION': '0' is not a whole number of at least 1."),
        (
            ("stop", "a/b", "--wait", "soon"),
            "Error: Invalid value for '--wait': 'soon' is no number of seconds from 0 to 86400, which is a day.",
        ),
    ],
)
def test_a_wrong_command_line_is_told_like_every_error(arguments: tuple[str, ...], told: str) -> None:
    result = run(*arguments)

    assert 2 == result.exit_code
    assert result.stderr.startswith(told)
    assert result.stderr.endswith(" --help\n")
    assert 2 == result.stderr.count("\n")


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("export", KEY, "--format", "htm"), "Did you mean 'html'?"),
        (("export", KEY, "--format", "Canonical"), "Did you mean 'canonical'?"),
        (("import", __file__, "--key", KEY, "--format", "transcripts"), "Did you mean 'transcript'?"),
        (("ingest", "--key", KEY, "--harness", "claude"), "Did you mean 'claude-code'?"),
        (("resume", KEY, "--harness", "gemini"), "Did you mean 'gemini-cli'?"),
        (("show", KEY, "--view", "modle"), "Did you mean 'model'?"),
        (("run", "--harness", "claude", "--", "claude"), "Did you mean 'claude-code'?"),
        (("simulate", "--scenario", "takeover"), "Try: did you mean take-over? write one of "),
    ],
)
def test_a_choice_that_is_nearly_one_is_answered_with_it(arguments: tuple[object, ...], asked: str) -> None:
    result = run(*arguments)

    assert 2 == result.exit_code
    assert asked in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", KEY, "--format", "pdf-file"), "is not one of"),
        (("simulate", "--scenario", "zzz"), "Try: write one of "),
        (("show", KEY, "--view", ""), "is not one of"),
    ],
)
def test_nothing_is_asked_where_no_choice_is_near(arguments: tuple[object, ...], told: str) -> None:
    result = run(*arguments)

    assert 2 == result.exit_code
    assert told in result.stderr
    assert "ean" not in result.stderr


@pytest.mark.parametrize(("others", "asked"), [(0, f"did you mean {KEY}? "), (99, f"did you mean {KEY}? "), (100, "")])
def test_a_key_that_is_nearly_one_is_answered_with_it_by_a_small_store(store: str, others: int, asked: str) -> None:
    with SessionSystem.open(f"{store}?durability=process") as system:
        for key in (KEY, *(ActivationKey("other", str(number)) for number in range(others))):
            system.claim(key)
    result = run("show", "pik-1/implemnt-tsk")

    assert f"\nTry: {asked}incarnate ls lists what it holds\n" in result.stderr


def test_a_damaged_log_beside_it_hides_no_key_that_is_not_there(store: str) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY)
    with sqlite3.connect(store.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE activation SET created_ms = 'soon'")
    database.close()

    assert "holds no activation a/b\nTry: incarnate ls" in run("show", "a/b").stderr


def test_without_a_command_the_help_is_shown() -> None:
    assert "Commands:" in run().output


def test_a_store_that_is_not_there_is_told_in_words_of_the_shell(tmp_path: Path) -> None:
    result = run("ls", "--store", f"sqlite:///{tmp_path}/nope.db")

    assert 1 == result.exit_code
    assert (
        f"Error: {tmp_path}/nope.db: does not exist\nTry: incarnate ingest makes it; --store names another\n"
        == result.stderr
    )


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sessions.db", "did you mean sqlite:///sessions.db?"),
        ("sqlite:///x.db?bussy=1", "the options are durability=commit|process and busy=SECONDS"),
    ],
)
def test_a_url_that_is_nearly_right_is_answered_with_how_to_write_it(url: str, hint: str) -> None:
    result = run("ls", "--store", url)

    assert 1 == result.exit_code
    assert result.stderr.endswith(f"\nTry: {hint}\n")


@pytest.mark.parametrize("url", ["memory://", "MEMORY://"])
@pytest.mark.parametrize("arguments", [("ls",), ("show", KEY), (*INGEST, recording("S1"))])
def test_a_store_in_memory_is_refused(arguments: tuple[object, ...], url: str) -> None:
    result = run(*arguments, "--store", url)

    assert 1 == result.exit_code
    assert f"Error: {url} would be gone when this command ends\nTry: name a file" in result.stderr


def test_a_stale_ingest_is_told_what_a_person_can_do(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_over(*_: object) -> None:
        raise StaleIncarnationError(key=KEY, incarnation=1, current=2)

    monkeypatch.setattr(SessionSystem, "claim", taken_over)
    result = run(*INGEST, recording("S1"), "--store", store)

    assert 1 == result.exit_code
    assert result.stderr.endswith("\nTry: leave it to whoever has it now; run ingest again only to take it back\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [(("ls",), "run it again"), ((*INGEST, recording("S1")), "run it again; a file goes on where it stopped")],
)
def test_an_interrupt_is_told_and_has_an_exit_code_of_its_own(
    arguments: tuple[object, ...], hint: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SessionSystem, "open", interrupted)
    result = run(*arguments, "--store", store)

    assert (130, f"Error: interrupted\nTry: {hint}\n") == (result.exit_code, result.stderr)


def test_a_data_folder_that_cannot_be_made_is_told_with_another_way(folder: Path) -> None:
    told = as_stranger(*INGEST, recording("S1"), XDG_DATA_HOME=folder / "data")

    assert 1 == told.returncode
    assert f"Error: {folder}/data/incarnate cannot be made or entered (Permission denied)" in told.stderr
    assert "Try: name another store with --store or INCARNATE_STORE" in told.stderr


def test_a_data_folder_that_cannot_be_written_is_told_with_another_way(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "incarnate").mkdir(mode=0o755)
    told = as_stranger(*INGEST, recording("S1"), XDG_DATA_HOME=folder)

    assert 1 == told.returncode
    assert (
        f"Error: {folder}/incarnate/sessions.db: no permission to create it; its folder belongs to {folder.owner()}"
        in told.stderr
    )
    assert "Try: check the permissions of the file and its folder; or name another store with --store" in told.stderr


def test_a_store_that_may_not_be_read_is_told_with_its_owner(folder: Path) -> None:
    url = f"sqlite:///{folder}/sessions.db"
    folder.chmod(0o755)
    SessionSystem.open(url).close()
    told = as_stranger("ls", "--store", url)

    assert 1 == told.returncode
    owner = (folder / "sessions.db").owner()
    assert f"Error: {folder}/sessions.db: no permission to read it; it belongs to {owner}\n" in told.stderr
    assert "Try: check the permissions of the file and its folder\n" in told.stderr


def test_a_store_that_may_not_be_written_is_told_to_check_its_permissions(folder: Path) -> None:
    url = f"sqlite:///{folder}/sessions.db"
    folder.chmod(0o755)
    SessionSystem.open(url).close()
    (folder / "sessions.db").chmod(0o444)
    told = as_stranger(*INGEST, recording("S1"), "--store", url)

    assert 1 == told.returncode
    assert "cannot be written" in told.stderr
    assert "Try: check the permissions of the file and its folder\n" in told.stderr


def test_a_file_that_may_not_be_read_is_told_with_its_owner(folder: Path) -> None:
    folder.chmod(0o777)
    file = folder / "run.jsonl"
    file.write_bytes(recording("S1").read_bytes())
    file.chmod(0o600)
    told = as_stranger(*INGEST, file, "--store", f"sqlite:///{folder}/sessions.db")

    assert 1 == told.returncode
    assert f"Error: {file}: no permission to open it; it belongs to {file.owner()}\n" in told.stderr
    assert not (folder / "sessions.db").exists()


def test_a_link_hides_no_event_that_stands_in_the_log_alone(folder: Path, tmp_path: Path) -> None:
    """Where SQLite may make nothing beside the file, one that has no log is read as it is."""
    for text in ("in the file", "in the log"):
        with SessionSystem.open(sqlite_url(tmp_path)) as system:
            system.claim(KEY).emit(UserMessage(id=text, parent_id=None, text=text))
            folder.chmod(0o755)
            for name in ("sessions.db", "sessions.db-wal"):
                shutil.copy(tmp_path / name, folder)
                (folder / name).chmod(0o644)
    (folder / "link").symlink_to("sessions.db")
    folder.chmod(0o555)
    told = as_stranger("replay", KEY, "--store", f"sqlite:///{folder}/link")

    assert (1, "") == (told.returncode, told.stdout)
    assert f"Error: {folder}/link: cannot be opened" in told.stderr


@pytest.mark.parametrize("output", ["sessions.db", "sessions.db-wal", "link"])
def test_an_export_is_never_written_over_the_store_that_it_reads(store: str, tmp_path: Path, output: str) -> None:
    file = Path(store.removeprefix("sqlite:///"))
    (tmp_path / "link").symlink_to(file)
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
    before = file.read_bytes()
    result = run("export", KEY, "--format", "canonical", "-o", file.parent / output)

    assert (1, before) == (result.exit_code, file.read_bytes())
    assert f"Error: {file.parent / output} belongs to the store that is read\nTry: name another file\n" == result.stderr


def test_an_export_is_never_written_into_the_folder_of_the_store_that_it_reads(tmp_path: Path) -> None:
    with SessionSystem.open(jsonl_url(tmp_path)) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
    mark = next(tmp_path.rglob("incarnate.json"))
    before = mark.read_bytes()
    result = run("export", KEY, "--store", jsonl_url(tmp_path), "--format", "canonical", "-o", mark)

    assert (1, before) == (result.exit_code, mark.read_bytes())
    assert "belongs to the store that is read" in result.stderr


@pytest.mark.parametrize(("make", "ending"), [(sqlite_url, "s"), (sqlite_url, "-wal.jsonl"), (jsonl_url, "-wal")])
def test_what_only_looks_like_a_part_of_the_store_is_written(
    tmp_path: Path, make: Callable[[Path], str], ending: str
) -> None:
    with SessionSystem.open(make(tmp_path)) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
    [place] = tmp_path.iterdir()
    output = place.with_name(f"{place.name}{ending}")

    assert 0 == run("export", KEY, "--store", make(tmp_path), "--format", "canonical", "-o", output).exit_code
    assert 1 == len(output.read_bytes().splitlines())


@pytest.mark.parametrize("flags", [(), ("-n",)])
def test_a_device_is_no_transcript_to_repair_and_is_not_read_without_end(flags: tuple[str, ...]) -> None:
    result = run("repair", "/dev/zero", *flags)

    assert (1, "Error: /dev/zero: is no regular file\nTry: check the path\n") == (result.exit_code, result.stderr)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/dev/full", "No space left on device\nTry: name another file, or make room\n"),
        ("missing/file.html", "No such file or directory\nTry: mkdir -p {folder}/missing, or name another file\n"),
        ("x" * 300, "File name too long\nTry: name another file\n"),
        ("loop", "Too many levels of symbolic links\nTry: name another file\n"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_with_what_to_do(
    store: str, tmp_path: Path, target: str, why: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
    result = run("export", KEY, "--store", store, "--format", "html", "-o", tmp_path / target)
    assert 1 == result.exit_code
    assert f"cannot write {tmp_path / target}: {why.format(folder=tmp_path)}" in result.stderr


def test_a_file_in_a_folder_that_may_not_be_written_is_told_with_its_permissions(folder: Path) -> None:
    url = f"sqlite:///{folder}/sessions.db"
    folder.chmod(0o755)
    with SessionSystem.open(url) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
    (folder / "sessions.db").chmod(0o644)
    told = as_stranger("export", KEY, "--store", url, "--format", "canonical", "-o", folder / "out.jsonl")

    assert 1 == told.returncode
    assert f"Error: cannot write {folder}/out.jsonl: Permission denied\n" in told.stderr
    assert "Try: check the permissions of the file and its folder, or name another file\n" in told.stderr


@pytest.mark.parametrize(
    "command", [("import", "--key", "a/b"), ("repair",), ("repair", "--dry-run"), ("ls", "--store")]
)
def test_no_permission_is_told_in_one_wording(folder: Path, command: tuple[str, ...]) -> None:
    folder.chmod(0o777)
    file = folder / "closed"
    if command[0] == "ls":
        SessionSystem.open(f"jsonl:///{file}").close()
        argument = f"jsonl:///{file}"
    else:
        file.write_bytes(b"{}\n")
        argument = str(file)
    file.chmod(0)
    told = as_stranger(*command, argument, INCARNATE_STORE=f"sqlite:///{folder}/sessions.db")

    assert 1 == told.returncode
    assert f"Error: {file}: no permission to open it; it belongs to {file.owner()}\n" in told.stderr
    assert "Try: check the permissions of the file and its folder\n" in told.stderr


def test_an_empty_file_is_told_to_be_no_store_yet(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    result = run("ls", "--store", f"sqlite:///{tmp_path}/empty.db")

    assert 1 == result.exit_code
    assert f"{tmp_path}/empty.db: is empty: nothing was written to it yet\nTry: if it held" in result.stderr
    assert "put it back from a backup; else incarnate ingest makes it" in result.stderr


@pytest.mark.parametrize(("command", "count"), [(("show", KEY), 1), (("show", KEY), 3000), (("--help",), 1)])
def test_an_output_that_is_full_is_told_with_what_to_do(store: str, command: tuple[object, ...], count: int) -> None:
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit_many([UserMessage(id=f"e{n}", parent_id=None, text="hi") for n in range(count)])
    with Path("/dev/full").open("wb") as full:
        told = subprocess.run(
            command_line(*command),
            env={**os.environ, "INCARNATE_STORE": store},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert 1 == told.returncode
    assert (
        "Error: cannot write the output: No space left on device\nTry: make room, or send the output somewhere else\n"
        == told.stderr
    )


def test_an_empty_transcript_has_nothing_to_repair(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = run("repair", tmp_path / "empty.jsonl")

    assert (0, f"{tmp_path}/empty.jsonl is empty: there is nothing to repair\n") == (result.exit_code, result.stdout)
