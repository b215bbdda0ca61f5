"""What a reader sees: pages, listings, and snapshots that stand still."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from incarnate.domain.commands import Append, AppendMany, Claim, NextTurn
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import KEY, OTHER, Log, checkpoint, note, notes, perform
from incarnate.storage.port import ActivationInfo, Store

__all__ = ["Reading"]


class Reading(Contract):
    """A snapshot is of one moment, a listing in the order of the keys."""

    def test_an_activation_that_nobody_touched_reads_as_empty(self, log: Log) -> None:
        assert log.everything() == (EMPTY_HEAD, [], None, None)
        assert [] == list(log.store.activations())

    def test_the_head_is_that_of_a_snapshot(self, log: Log) -> None:
        heads = [log.store.head(KEY)]
        for offset in (0, 1, 0):
            log.append(offset, "ab", incarnation=2)
            log.next_turn(2)
            with log.store.snapshot(KEY) as snapshot:
                assert snapshot.head == log.store.head(KEY)
            heads.append(log.store.head(KEY))

        assert [EMPTY_HEAD, Head(2, 2, 0, 1), Head(2, 3, 1, 2), Head(2, 2, 2, 3)] == heads
        assert EMPTY_HEAD == log.store.head(OTHER)

    def test_a_refused_first_command_touches_nothing(self, log: Log) -> None:
        log.refused(Append(2**53, 0, note("a")))

        assert [] == list(log.store.activations())

    def test_activations_are_listed_in_the_order_of_their_keys(self, store: Store) -> None:
        names = [
            f"{prefix}{number}" for number in range(25) for prefix in ("", "Z", "a/", "%", "é", "\U0001f9e0", "\uffff")
        ]
        keys = [
            ActivationKey(first, second) for first in names for second in ("z", "A", "9")
        ]  # no page of 500 ends with a first part
        for key in reversed(keys):
            perform(store, key, Claim())

        assert len(set(keys)) > 500
        assert sorted(keys) == [info.key for info in store.activations()]

    def test_a_listing_tells_head_and_times(self, store: Store) -> None:
        perform(store, KEY, Claim(), now_ms=10)
        perform(store, KEY, AppendMany(1, 0, notes("ab")), now_ms=20)
        perform(store, KEY, AppendMany(1, 1, notes("x")), now_ms=15)
        perform(store, OTHER, NextTurn(4), now_ms=30)

        assert [
            ActivationInfo(KEY, Head(1, 2, 1, 0), 10, 15),
            ActivationInfo(OTHER, Head(4, 0, 0, 1), 30, 30),
        ] == list(store.activations())

    @pytest.mark.parametrize(
        ("start", "stop", "max_bytes", "names"),
        [
            (0, 6, 10**9, "abcdef"),
            (2, 4, 10**9, "cd"),
            (4, 99, 10**9, "ef"),
            (6, 9, 10**9, ""),
            (3, 3, 10**9, ""),
            (0, 6, 2500, "abc"),
            (1, 6, 1, "b"),
            (1, 6, 0, "b"),
            (2**80, 2**81, 1, ""),
            (0, 2**81, 1, "a"),
        ],
    )
    def test_a_page_holds_its_range_up_to_the_event_that_reaches_its_bytes(
        self, log: Log, start: int, stop: int, max_bytes: int, names: str
    ) -> None:
        log.append(0, [note(name, "x" * 1000) for name in "abcdef"])

        with log.store.snapshot(KEY) as snapshot:
            page = snapshot.page(start, stop, max_bytes)

        assert names == "".join(appended.event.id for appended in page)

    def test_a_snapshot_stands_still_while_a_writer_goes_on(self, log: Log) -> None:
        log.append(0, "abc")
        log.put(checkpoint("old", 3))

        with log.store.snapshot(KEY) as snapshot, ThreadPoolExecutor() as pool:
            pool.submit(log.append, 1, "xyz").result()
            pool.submit(log.put, checkpoint("new", 4)).result()
            seen = (snapshot.head, "".join(e.event.id for e in snapshot.appended(0, 9)), snapshot.lowest_cut(0))
            assert (Head(1, 3, 0, 0), "abc", None) == seen
            assert (checkpoint("old", 3), None) == (snapshot.latest_checkpoint(), snapshot.checkpoint("new"))

        assert ("axyz", "new") == (log.names, log.latest)

    def test_a_snapshot_of_an_untouched_activation_stays_empty(self, log: Log) -> None:
        with log.store.snapshot(KEY) as snapshot:
            log.append(0, "abc")

            assert (snapshot.head, list(snapshot.appended(0, 3))) == (EMPTY_HEAD, [])

    def test_the_keys_are_those_of_the_listing(self, store: Store) -> None:
        for key in (KEY, OTHER):
            perform(store, key, Claim())

        assert sorted([KEY, OTHER]) == list(store.keys()) == [info.key for info in store.activations()]
