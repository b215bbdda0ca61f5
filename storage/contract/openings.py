"""One store opened again, and opened several times at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from incarnate.domain.commands import Append
from incarnate.domain.errors import HeadMovedError, StaleIncarnationError
from incarnate.domain.events import Opaque
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.contract.harness import Capability, Contract, Open, needs
from incarnate.storage.contract.log import KEY, Log, checkpoint, decided, note, soon
from incarnate.storage.contract.payloads import NASTY, OPAQUE

__all__ = ["Openings"]

SAW_AB = Append(1, 2, note("c"), (0, 2))
THEIRS: dict[str, tuple[Callable[[Log], object], Head]] = {
    "an append": (lambda log: log.append(2, "x"), Head(1, 3, 0, 0)),
    "a rewind to the same length": (lambda log: log.append(1, "x"), Head(1, 2, 1, 0)),
    "a rewind to less": (lambda log: log.append(0, "x"), Head(1, 1, 1, 0)),
    "a turn number": (Log.next_turn, Head(1, 2, 0, 1)),
    "nothing": (lambda log: log.head, Head(1, 2, 0, 0)),
}


def closed(log: Log) -> None:
    log.store.close()


class Openings(Contract):
    """What was acknowledged is there for whoever opens the store next, and for whoever has it open already."""

    @needs(Capability.DURABLE)
    def test_i6_what_was_acknowledged_is_there_after_a_reopen(self, open_again: Open) -> None:
        log = Log(open_again())
        log.append(0, "abcd")
        log.put(checkpoint("cp", 1))
        log.append(2, "x")
        log.append(3, [Opaque("hologram", "h", None, OPAQUE)])
        before = log.everything()
        closed(log)

        assert before == Log(open_again()).everything()

    @needs(Capability.DURABLE)
    def test_i2_the_fence_of_an_empty_log_survives_a_reopen(self, open_again: Open) -> None:
        log = Log(open_again())
        log.lease(5)
        closed(log)

        log = Log(open_again())
        with pytest.raises(StaleIncarnationError):
            log.lease(4)
        assert Head(5, 0, 0, 0) == log.head

    @needs(Capability.DURABLE)
    def test_i4_what_was_superseded_is_not_replayed_after_a_reopen(self, open_again: Open) -> None:
        log = Log(open_again())
        log.append(0, "abcd")
        log.append(1, "x")
        log.append(2, "y")
        closed(log)

        assert ("axy", 1) == (Log(open_again()).names, Log(open_again()).lowest_cut(0))

    @needs(Capability.DURABLE)
    def test_i8_a_turn_number_is_never_used_again_after_a_reopen(self, open_again: Open) -> None:
        log = Log(open_again())
        log.next_turn()
        closed(log)

        assert 1 == Log(open_again()).next_turn(2)

    @needs(Capability.DURABLE)
    def test_i9_keys_and_checkpoint_ids_survive_a_reopen(self, open_again: Open) -> None:
        name = NASTY.replace("\0", "")
        key = ActivationKey(name, f"/%2F{name}")
        log = Log(open_again(), key)
        log.put(checkpoint(NASTY, 0, detail={NASTY: NASTY}))
        closed(log)
        again = open_again()

        assert [key] == [info.key for info in again.activations()]
        assert checkpoint(NASTY, 0, detail={NASTY: NASTY}) == Log(again, key).checkpoint(NASTY)

    @needs(Capability.SHARED)
    def test_i2_a_stale_writer_is_refused_by_the_write_itself(self, open_again: Open) -> None:
        mine, theirs = Log(open_again()), Log(open_again())
        mine.append(0, "a")
        theirs.lease(2)

        with pytest.raises(StaleIncarnationError) as refusal:
            mine.append(1, "b")
        assert 2 == refusal.value.current

    @needs(Capability.SHARED)
    @pytest.mark.parametrize(("theirs", "found"), THEIRS.values(), ids=THEIRS)
    def test_a_write_is_decided_on_what_another_opening_has_left(
        self, open_again: Open, theirs: Callable[[Log], object], found: Head
    ) -> None:
        mine, other = Log(open_again()), Log(open_again())
        mine.append(0, "a")
        mine.append(1, "b")
        theirs(other)
        after = Head(1, found.next_offset + 1, found.generation, found.next_turn)

        assert found.expected == (0, 2) or isinstance(decided(mine.store, KEY, SAW_AB).error, HeadMovedError)
        assert after == decided(mine.store, KEY, Append(1, found.next_offset, note("c"), found.expected)).head
        assert after == mine.head == other.head

    @needs(Capability.SHARED)
    def test_an_opening_reads_what_another_has_just_written(self, open_again: Open) -> None:
        mine, theirs = Log(open_again()), Log(open_again())
        theirs.append(0, "abc")
        theirs.put(checkpoint("cp", 3))

        assert theirs.everything() == mine.everything()
        assert list(mine.store.keys()) == [KEY]

    @needs(Capability.SHARED)
    def test_i8_two_openings_never_hand_out_the_same_turn(self, open_again: Open) -> None:
        logs = [Log(open_again()), Log(open_again())] * 3

        assert [0, 1, 2, 3, 4, 5] == [log.next_turn() for log in logs]

    @needs(Capability.SHARED)
    def test_the_version_moves_when_somebody_else_has_written(self, open_again: Open) -> None:
        mine, theirs = open_again(), open_again()
        before = mine.version()
        assert before == mine.version()

        Log(theirs).claim()

        assert soon(lambda: before != mine.version()), "a server's word may be on its way, but not for ever"
