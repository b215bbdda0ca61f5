"""Threads on one opening."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from incarnate.domain.errors import HeadMovedError
from incarnate.domain.keys import ActivationKey
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import KEY, Log, note
from incarnate.storage.port import Store

__all__ = ["Threads"]


@contextmanager
def switching_often() -> Generator[None]:
    """Threads take turns more often: one that comes back from the disk does not wait for those that compute."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(interval / 50)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


class Threads(Contract):
    """Threads neither lose, double nor interleave what they write, and readers see whole steps."""

    def test_threads_on_one_key_never_leave_a_gap(self, log: Log) -> None:
        def append(name: str) -> int:
            for tries in itertools.count():
                head = log.head
                try:
                    log.append(head.next_offset, [note(name)], expected=head.expected)
                except HeadMovedError:
                    continue
                return tries
            raise AssertionError

        names = [f"{number:03}" for number in range(120)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(append, names))

        assert list(range(120)) == log.offsets
        assert names == sorted(appended.event.id for appended in log.events)

    def test_threads_on_different_keys_do_not_disturb_each_other(self, store: Store) -> None:
        start = threading.Barrier(4)

        def write(number: int) -> list[int]:
            log = Log(store, ActivationKey("pik", str(number)))
            start.wait()
            for offset in range(50):
                log.append_one(offset, f"{number}-{offset}")
            return log.offsets

        with ThreadPoolExecutor(4) as pool:
            written = list(pool.map(write, range(4)))

        assert [list(range(50))] * 4 == written

    def test_readers_never_see_half_a_rewind(self, log: Log) -> None:
        log.append(0, "ab")
        done = threading.Event()

        def read() -> set[str]:
            seen = set()
            while not done.is_set():
                with log.store.snapshot(KEY) as snapshot:
                    seen.add("".join(e.event.id for e in snapshot.appended(0, snapshot.head.next_offset)))
            return seen

        with switching_often(), ThreadPoolExecutor() as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for _ in range(60):
                    log.append(0, "xyz")
                    log.append(0, "ab")
            finally:
                done.set()
            seen = set[str]().union(*(reader.result() for reader in readers))

        assert seen <= {"ab", "xyz"}

    def test_the_batches_of_two_threads_never_interleave(self, log: Log) -> None:
        start = threading.Barrier(2)

        def write(writer: str) -> None:
            start.wait()
            for number in range(30):
                batch = [note(f"{writer}{number}-{part}") for part in range(5)]
                while True:
                    head = log.head
                    try:
                        log.append(head.next_offset, batch, expected=head.expected)
                    except HeadMovedError:
                        continue
                    break

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, "ab"))
        batches = [list(batch) for _, batch in itertools.groupby(log.events, lambda one: one.event.id.split("-")[0])]

        assert [[int(one.event.id.split("-")[1]) for one in batch] for batch in batches] == [[0, 1, 2, 3, 4]] * 60
        assert [5 * number for number in range(60)] == [batch[0].offset for batch in batches]

    def test_each_of_many_claims_at_once_takes_an_incarnation_of_its_own(self, store: Store) -> None:
        start = threading.Barrier(4)

        def claim(_: int) -> list[int | None]:
            start.wait()
            return [Log(store).claim().fence for _ in range(25)]

        with ThreadPoolExecutor(4) as pool:
            taken = [fence for fences in pool.map(claim, range(4)) for fence in fences]

        assert set(range(1, 101)) == set(taken)
