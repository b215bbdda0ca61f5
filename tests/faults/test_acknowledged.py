"""Nobody is answered before the commit that answers for it is done, however long another thread takes over it."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path

import pytest

from incarnate.domain.errors import OutcomeUnknownError
from incarnate.storage.sqlite import SqliteStore
from incarnate.storage.sqlite_writer import SqliteWriter
from tests.support.stores import KEY, OTHER, Log, soon

LONG_ENOUGH = 0.3
"""Several times what a waiting call takes to look again by itself."""


class Held:
    """Commits of a store that are held back, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.interrupt = False
        commit = SqliteWriter._commit  # noqa: SLF001

        def held(writer: SqliteWriter) -> None:
            self.begun.release()
            self.go_on.acquire()
            if self.interrupt:
                raise KeyboardInterrupt
            commit(writer)

        monkeypatch.setattr(SqliteWriter, "_commit", held)


def two_in_one_commit(store: SqliteStore, held: Held, pool: ThreadPoolExecutor) -> set[Future[object]]:
    """Two appends that wait for the commit of a third and are then committed together; that commit is held back."""
    first = pool.submit(Log(store, OTHER).claim)
    held.begun.acquire()
    waiting = vars(vars(vars(store)["_writer"])["_group"])["waiting"]
    both: set[Future[object]] = {pool.submit(Log(store, KEY).claim), pool.submit(Log(store, OTHER).claim)}
    assert soon(lambda: len(waiting) == 2)
    held.go_on.release()
    first.result()
    held.begun.acquire()
    return both


def test_i6_a_call_is_not_answered_before_the_commit_that_another_thread_does_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(str(tmp_path / "sessions.db")) as store, ThreadPoolExecutor(3) as pool:
        held = Held(monkeypatch)
        both = two_in_one_commit(store, held, pool)
        answered = wait_for(both, LONG_ENOUGH).done
        held.go_on.release()

        assert set() == answered
        assert both == wait_for(both, 5).done


def test_i6_a_call_whose_commit_was_interrupted_in_another_thread_is_told_that_its_outcome_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(str(tmp_path / "sessions.db")) as store, ThreadPoolExecutor(3) as pool:
        held = Held(monkeypatch)
        both = two_in_one_commit(store, held, pool)
        held.interrupt = True
        held.go_on.release()
        wait_for(both, 5)

        assert {KeyboardInterrupt, OutcomeUnknownError} == {type(one.exception()) for one in both}
        assert Log(store, KEY).head.fence is None
