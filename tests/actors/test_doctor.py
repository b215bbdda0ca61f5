"""`system.examine`: damage of each kind written into the SQLite file behind the store's back."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from incarnate import ActivationKey, SessionSystem, encode_event, open_store
from incarnate.actors.doctor import examine
from incarnate.domain.diagnosis import Diagnosis
from incarnate.domain.errors import StoreBusyError
from incarnate.domain.heads import Head
from incarnate.storage.port import Store
from tests.support.stores import BACKENDS, Log, checkpoint, note, notes, sqlite_url

KEY, NEXT = ActivationKey("pik", "task"), ActivationKey("pik", "other")


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with BACKENDS[request.param].open(tmp_path) as opened:
        yield opened


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store of two activations: `NEXT`, whole, in front of `KEY`, with a checkpoint and an archive."""
    with open_store(sqlite_url(tmp_path)) as store:
        Log(store, NEXT).append(0, "ab")
        log = Log(store, KEY)
        log.append(0, "abcdefgh")
        log.put(checkpoint("cp", 4))
        log.append(6, "xyz")
    return sqlite_url(tmp_path)


@contextmanager
def file(url: str) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db, db:
        yield db


def damaged(url: str, statement: str) -> Diagnosis:
    """What is found of `KEY` after `statement`, in which `:key` is its number."""
    with file(url) as db:
        ((number,),) = db.execute("SELECT id FROM activation WHERE element_id = 'task'").fetchall()
        assert db.execute(statement, {"key": number}).rowcount
    with SessionSystem.open(url, read_only=True) as system:
        found = {one.key: one for one in system.examine()}
    assert () == found[NEXT].findings
    return found[KEY]


def told(found: Diagnosis) -> list[tuple[str, str, int | None]]:
    return [(finding.severity, finding.kind, finding.offset) for finding in found.findings]


def test_a_whole_store_has_no_findings_and_tells_its_sizes(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "abcdefgh")
    log.put(checkpoint("cp", 4))
    log.append(6, "xyz")
    (found,) = examine(store)

    assert () == found.findings
    assert (9, 1, 1, 2) == (found.events, found.checkpoints, found.rewinds, found.superseded_events)
    size = len(encode_event(note("a")).payload)
    assert (9 * size, 2 * size) == (found.payload_bytes, found.superseded_bytes)
    assert Head(1, 9, 1, 0) == found.head


def test_an_empty_store_has_nothing_to_tell(store: Store) -> None:
    assert [] == list(examine(store))


def test_i1_a_row_that_is_gone_is_a_gap(url: str) -> None:
    found = damaged(url, "DELETE FROM event WHERE activation = :key AND offset IN (2, 3, 5)")

    assert [("damage", "gap", 2), ("damage", "gap", 5)] == told(found)
    assert 6 == found.events


def test_a_gap_of_any_size_is_found_at_once(url: str) -> None:
    found = damaged(url, "UPDATE event SET position = position + 4294960000 WHERE activation = :key AND offset = 8")

    assert [("damage", "gap", 8)] == told(found)
    assert 9 == found.events


@pytest.mark.parametrize(
    "payload",
    ["X'7B'", "X'00'", "'text'", "17", 'CAST(\'{"type":"user"}\' AS BLOB)', "X''", "CAST('{},{}' AS BLOB)"],
)
def test_a_record_that_cannot_be_read_hides_no_other(url: str, payload: str) -> None:
    found = damaged(url, f"UPDATE event SET payload = {payload} WHERE activation = :key AND offset IN (0, 4, 8)")

    assert [("damage", "unreadable", offset) for offset in (0, 4, 8)] == told(found)
    assert 6 == found.events
    assert "incarnate fork pik/task NEW_KEY --at 4 " in found.findings[1].repair


def test_a_torn_record_is_told_with_its_place(url: str) -> None:
    found = damaged(url, "UPDATE event SET payload = substr(payload, 1, 20) WHERE activation = :key AND offset = 3")

    assert [("damage", "unreadable", 3)] == told(found)
    assert "sessions.db, pik/task, offset 3: no event: " in found.findings[0].text


def test_i2_an_older_incarnation_above_a_newer_one_is_found(url: str) -> None:
    found = damaged(url, "UPDATE event SET incarnation = 0 WHERE activation = :key AND offset = 5")

    assert [("damage", "fence", 5)] == told(found)
    assert [(1, 0, 5), (0, 5, 6), (1, 6, 9)] == [(one.incarnation, one.start, one.stop) for one in found.history]


def test_i2_an_incarnation_above_the_fence_is_found(url: str) -> None:
    found = damaged(url, "UPDATE activation SET fence = 0 WHERE id = :key")

    assert [("damage", "fence", 0), ("damage", "fence", 4)] == told(found)  # the events, and the checkpoint


def test_a_checkpoint_above_the_head_is_found(url: str) -> None:
    found = damaged(url, "DELETE FROM event WHERE activation = :key AND offset >= 3")

    assert [("damage", "checkpoint", 4)] == told(found)
    assert "the checkpoint 'cp' lies at 4, above the head at 3" == found.findings[0].text


def test_a_checkpoint_that_cannot_be_read_is_found(url: str) -> None:
    found = damaged(url, "UPDATE checkpoint SET payload = X'7B' WHERE activation = :key")

    assert [("damage", "checkpoint", None)] == told(found)
    assert "the checkpoint 'cp' cannot be read: " in found.findings[0].text


def test_a_checkpoint_of_a_damaged_id_is_found(url: str) -> None:
    found = damaged(url, "UPDATE checkpoint SET id = X'FF' WHERE activation = :key")

    assert ["the checkpoint '\\\\xff' cannot be read: its id is damaged"] == [one.text for one in found.findings]


@pytest.mark.parametrize(
    ("statement", "offset"),
    [
        ("DELETE FROM superseded WHERE activation = :key AND offset = 6", 6),
        ("DELETE FROM superseded WHERE activation = :key AND offset = 7", 7),
        ("UPDATE superseded SET payload = X'7B' WHERE activation = :key AND offset = 7", 7),
        ("DELETE FROM rewind WHERE activation = :key", None),
    ],
)
def test_damage_of_an_archive_is_found(url: str, statement: str, offset: int | None) -> None:
    found = damaged(url, statement)

    assert [("damage", "archive", offset)] == told(found)
    assert 9 == found.events


def test_an_archive_that_was_swept_is_whole(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "ab")
    log.append(1, "c")
    store.sweep(1)
    (found,) = examine(store)

    assert () == found.findings
    assert (1, 1, 0) == (found.rewinds, found.swept_rewinds, found.superseded_events)


def test_a_row_of_an_activation_that_means_nothing_is_found(url: str) -> None:
    found = damaged(url, "UPDATE activation SET fence = 'x' WHERE id = :key")

    assert [("damage", "unreadable", None)] == told(found)


def test_a_key_that_is_none_ends_the_list_and_is_found(url: str) -> None:
    with file(url) as db:
        db.execute("UPDATE activation SET element_id = '' WHERE element_id = 'other'")
    with SessionSystem.open(url, read_only=True) as system:
        (found,) = system.examine()

    assert found.key is None
    assert [("damage", "listing", None)] == told(found)


def test_pages_that_the_database_cannot_read_hide_no_others(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with open_store(url) as store:
        log = Log(store, KEY)
        log.append(0, [note(str(number), "x" * 900) for number in range(2000)])
    with file(url) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = 4096 * (db.execute("PRAGMA page_count").fetchone()[0] // 2)
    with (tmp_path / "sessions.db").open("r+b") as raw:
        raw.seek(page)
        raw.write(b"\xff" * 4096)
    with SessionSystem.open(url, read_only=True) as system:
        broken, found = system.examine()

    assert {("damage", "store")} == {kind[:2] for kind in told(broken)}
    assert {("damage", "unreadable")} == {kind[:2] for kind in told(found)}
    assert 1900 < found.events < 2000


def test_a_log_of_ten_thousand_events_is_examined_in_pages(tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path)) as store:
        log = Log(store, KEY)
        log.append(0, [note(str(number % 9990)) for number in range(10_000)])
        (found,) = examine(store)

    assert (10_000, [("warning", "doubled-id", 9990 + n) for n in range(10)]) == (found.events, told(found))


def test_it_changes_nothing(url: str) -> None:
    with SessionSystem.open(url, read_only=True) as system:
        before = list(system.activations())
        list(system.examine())

        assert before == list(system.activations())


def test_a_log_that_is_rewound_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(sqlite_url(tmp_path)) as store:
        log = Log(store, KEY)
        log.append(0, notes("abc"))
        snapshot, pages = store.snapshot, 0

        def rewinding(key: ActivationKey) -> object:
            nonlocal pages
            pages += 1
            if pages == 2:  # between the head and the first page
                log.append(1, "x")
            return snapshot(key)

        monkeypatch.setattr(store, "snapshot", rewinding)
        (found,) = examine(store)

    assert () == found.findings
    assert (2, 1) == (found.events, found.rewinds)


def test_a_log_that_is_rewound_each_time_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(sqlite_url(tmp_path)) as store:
        log = Log(store, KEY)
        log.append(0, "abc")
        snapshot = store.snapshot

        def rewinding(key: ActivationKey) -> object:
            log.append(1, "x")
            return snapshot(key)

        monkeypatch.setattr(store, "snapshot", rewinding)
        (found,) = examine(store)

    assert [("warning", "moving", None)] == told(found)


def test_a_store_that_is_busy_is_no_damage(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(url) as store:

        def busy(_: object) -> None:
            raise StoreBusyError("locked")

        monkeypatch.setattr(store, "snapshot", busy)
        with pytest.raises(StoreBusyError):
            list(examine(store))
