"""A store that changes under the server: made anew, put back from a backup, damaged, swept."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from incarnate import ActivationKey, AppendMany, Session, SessionSystem, UserMessage
from tests.support.studio_app import Copy, address
from tests.support.studio_server import Served, events_of

KEY = ActivationKey("pik-1", "implement")
OTHER = ActivationKey("pik-2", "implement")


def note(session: Session, text: str) -> None:
    session.emit(UserMessage(id="e", parent_id=None, text=text))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/sessions.db"


def test_a_store_that_was_removed_and_made_anew_is_another_log(tmp_path: Path, url: str) -> None:
    def write(text: str) -> None:
        with SessionSystem.open(url) as system:
            note(system.claim(KEY), text)

    write("the old one")
    with Served(url) as served, events_of(served.url, address(KEY, "/changes?view=events")) as events:
        copy = Copy()
        copy.take(next(events))
        for file in tmp_path.glob("sessions.db*"):
            file.unlink()
        trouble = next(events)
        assert ("trouble", "store-unavailable") == (trouble.name, trouble.data["error"]["kind"])
        assert 503 == served.client.get(address(KEY)).status_code
        write("the new one")
        copy.take(next(event for event in events if event.name == "change"))
        assert ["the new one"] == [item["text"] for item in copy.items]
        assert 200 == served.client.get(address(KEY)).status_code


def test_a_folder_that_was_removed_and_put_back_is_followed_on(tmp_path: Path) -> None:
    folder, backup = tmp_path / "store", tmp_path / "backup"
    with SessionSystem.open(f"jsonl:///{folder}") as system:
        note(system.claim(KEY), "before")
    shutil.copytree(folder, backup)
    url = f"jsonl:///{folder}"
    with Served(url) as served, events_of(served.url, address(KEY, "/changes?view=events")) as events:
        copy = Copy()
        copy.take(next(events))
        shutil.rmtree(folder)
        trouble = next(events)
        assert ("trouble", "store-unavailable") == (trouble.name, trouble.data["error"]["kind"])
        assert 503 == served.client.get("/api/sessions").status_code
        shutil.copytree(backup, folder)
        with SessionSystem.open(url) as system:
            note(system.claim(KEY), "after")
        copy.take(next(event for event in events if event.name == "change"))
        assert ["before", "after"] == [item["text"] for item in copy.items]


def put_back(backup: Path, store: Path) -> None:
    for file in store.parent.glob(f"{store.name}*"):
        file.unlink()
    shutil.copy(backup, store)


def test_a_backup_that_was_put_back_is_another_log_though_it_began_the_same(tmp_path: Path, url: str) -> None:
    backup = tmp_path / "backup.db"

    def write(path: Path, text: str) -> None:
        with SessionSystem.open(f"sqlite:///{path}") as system:
            note(system.claim(KEY), text)

    write(backup, "how it began")
    store = Path(shutil.copy(backup, tmp_path / "sessions.db"))
    write(store, "how it went on")
    write(backup, "how the backup went on")
    copies = {view: Copy() for view in ("events", "studio", "model")}
    with Served(url) as served:
        for view, copy in copies.items():
            with events_of(served.url, address(KEY, f"/changes?view={view}")) as events:
                copy.take(next(events))
        assert [] == served.json(address(KEY, "/find?q=backup"))["offsets"]
        put_back(backup, store)
        # Whoever asks first finds out, without anybody who follows.
        assert [1] == served.json(address(KEY, "/find?q=backup"))["offsets"]
        for view, copy in copies.items():
            with events_of(served.url, address(KEY, f"/changes?view={view}"), copy.headers) as events:
                copy.take(next(events))
            assert served.json(address(KEY, f"/messages?view={view}"))["items"] == copy.items
            assert "how the backup went on" in json.dumps(copy.items)


def test_a_backup_that_was_rewound_since_is_another_log_as_well(tmp_path: Path, url: str) -> None:
    backup = tmp_path / "backup.db"

    def write(path: Path, offset: int, *texts: str) -> None:
        with SessionSystem.open(f"sqlite:///{path}") as system:
            given = tuple(UserMessage(id="e", parent_id=None, text=text) for text in texts)
            system.lease(KEY, 1)
            system.activation(KEY).ask(AppendMany(1, offset, given))

    write(backup, 0, "how it began")
    store = Path(shutil.copy(backup, tmp_path / "sessions.db"))
    write(store, 1, "how it", "went on", "here")
    write(backup, 1, "otherwise", "in the backup", "before", "the rewind")
    write(backup, 3, "after it")
    copy = Copy()
    with Served(url) as served:
        with events_of(served.url, address(KEY, "/changes?view=events")) as events:
            copy.take(next(events))
        assert [] == served.json(address(KEY, "/find?q=otherwise"))["offsets"]
        put_back(backup, store)
        assert [1] == served.json(address(KEY, "/find?q=otherwise"))["offsets"]
        with events_of(served.url, address(KEY, "/changes?view=events"), copy.headers) as events:
            copy.take(next(events))
    assert ["how it began", "otherwise", "in the backup", "after it"] == [item["text"] for item in copy.items]


def test_after_a_rewind_a_follower_keeps_what_stands_and_a_search_reads_no_more_than_the_rest(url: str) -> None:
    with SessionSystem.open(url) as system, Served(url) as served:
        session = system.claim(KEY)
        for number in range(4):
            note(session, f"{number}")
        copy = Copy()
        with events_of(served.url, address(KEY, "/changes?view=events")) as events:
            copy.take(next(events))
        assert [0, 1, 2, 3] == served.json(address(KEY, "/find?kinds=user"))["offsets"]
        system.activation(KEY).ask(AppendMany(1, 2, (UserMessage(id="e", parent_id=None, text="again"),)))
        with events_of(served.url, address(KEY, "/changes?view=events"), copy.headers) as events:
            change = next(events)
        assert (2, 1) == (change.data["keep"], len(change.data["items"]))
        assert [0, 1, 2] == served.json(address(KEY, "/find?kinds=user"))["offsets"]


def test_a_log_with_a_gap_is_damaged_and_not_gone(tmp_path: Path, url: str) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        for number in range(3):
            note(session, f"{number}")
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as db, db:
        db.execute("DELETE FROM event WHERE offset = 1")
    with Served(url) as served:
        for rest in ("/stats", "/messages?view=model", "/messages?view=events", "/timeline", "/find?q=0"):
            answer = served.client.get(address(KEY, rest))
            assert (500, "log-damaged") == (answer.status_code, answer.json()["error"]["kind"])
        for view in ("model", "studio", "events"):
            with events_of(served.url, address(KEY, f"/changes?view={view}")) as events:
                assert ("trouble", "log-damaged") == ((told := next(events)).name, told.data["error"]["kind"])


@pytest.mark.parametrize("missing", ["offset = 1", "offset = 2", "offset >= 1"])
def test_a_superseded_tail_with_a_gap_is_damaged_and_not_swept(tmp_path: Path, url: str, missing: str) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        for number in range(4):
            note(session, f"{number}")
        system.activation(KEY).ask(AppendMany(1, 1, (UserMessage(id="e", parent_id=None, text="again"),)))
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as db, db:
        db.execute(f"DELETE FROM superseded WHERE {missing}")
    with Served(url) as served:
        answer = served.client.get(address(KEY, "/superseded/1"))
        assert (500, "log-damaged") == (answer.status_code, answer.json()["error"]["kind"])


def test_a_session_that_is_damaged_takes_no_other_from_the_list(tmp_path: Path, url: str) -> None:
    with SessionSystem.open(url) as system:
        for key in (KEY, OTHER):
            note(system.claim(key), "hi")
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as db, db:
        db.execute("UPDATE event SET payload = x'7b' WHERE activation = 1")
    with Served(url) as served:
        rows = {row["key"]: row["lastEvent"] for row in served.json("/api/sessions")["sessions"]}
        assert None is rows[str(KEY)]
        assert "hi" == rows[str(OTHER)]["summary"]
        assert 2 == served.json("/api/sessions?state=live")["total"]


def test_a_session_that_was_swept_is_gone(url: str) -> None:
    with SessionSystem.open(url) as system:
        note(system.claim(KEY), "hi")
        note(system.claim(OTHER), "hi")
        with Served(url) as served:
            with events_of(served.url, address(KEY, "/changes?view=events")) as events:
                next(events)
                system.retire(KEY)
                system.sweep(timedelta(seconds=-1))
                assert "gone" == next(event for event in events if event.name != "change").name
            assert 404 == served.client.get(address(KEY)).status_code
            assert [str(OTHER)] == [row["key"] for row in served.json("/api/sessions")["sessions"]]


@pytest.mark.parametrize("part", ["version", "moment"])
def test_a_fault_of_the_server_is_told_and_those_who_follow_hear_of_what_comes_after(
    url: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = iter([RuntimeError("can't start new thread")])

    def work(*arguments: object) -> object:
        for fault in faults:
            raise fault
        return real(*arguments)

    with SessionSystem.open(url) as system, Served(url) as served:
        session = system.claim(KEY)
        note(session, "before")
        real = getattr(served.archive, part)
        monkeypatch.setattr(served.archive, part, work)
        with events_of(served.url, address(KEY, "/changes?view=events")) as events:
            first = next(events)
            assert first.name == ("change" if part == "version" else "trouble")
            note(session, "after")
            change = next(event for event in events if event.name == "change" and event.data["total"] > 1)
    assert "after" == change.data["items"][-1]["text"]
