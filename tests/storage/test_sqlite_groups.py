"""Group commit on SQLite: who waits for another thread's commit goes on when it is done, not before."""

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from incarnate.domain.commands import Claim
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.domain.errors import OutcomeUnknownError, ReentrantCallError, StoreBusyError
from incarnate.domain.heads import EMPTY_HEAD
from incarnate.domain.keys import ActivationKey
from incarnate.storage.groups import CommitGroup, Entry
from incarnate.storage.sqlite import SqliteStore
from incarnate.storage.sqlite_writer import SqliteWriter
from tests.support.stores import soon


def test_a_write_is_not_acknowledged_before_the_commit_that_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = CommitGroup()
    monkeypatch.setattr("incarnate.storage.sqlite_writer.CommitGroup", lambda: group)
    begun, joined, held, go_on = (threading.Event() for _ in range(4))
    decided: list[str] = []

    def claim(log: StoredLog) -> Decision:
        decided.append(log.key.element_id)
        if len(decided) == 1:
            begun.set()
            joined.wait(10)
        elif len(decided) == 4:
            held.set()
            go_on.wait(10)  # the others of the batch are decided, and nothing is committed
        return decide(log, Claim(), None, 0)

    with SqliteStore(str(tmp_path / "sessions.db")) as store:

        def write(name: str) -> None:
            store.transact(ActivationKey("pik", name), claim, 0)

        threads = [threading.Thread(target=write, args=(name,)) for name in ("first", "leading", "led", "last")]
        threads[0].start()
        begun.wait(10)
        for thread in threads[1:]:
            thread.start()
        while len(group.waiting) < 3:
            threads[0].join(0.001)
        joined.set()
        held.wait(10)
        for thread in threads[1:]:
            thread.join(0.1)  # twice as long as a waiting call takes to look again
        waiting = [thread.is_alive() for thread in threads[1:]]
        go_on.set()
        for thread in threads:
            thread.join(10)

    assert [True, True, True] == waiting


def test_threads_that_write_as_fast_as_they_can_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, disk = SqliteWriter._commit, threading.Event()  # noqa: SLF001 - what a sync takes is the disk's affair

    def slowly(writer: SqliteWriter) -> None:
        disk.wait(0.002)
        commit(writer)

    monkeypatch.setattr(SqliteWriter, "_commit", slowly)
    with SqliteStore(str(tmp_path / "sessions.db")) as store:

        def write(name: str) -> None:
            for _ in range(20):
                store.transact(ActivationKey("pik", name), lambda log: decide(log, Claim(), None, 0), 0)

        threads = [threading.Thread(target=write, args=(str(number),)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        commits = sum(store.group_sizes())

    assert commits < 16 * 20 / 3, "a queue for the lead made groups of 3 out of 64"


@pytest.mark.parametrize("again", ["sweep", "vacuum", "fork", "transact_all"])
def test_what_a_signal_handler_asks_for_in_a_commit_is_refused_and_does_not_become_part_of_it(
    tmp_path: Path, again: str
) -> None:
    key = ActivationKey("pik", "one")
    with SqliteStore(str(tmp_path / "sessions.db")) as store:
        calls: dict[str, Callable[[], object]] = {
            "sweep": lambda: store.sweep(1),
            "vacuum": store.vacuum,
            "fork": lambda: store.fork(key, ActivationKey("pik", "two"), 0, 0),
            "transact_all": lambda: store.transact_all(key, [lambda log: decide(log, Claim(), None, 0)], 0),
        }

        def claim(log: StoredLog) -> Decision:
            with pytest.raises(ReentrantCallError):  # as a handler would at this very line
                calls[again]()
            return decide(log, Claim(), None, 0)

        assert store.transact(key, claim, 0).head.fence == 1
        assert store.head(key).fence == 1


def test_an_interrupt_while_a_batch_is_gathered_leaves_nobody_waiting() -> None:
    group = CommitGroup()
    mine, theirs = (Entry(ActivationKey("pik", name), lambda log: decide(log, Claim(), None, 0), 0) for name in "ab")

    class Interrupted(deque[Entry]):
        def popleft(self) -> Entry:
            if len(self) == 1:  # the second of two: the first is in the batch already
                raise KeyboardInterrupt
            return super().popleft()

    group.waiting = Interrupted([theirs])
    with pytest.raises(KeyboardInterrupt):
        group.settle(mine, lambda _: None)
    group.waiting = deque(group.waiting)
    group.settle(theirs, lambda _: None)

    assert [] == list(group.waiting)
    assert isinstance(theirs.error, OutcomeUnknownError)


def test_those_who_wait_for_a_slow_commit_do_not_queue_for_the_lead() -> None:
    group, disk = CommitGroup(), threading.Event()
    sizes: list[int] = []

    def settle(batch: list[Entry]) -> None:
        sizes.append(len(batch))
        soon(lambda: len(batch) + len(group.waiting) >= sum(thread.is_alive() for thread in threads))
        disk.wait(0.06)  # longer than a waiting call takes to look again
        for entry in batch:
            entry.error = OutcomeUnknownError("of no interest")

    def write() -> None:
        for _ in range(8):
            group.settle(Entry(ActivationKey("pik", "a"), lambda log: decide(log, Claim(), None, 0), 0), settle)

    threads = [threading.Thread(target=write) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(sizes) == 16 * 8
    assert len(sizes) < 16 * 8 / 4


def claimed(key: str) -> Entry:
    return Entry(ActivationKey("pik", key), lambda log: decide(log, Claim(), None, 0), 0)


def test_where_a_later_batch_fails_those_before_it_are_told_what_they_came_to() -> None:
    group, entries = CommitGroup(), [claimed(str(number)) for number in range(1100)]

    def settle(batch: list[Entry]) -> None:
        if entries[512] in batch:
            raise StoreBusyError("on purpose")
        for entry in batch:
            entry.decision = Decision(None, EMPTY_HEAD)

    group.settle_all(entries, settle)

    assert [Decision] * 512 == [type(one.outcome()) for one in entries[:512]]
    assert [StoreBusyError] * 512 == [type(one.outcome()) for one in entries[512:1024]]
    assert [Decision] * 76 == [type(one.outcome()) for one in entries[1024:]]


def test_whoever_waits_while_many_are_settled_is_woken_also_where_that_breaks_off() -> None:
    group, other = CommitGroup(), claimed("other")
    woken: list[Entry] = []

    def settle(_: list[Entry]) -> None:
        group.waiting.append(other)
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Entry, "wake", lambda entry: woken.append(entry))  # noqa: PLW0108 - else it is no method
        with pytest.raises(SystemExit):
            group.settle_all([claimed("mine")], settle)

    assert [other] == woken
    assert not group.busy
