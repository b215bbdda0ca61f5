"""`decide` by itself: no store, no fixture, plain values."""

from collections.abc import Sequence
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    Append,
    AppendedEvent,
    AppendMany,
    Checkpoint,
    CheckpointError,
    Claim,
    Head,
    HeadMovedError,
    Lease,
    NextTurn,
    OffsetError,
    OutOfRangeError,
    PutCheckpoint,
    StaleIncarnationError,
    TurnStart,
    UnencodableEventError,
    UserMessage,
)
from incarnate.domain.codec import StoredEvent, decode_stored, encode_event
from incarnate.domain.commands import WriteCommand
from incarnate.domain.decisions import Decision, decide, encode_command, evolve
from incarnate.domain.heads import EMPTY_HEAD

KEY = ActivationKey("pik", "task")


class Log:
    """A log given as values."""

    def __init__(
        self, head: Head, rows: Sequence[StoredEvent] = (), checkpoints: Sequence[Checkpoint] = (), cut: int = 1
    ) -> None:
        self.key = KEY
        self._cut = cut
        self.head = head
        self._rows = {row.offset: row for row in rows}
        self._checkpoints = {checkpoint.id: checkpoint for checkpoint in checkpoints}

    def events(self, start: int, stop: int) -> list[StoredEvent]:
        return [self._rows[offset] for offset in range(start, stop)]

    def appended(self, start: int, stop: int) -> list[AppendedEvent]:
        return decode_stored(self.events(start, stop), "here")

    def lowest_cut(self, generation: int) -> int | None:
        return self._cut if generation < self.head.generation else None

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        return self._checkpoints.get(checkpoint_id)


def said(text: str) -> UserMessage:
    return UserMessage(id=text, parent_id=None, text=text)


def row(offset: int, text: str, incarnation: int = 1) -> StoredEvent:
    return StoredEvent(offset, incarnation, 5, encode_event(said(text)).payload)


def checkpoint(offset: int, incarnation: int = 1, checkpoint_id: str = "cp") -> Checkpoint:
    return Checkpoint(
        id=checkpoint_id, offset=offset, commit_sha="s", effect_ledger=(), incarnation=incarnation, at="t"
    )


def decided(head: Head, command: WriteCommand, **log: Any) -> Decision:
    return decide(Log(head, **log), command, encode_command(command), 7)


STANDING = Head(1, 3, 0, 0)


def test_a_claim_on_an_unseen_key_gives_1_and_reaches_the_disk() -> None:
    decision = decided(EMPTY_HEAD, Claim())

    assert Head(1, 0, 0, 0) == decision.reply == decision.head
    assert decision.change is not None
    assert decision.change.durable


def test_a_claim_is_one_above_the_fence() -> None:
    assert decided(Head(41, 0, 0, 0), Claim()).head.fence == 42


def test_a_claim_above_the_largest_incarnation_is_refused() -> None:
    decision = decided(Head(2**53 - 1, 0, 0, 0), Claim())

    assert isinstance(decision.error, OutOfRangeError)
    assert decision.error.hint.startswith("give an int in that range")
    assert decision.change is None


def test_i2_a_lease_below_the_fence_is_stale_and_one_at_it_changes_nothing() -> None:
    stale = decided(Head(5, 0, 0, 0), Lease(4))
    renewed = decided(Head(5, 0, 0, 0), Lease(5))

    assert isinstance(stale.error, StaleIncarnationError)
    assert (4, 5, KEY) == (stale.error.incarnation, stale.error.current, stale.error.key)
    assert (None, None) == (stale.change, renewed.change)


@pytest.mark.parametrize("incarnation", [-1, 2**53, True, 1.0, "1", None])
def test_an_incarnation_out_of_range_is_refused(incarnation: Any) -> None:
    assert isinstance(decided(EMPTY_HEAD, Lease(incarnation)).error, OutOfRangeError)


@pytest.mark.parametrize("offset", [-1, 2**53, True, 0.0, None])
def test_an_offset_out_of_range_is_refused(offset: Any) -> None:
    assert isinstance(decided(STANDING, Append(1, offset, said("x"))).error, OutOfRangeError)


def test_i1_an_append_above_the_head_is_refused() -> None:
    decision = decided(STANDING, Append(1, 4, said("x")))

    assert isinstance(decision.error, OffsetError)
    assert isinstance(decision.error, ValueError)
    assert decision.change is None


def test_i3_a_newer_incarnation_takes_the_fence_even_if_it_is_refused() -> None:
    decision = decided(STANDING, Append(2, 4, said("x")))

    assert isinstance(decision.error, OffsetError)
    assert Head(2, 3, 0, 0) == decision.head


def test_i2_the_fence_is_checked_before_a_value_that_cannot_be_stored() -> None:
    bad = UserMessage(id="x", parent_id=None, text="\ud800")

    assert isinstance(decided(Head(5, 0, 0, 0), Append(4, 0, bad)).error, StaleIncarnationError)
    assert isinstance(decided(Head(5, 0, 0, 0), Append(5, 0, bad)).error, UnencodableEventError)


def test_an_append_at_the_head_extends() -> None:
    decision = decided(STANDING, Append(1, 3, said("x")))

    assert AppendedEvent(3, 1, 7, said("x")) == decision.reply
    assert Head(1, 4, 0, 0) == decision.head
    assert decision.change is not None
    assert (None, False) == (decision.change.cut, decision.change.durable)


def test_i4_an_append_below_the_head_is_a_rewind() -> None:
    decision = decided(STANDING, Append(1, 1, said("x")))

    assert decision.change is not None
    assert decision.change.cut == 1
    assert Head(1, 2, 1, 0) == decision.head


def test_an_empty_batch_below_the_head_rewinds_nothing() -> None:
    decision = decided(STANDING, AppendMany(1, 1, ()))

    assert ((), None, None) == (decision.reply, decision.change, decision.error)


def test_an_expected_head_that_moved_is_refused() -> None:
    decision = decided(STANDING, Append(1, 2, said("x"), (0, 2)), rows=[row(2, "y")])

    assert isinstance(decision.error, HeadMovedError)
    assert ((0, 2), (0, 3)) == (decision.error.expected, decision.error.current)


def test_i6_the_repeat_of_an_append_that_extended_is_answered_from_the_log() -> None:
    decision = decided(STANDING, Append(1, 2, said("x"), (0, 2)), rows=[row(2, "x")])

    assert AppendedEvent(2, 1, 5, said("x")) == decision.reply
    assert decision.change is None


def test_i6_the_repeat_of_an_append_that_rewound_is_answered_from_the_log() -> None:
    after = Head(1, 2, 1, 0)
    decision = decided(after, Append(1, 1, said("x"), (0, 3)), rows=[row(1, "x")])

    assert AppendedEvent(1, 1, 5, said("x")) == decision.reply


def test_i6_a_rewind_that_cut_elsewhere_is_not_the_one_that_is_repeated() -> None:
    after = Head(1, 2, 1, 0)
    decision = decided(after, Append(1, 1, said("x"), (0, 3)), rows=[row(1, "x")], cut=0)

    assert isinstance(decision.error, HeadMovedError)


@pytest.mark.parametrize(
    ("command", "stored"),
    [
        (Append(1, 2, said("x"), (0, 2)), row(2, "other")),
        (Append(1, 2, said("x"), (0, 2)), row(2, "x", incarnation=0)),
        (Append(1, 2, said("x"), (1, 2)), row(2, "x")),
        (Append(1, 1, said("x"), (0, 1)), row(2, "x")),
    ],
    ids=["other bytes", "other incarnation", "other generation", "not up to the head"],
)
def test_i6_what_only_looks_like_a_repeat_is_refused(command: Append, stored: StoredEvent) -> None:
    assert isinstance(decided(STANDING, command, rows=[row(1, "w"), stored]).error, HeadMovedError)


def test_i6_a_writer_who_sees_the_head_and_rewinds_to_the_same_bytes_does_rewind() -> None:
    decision = decided(STANDING, Append(1, 2, said("x"), (0, 3)), rows=[row(2, "x")])

    assert Head(1, 3, 1, 0) == decision.head


def test_without_an_expected_head_a_repeat_is_a_rewind_as_in_the_reference() -> None:
    assert Head(1, 3, 1, 0) == decided(STANDING, Append(1, 2, said("x")), rows=[row(2, "x")]).head


def test_i5_a_checkpoint_above_the_head_is_refused() -> None:
    assert isinstance(decided(STANDING, PutCheckpoint(1, checkpoint(4))).error, OffsetError)


def test_i5_a_checkpoint_of_another_incarnation_than_its_writer_is_refused() -> None:
    assert isinstance(decided(STANDING, PutCheckpoint(1, checkpoint(1, incarnation=2))).error, CheckpointError)


def test_i5_the_second_write_of_an_id_stores_nothing_and_echoes_its_argument() -> None:
    decision = decided(STANDING, PutCheckpoint(1, checkpoint(2)), checkpoints=[checkpoint(1)])

    assert (checkpoint(2), None) == (decision.reply, decision.change)


def test_i8_a_turn_number_is_handed_out_durably() -> None:
    decision = decided(Head(1, 0, 0, 4), NextTurn(1))

    assert (4, 5) == (decision.reply, decision.head.next_turn)
    assert decision.change is not None
    assert decision.change.durable


def test_i8_a_turn_that_was_only_seen_counts_too() -> None:
    decision = decided(STANDING, Append(1, 3, TurnStart(id="t", parent_id=None, turn=8)))

    assert decision.head.next_turn == 9


def test_i8_after_the_largest_turn_number_there_is_none() -> None:
    assert isinstance(decided(Head(1, 0, 0, 2**53), NextTurn(1)).error, OutOfRangeError)


def test_i11_an_append_that_raises_the_fence_reaches_the_disk() -> None:
    change = decided(STANDING, Append(2, 3, said("x"))).change

    assert change is not None
    assert change.durable


def test_evolve_without_a_change_is_the_same_head() -> None:
    assert evolve(STANDING, None) is STANDING
