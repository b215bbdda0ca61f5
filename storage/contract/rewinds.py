"""I4: a rewind is one step."""

from __future__ import annotations

from incarnate.domain.heads import Head
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import OTHER, Log, checkpoint
from incarnate.storage.port import Store

__all__ = ["Rewinds"]


class Rewinds(Contract):
    """A rewind supersedes the tail, prunes the checkpoints above its cut and raises the generation."""

    def test_i4_a_rewind_supersedes_the_tail_and_raises_the_generation(self, log: Log) -> None:
        log.append(0, "abcd")
        log.append(2, "x")

        assert (Head(1, 3, 1, 0), "abx") == (log.head, log.names)

    def test_i4_a_rewind_prunes_the_checkpoints_above_the_cut_and_keeps_those_at_it(self, log: Log) -> None:
        log.append(0, "abcd")
        for offset in range(5):
            log.put(checkpoint(f"cp-{offset}", offset))
        log.append(2, "xyz")

        assert [True, True, True, False, False] == [log.checkpoint(f"cp-{n}") is not None for n in range(5)]
        assert "cp-2" == log.latest

    def test_i4_the_id_of_a_pruned_checkpoint_is_free_again(self, log: Log) -> None:
        log.append(0, "abcd")
        log.put(checkpoint("cp", 4))
        log.append(1, "x")
        log.put(checkpoint("cp", 2, sha="new"))

        assert checkpoint("cp", 2, sha="new") == log.checkpoint("cp")

    def test_i4_a_rewind_of_one_log_leaves_the_other_alone(self, store: Store) -> None:
        log, other = Log(store), Log(store, OTHER)
        other.append(0, "abc")
        other.put(checkpoint("cp", 3))
        log.append(0, "abc")
        log.append(0, "x")

        assert (Head(1, 3, 0, 0), "abc", "cp", None) == (other.head, other.names, other.latest, other.lowest_cut(0))

    def test_i4_each_rewind_is_remembered_by_its_cut(self, log: Log) -> None:
        log.append(0, "abcdef")
        for cut in (4, 1, 2, 0):
            log.append(cut, "xyz")

        assert [0, 0, 0, 0, None] == [log.lowest_cut(generation) for generation in range(5)]
        log.append(2, "z")
        assert [0, 2, None] == [log.lowest_cut(generation) for generation in (3, 4, 5)]

    def test_i4_what_was_superseded_is_never_replayed(self, log: Log) -> None:
        log.append(0, "abcd")
        log.append(1, "x")
        log.append(2, "y")

        assert "axy" == log.names
