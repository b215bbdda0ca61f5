"""I5: what a checkpoint is."""

from __future__ import annotations

import pytest

from incarnate.domain.commands import PutCheckpoint
from incarnate.domain.errors import CheckpointError
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import KEY, OTHER, Log, checkpoint
from incarnate.storage.port import Store

__all__ = ["Checkpoints"]


class Checkpoints(Contract):
    """A checkpoint is its writer's, the first of its id, and the newest is that of the highest offset."""

    def test_i5_the_first_write_of_an_id_is_stored_and_the_second_answered_with_its_argument(self, log: Log) -> None:
        log.append(0, "a")
        first, second = checkpoint("cp", 1, sha="one"), checkpoint("cp", 0, sha="two")

        assert [first, second] == [log.put(first), log.put(second)]
        assert first == log.checkpoint("cp")

    def test_i5_the_first_write_of_an_id_holds_against_a_newer_incarnation_too(self, log: Log) -> None:
        log.put(checkpoint("cp", 0, 1))
        log.put(checkpoint("cp", 0, 2))

        assert (2, checkpoint("cp", 0, 1)) == (log.head.fence, log.checkpoint("cp"))

    def test_i5_newest_is_the_highest_offset_then_the_latest_insert(self, log: Log) -> None:
        log.append(0, "ab")
        newest = []
        for name, offset in (("z", 1), ("a", 2), ("m", 2), ("b", 1), ("m", 2)):
            log.put(checkpoint(name, offset))
            newest.append(log.latest)

        assert ["z", "a", "m", "m", "m"] == newest

    def test_i5_a_checkpoint_of_another_incarnation_than_its_writers_is_refused(self, log: Log) -> None:
        with pytest.raises(CheckpointError, match="checkpoint 'cp' is of incarnation 1, its writer of 2"):
            log.do(PutCheckpoint(2, checkpoint("cp", 0, 1)))

        assert None is log.checkpoint("cp")

    def test_i5_an_id_is_one_activations_own(self, store: Store) -> None:
        Log(store).put(checkpoint("cp", 0))

        assert None is Log(store, OTHER).checkpoint("cp")

    def test_checkpoints_are_listed_by_their_offset_and_then_as_they_were_made(self, log: Log) -> None:
        log.append(0, "abcd")
        for name, offset in (("late", 3), ("first", 1), ("second", 1), ("zero", 0), ("above", 4)):
            log.put(checkpoint(name, offset))
        with log.store.snapshot(KEY) as snapshot:
            assert ["zero", "first", "second", "late", "above"] == list(snapshot.checkpoint_ids())

        log.append(3, "x")
        with log.store.snapshot(KEY) as snapshot:
            assert ["zero", "first", "second", "late"] == list(snapshot.checkpoint_ids())

    def test_an_activation_that_nobody_touched_has_no_checkpoints(self, log: Log) -> None:
        with log.store.snapshot(KEY) as snapshot:
            assert [] == list(snapshot.checkpoint_ids())
