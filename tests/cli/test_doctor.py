"""`incarnate doctor`: what it prints, and its exit code by the worst finding."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.errors import LogCorruptionError
from incarnate.domain.events import AssistantMessage, ToolCall
from incarnate.domain.keys import ActivationKey
from tests.support.commands import KEY, run

OTHER = ActivationKey("pik-0", "first")
NOTE = AssistantMessage(id="a", parent_id=None, text="hi\x1b[31m")


def fill(store: str) -> None:
    with SessionSystem.open(store) as system:
        for key in (OTHER, KEY):
            session = system.claim(key)
            session.emit_many([AssistantMessage(id=str(number), parent_id=None, text="x") for number in range(5)])
            session.checkpoint("sha")


def damage(store: str, statement: str) -> None:
    with closing(sqlite3.connect(store.removeprefix("sqlite:///"))) as db, db:
        assert db.execute(statement).rowcount


def test_a_whole_store_is_0(store: str) -> None:
    fill(store)
    result = run("doctor", store)

    assert 0 == result.exit_code
    assert f"{KEY}\n  5 events of 280 bytes, 1 checkpoint, incarnation 1\n" in result.stdout
    assert "2 activations: 10 events of 560 bytes; 0 events of 0 bytes superseded\n" in result.stdout
    assert f"the largest: {OTHER}, 280 bytes\n" in result.stdout
    assert result.stdout.endswith("found: damage 0, warnings 0, notes 0\n")


def test_the_store_is_named_like_everywhere(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    by_variable = run("doctor").stdout
    monkeypatch.delenv("INCARNATE_STORE")

    assert by_variable == run("doctor", store).stdout == run("doctor", "--store", store).stdout
    assert 2 == run("doctor", store, "--store", "sqlite:///other.db").exit_code
    assert 1 == run("doctor").exit_code


def test_what_a_running_agent_shows_is_a_note_and_0(store: str) -> None:
    fill(store)
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(ToolCall(id="c", parent_id=None, call_id="c\x1b", name="bash", args={}))
    result = run("doctor")

    assert 0 == result.exit_code
    assert "  note  offset 5: the call 'c\\x1b' of 'bash' has no result\n" in result.stdout
    assert "  written: 0 up to 5 by 1, 5 up to 6 by 2\n" in result.stdout


def test_what_is_whole_and_odd_is_5(store: str) -> None:
    fill(store)
    with SessionSystem.open(store) as system:
        system.claim(KEY).emit(AssistantMessage(id="3", parent_id=None, text="again"))
    result = run("doctor")

    assert 5 == result.exit_code
    assert "  warning  offset 5: the event id '3' stands at a lower offset too\n    Try: " in result.stdout


def test_damage_is_4_and_says_what_would_mend_it(store: str) -> None:
    fill(store)
    damage(store, "DELETE FROM event WHERE activation = 1 AND offset = 2")
    result = run("doctor")

    assert 4 == result.exit_code
    assert (
        f"{OTHER}\n  4 events of 224 bytes, 1 checkpoint, incarnation 1\n"
        "  damage  offset 2: 1 event missing: nothing stands at 2 up to 3\n"
        f"    Try: incarnate fork {OTHER} NEW_KEY --at 2 goes on from what lies before it\n" in result.stdout
    )
    assert f"{KEY}\n  5 events" in result.stdout


def test_a_log_can_be_mended_as_it_says(store: str) -> None:
    fill(store)
    damage(store, "UPDATE event SET payload = X'7B' WHERE activation = 1 AND offset = 2")
    run("fork", OTHER, "pik-0/mended", "--at", "2")
    found = json.loads(run("doctor", "--json").stdout)

    assert {"pik-0/first": 1, "pik-0/mended": 0, str(KEY): 0} == {
        one["key"]: len(one["findings"]) for one in found["activations"]
    }


def test_json_holds_all_of_it(store: str) -> None:
    fill(store)
    damage(store, "DELETE FROM event WHERE activation = 1 AND offset = 4")
    result = run("doctor", "--json")
    found = json.loads(result.stdout)
    finding = {
        "severity": "damage",
        "kind": "checkpoint",
        "offset": 5,
        "repair": f"incarnate fork {OTHER} NEW_KEY leaves it out",
    }

    assert 4 == result.exit_code
    assert (store, {"damage": 1, "warning": 0, "note": 0}) == (found["store"], found["found"])
    assert finding == {name: found["activations"][0]["findings"][0][name] for name in finding}
    assert [{"incarnation": 1, "from": 0, "to": 4}] == found["activations"][0]["written"]
    assert {"key": str(KEY), "bytes": 280} == found["largest"]


def test_a_list_that_is_damaged_is_4(store: str) -> None:
    fill(store)
    damage(store, "UPDATE activation SET element_id = '' WHERE id = 2")
    result = run("doctor")

    assert 4 == result.exit_code
    assert "the store\n  damage  the list of activations ends here: element_id is empty\n" in result.stdout
    assert None is json.loads(run("doctor", "--json").stdout)["activations"][-1]["key"]


def other_database(place: Path) -> None:
    with closing(sqlite3.connect(place)) as db:
        db.execute("CREATE TABLE t (x)")


def cut_store(place: Path) -> None:
    fill(f"sqlite:///{place}")
    os.truncate(place, 20_000)


def folder_of_others(place: Path) -> None:
    place.mkdir()
    (place / "README").touch()


NOTHING = "check the path: doctor reads a store that is there; incarnate ingest makes one"
OVERWRITTEN = "check the path; if a store was there it was overwritten: put it back from a backup"
UNREADABLE: dict[str, tuple[str, Callable[[Path], object], str, str]] = {
    "missing": ("sqlite", Path.exists, "does not exist", NOTHING),
    "missing folder": ("jsonl", Path.exists, "does not exist", NOTHING),
    "empty": (
        "sqlite",
        Path.touch,
        "is empty: nothing was written to it yet",
        f"if it held sessions, put it back from a backup; else {NOTHING}",
    ),
    "empty folder": ("jsonl", Path.mkdir, "is no store: nothing was written to it yet", NOTHING),
    "folder": ("sqlite", Path.mkdir, "is a folder", "name a file in it, such as sqlite:///{}/sessions.db"),
    "store of the other kind": (
        "sqlite",
        lambda place: fill(f"jsonl:///{place}"),
        "is a folder",
        "did you mean jsonl:///{}?",
    ),
    "file of the other kind": (
        "jsonl",
        lambda place: fill(f"sqlite:///{place}"),
        "is no folder",
        "did you mean sqlite:///{}?",
    ),
    "file for a folder": ("jsonl", Path.touch, "is no folder", "check the path in the store's URL"),
    "text": ("sqlite", lambda place: place.write_text("no database" * 100), "is no SQLite database", OVERWRITTEN),
    "one byte": ("sqlite", lambda place: place.write_bytes(b"S"), "is no SQLite database", OVERWRITTEN),
    "zeros": ("sqlite", lambda place: place.write_bytes(bytes(20_000)), "is no SQLite database", OVERWRITTEN),
    "other database": (
        "sqlite",
        other_database,
        "is an SQLite database, but no store of incarnate",
        "check the path in the store's URL",
    ),
    "folder of others": (
        "jsonl",
        folder_of_others,
        "holds other files and is no store of incarnate",
        "check the path in the store's URL",
    ),
    "cut": (
        "sqlite",
        cut_store,
        "database disk image is malformed",
        "copy it before anything else writes to it; then put it back from a backup, or try sqlite3 COPY .recover",
    ),
    "pipe": ("sqlite", os.mkfifo, "is a pipe, a device or a socket", "check the path in the store's URL"),
    "dangling link": (
        "sqlite",
        lambda place: place.symlink_to("gone"),
        "is a link to gone, which does not exist",
        "check the path in the store's URL",
    ),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_is_no_store_is_told_with_what_to_do_and_left_alone(tmp_path: Path, kind: str) -> None:
    scheme, make, what, hint = UNREADABLE[kind]
    place = tmp_path / "a store"
    make(place)
    before = content(tmp_path)
    results = [run("doctor", f"{scheme}:///{tmp_path}/a%20store", *flags) for flags in ((), ("--json",))]
    told = f"Error: {place}: {what}\nTry: {hint.format(f'{tmp_path}/a%20store')}\n"

    assert [(1, "", told)] * 2 == [(result.exit_code, result.stdout, result.stderr) for result in results]
    assert before.items() <= content(tmp_path).items()  # SQLite may leave its shared memory beside a file


def test_a_server_that_is_damaged_is_not_said_to_be_mended_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(url: str, **_: object) -> SessionSystem:
        raise LogCorruptionError(url, "invalid page in block 0")

    monkeypatch.setattr(SessionSystem, "open", damaged)
    result = run("doctor", "postgresql://db/sessions")

    told = "postgresql://db/sessions: invalid page in block 0\nTry: copy the store before anything else writes to it\n"
    assert (1, f"Error: {told}") == (result.exit_code, result.stderr)


def content(folder: Path) -> dict[str, bytes]:
    """Of every file below it what it holds."""
    return {str(file): file.read_bytes() if file.is_file() else b"" for file in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(("make", "scheme"), [(Path.mkdir, "jsonl"), (Path.touch, "sqlite")])
def test_a_bare_path_is_answered_with_the_url_of_what_is_there(
    tmp_path: Path, make: Callable[[Path], None], scheme: str
) -> None:
    make(tmp_path / "sessions")

    assert f"Try: did you mean {scheme}:///{tmp_path}/sessions?\n" in run("doctor", tmp_path / "sessions").stderr


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"{}\n", b"garbage"])
def test_a_journal_that_does_not_tell_its_key_is_damage_and_hides_no_other(tmp_path: Path, content: bytes) -> None:
    fill(url := f"jsonl:///{tmp_path}/s")
    (segment,) = (tmp_path / "s").glob("pik-0*/*.jsonl")
    segment.write_bytes(content)
    result = run("doctor", url)

    assert 4 == result.exit_code
    assert f"the store\n  damage  {segment}, line 1, byte 0: " in result.stdout
    assert f"{KEY}\n  5 events of 280 bytes" in result.stdout


def test_it_writes_nothing_and_takes_no_lease(store: str) -> None:
    fill(store)
    file = Path(store.removeprefix("sqlite:///"))
    before, content = run("ls", "--json").stdout, file.read_bytes()
    run("doctor")

    assert (before, content) == (run("ls", "--json").stdout, file.read_bytes())
