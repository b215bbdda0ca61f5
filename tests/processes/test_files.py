"""What processes do to one file: create it at once, fork while it is open, fill the disk, read it without rights."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from incarnate.storage.sqlite import SqliteStore
from tests.support.agent import KEY
from tests.support.processes import Child
from tests.support.stores import Log, sqlite_url


def test_processes_that_create_one_file_at_once_all_get_the_same_store(tmp_path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(Child("create", tmp_path)) for _ in range(5)]
        for child in children:
            child.expect("ready")
        for number in range(12):
            for child in children:
                child.go_on()
            said = Counter(child.read() for child in children)

            assert Counter(f"claim {incarnation}" for incarnation in range(1, 6)) == said
            assert [f"{number}.db"] == [file.name for file in tmp_path.glob(f"*{number}.db*")]
        for child in children:
            assert [] == child.end()


def test_a_forked_child_is_refused_and_its_end_harms_no_lock_of_its_parent(tmp_path: Path) -> None:
    with Child("fork", sqlite_url(tmp_path)) as parent:
        child = [parent.read() for _ in range(7)]
        parent.expect("child ended")
        with Child("lock", tmp_path / "sessions.db") as other:
            locked = other.end()
        parent.go_on()
        parent.expect("claim 2")
        parent.expect("event")
        with Child("lock", tmp_path / "sessions.db") as other:
            free = other.end()

        assert [] == parent.end()
    uses = ("emit", "restore", "next_turn", "replay", "activations", "version", "claim")
    assert [f"{use} ForkedError" for use in uses] == child
    assert (["StoreBusyError"], ["claim 4"]) == (locked, free)
    with SqliteStore(str(tmp_path / "sessions.db")) as store:
        assert ["e0", "e1"] == [appended.event.id for appended in Log(store, KEY).events]


def test_a_full_disk_loses_nothing_and_leaves_the_store_usable(tmp_path: Path) -> None:
    with Child("limited", tmp_path / "sessions.db") as child:
        *events, error, again, last = child.end()

    assert [f"event {number}" for number in range(len(events))] == events
    assert error.startswith(("error OutcomeUnknownError", "error StoreFileError"))
    assert again in ("again OutcomeUnknownError", "again StoreFileError")
    assert f"event {len(events)}" == last
    with SqliteStore(str(tmp_path / "sessions.db")) as store:
        assert [str(number) for number in range(len(events) + 1)] == [e.event.id for e in Log(store, KEY).events]


@pytest.fixture
def readable() -> Iterator[Path]:
    """A store that anybody may read, in a folder that only its owner may write to."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own are closed to others
        folder = Path(name)
        path = folder / "sessions.db"
        with SqliteStore(str(path)) as store:
            Log(store, KEY).append(0, "abc")
        path.chmod(0o644)
        folder.chmod(0o555)
        yield path
        folder.chmod(0o755)


def test_a_reader_needs_no_right_to_write_to_the_folder(readable: Path) -> None:
    with Child("read_without_rights", readable) as reader:
        said = reader.end()

    assert ["events 3 False", "events 3 False", "ready", "unchanged"] == said[1:]
    assert ["sessions.db"] == [file.name for file in readable.parent.iterdir()]


def test_such_a_reader_is_told_when_the_file_changes_under_it(readable: Path) -> None:
    with Child("read_without_rights", readable) as reader:
        said = [reader.read() for _ in range(4)]
        readable.parent.chmod(0o755)
        with SqliteStore(str(readable)) as store:
            Log(store, KEY).append(3, "d")
            reader.go_on()
            told = reader.end()

    assert "ready" == said[-1]
    assert [f"StoreBusyError {readable} was written to while it was read"] == told


def test_such_a_reader_sees_what_a_writer_writes_meanwhile(readable: Path) -> None:
    readable.parent.chmod(0o755)
    with SqliteStore(str(readable)) as store:
        Log(store, KEY).append(3, "d")
        with Child("read_without_rights", readable) as reader:
            assert ["events 4 False", "events 4 False", "ready", "unchanged"] == reader.end()[1:]
