"""Forks: a new activation from a prefix."""

from __future__ import annotations

import pytest

from incarnate.domain.commands import Claim
from incarnate.domain.errors import KeyTakenError, OffsetError, StaleIncarnationError
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.contract.harness import Capability, Contract, needs
from incarnate.storage.contract.log import KEY, Log, checkpoint
from incarnate.storage.port import Store

__all__ = ["Forks"]

FORK = ActivationKey("pik-1", "fork")


class Forks(Contract):
    """A fork has the prefix, its checkpoints, the fence and the turns; then both go their own ways."""

    @needs(Capability.FORKS)
    def test_a_fork_holds_the_prefix_its_checkpoints_fence_and_turns(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "ab")
        kept = log.put(checkpoint("cp-1", 2))
        log.append(2, "c")
        log.put(checkpoint("cp-2", 3))
        log.next_turn()
        head = store.fork(KEY, FORK, 2, 7)
        forked = Log(store, FORK)

        assert Head(1, 2, 0, 1) == head == forked.head
        assert "ab" == forked.names
        with store.snapshot(FORK) as snapshot:
            assert kept == snapshot.latest_checkpoint()
            assert [] == list(snapshot.rewinds())
        assert "abc" == log.names

    @needs(Capability.FORKS)
    def test_a_fork_is_listed_as_written_when_it_was_made_until_it_is_written_to(self, store: Store) -> None:
        Log(store).append_at(0, "ab", 3)  # events keep their times in a fork
        store.fork(KEY, FORK, 1, 7)
        told = [next(info for info in store.activations() if info.key == FORK)]
        Log(store, FORK).append_at(1, "c", 9)
        told.append(next(info for info in store.activations() if info.key == FORK))

        assert [(7, 7), (7, 9)] == [(info.created_ms, info.updated_ms) for info in told]

    @needs(Capability.FORKS)
    def test_a_fork_and_its_source_go_separate_ways(self, store: Store) -> None:
        log = Log(store)
        log.append(0, "ab")
        store.fork(KEY, FORK, 1, 7)
        forked = Log(store, FORK)
        log.append(0, "x")
        forked.append(1, "y")

        assert ("x", "ay") == (log.names, forked.names)

    @needs(Capability.FORKS)
    @pytest.mark.parametrize("offset", [-1, 3, 2**53])
    def test_a_fork_above_the_head_is_refused(self, store: Store, offset: int) -> None:
        Log(store).append(0, "ab")
        with pytest.raises(OffsetError):
            store.fork(KEY, FORK, offset, 7)

        assert Log(store, FORK).head.fence is None

    @needs(Capability.FORKS)
    def test_a_fork_onto_a_key_that_was_touched_is_refused(self, store: Store) -> None:
        Log(store).append(0, "ab")
        Log(store, FORK).do(Claim())
        for taken in (FORK, KEY):
            with pytest.raises(KeyTakenError):
                store.fork(KEY, taken, 1, 7)

    @needs(Capability.FORKS)
    def test_a_fork_of_nothing_at_0_is_an_empty_activation(self, store: Store) -> None:
        assert Head(None, 0, 0, 0) == store.fork(KEY, FORK, 0, 7)
        with pytest.raises(KeyTakenError):
            store.fork(KEY, FORK, 0, 7)

    @needs(Capability.FORKS)
    def test_i2_a_fork_admits_nobody_below_the_fence_of_its_source(self, store: Store) -> None:
        Log(store).append(0, "ab", incarnation=5)
        store.fork(KEY, FORK, 1, 7)

        with pytest.raises(StaleIncarnationError):
            Log(store, FORK).append(1, "c", incarnation=4)
