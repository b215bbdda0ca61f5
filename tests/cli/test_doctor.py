"""`incarnate doctor`: what it prints, and its exit code by the worst finding."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from incarnate.actors.system import SessionSystem
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


def test_a_store_that_cannot_be_read_is_1(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 100)

    assert 1 == run("doctor", f"sqlite:///{tmp_path}/nope.db").exit_code
    assert 1 == run("doctor", f"sqlite:///{tmp_path}/x.db").exit_code


def test_it_writes_nothing_and_takes_no_lease(store: str) -> None:
    fill(store)
    file = Path(store.removeprefix("sqlite:///"))
    before, content = run("ls", "--json").stdout, file.read_bytes()
    run("doctor")

    assert (before, content) == (run("ls", "--json").stdout, file.read_bytes())
