"""What the port offers to those who write or read a whole log: steps in one go, the lists of checkpoints and keys."""

import pytest

from incarnate import ActivationKey, AppendMany, Head, Lease, OffsetError, Retire
from incarnate.domain.commands import WriteCommand
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.storage.port import Decide, Store
from tests.support.stores import KEY, Log, checkpoint, notes


def step(command: WriteCommand) -> Decide:
    payload = encode_command(command)

    def work_out(stored: StoredLog) -> Decision:
        return decide(stored, command, payload, 7)

    return work_out


def test_each_step_is_decided_on_what_the_one_before_it_left(store: Store, log: Log) -> None:
    steps = [Lease(3), AppendMany(3, 0, notes("ab")), AppendMany(3, 2, notes("c")), AppendMany(3, 1, notes("d"))]
    decision = store.transact_all(KEY, [step(one) for one in steps], 7)

    assert Head(3, 2, 1, 0) == decision.head == log.head
    assert "ad" == log.names


def test_one_step_is_a_transaction(store: Store, log: Log) -> None:
    assert Head(1, 2, 0, 0) == store.transact_all(KEY, [step(AppendMany(1, 0, notes("ab")))], 7).head
    assert Head(1, 3, 0, 0) == store.transact_all(KEY, [step(AppendMany(1, 2, notes("c")))], 7).head
    assert "abc" == log.names


def test_the_answer_is_the_first_refusal(store: Store, log: Log) -> None:
    steps = [AppendMany(1, 0, notes("a")), AppendMany(1, 5, notes("b")), AppendMany(1, 6, notes("c"))]
    decision = store.transact_all(KEY, [step(one) for one in steps], 7)

    assert isinstance(decision.error, OffsetError)
    assert "offset 5 " in str(decision.error)
    assert "a" == log.names


def test_a_step_that_raises_raises_for_the_caller(store: Store, log: Log) -> None:
    def broken(_: StoredLog) -> Decision:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transact_all(KEY, [step(AppendMany(1, 0, notes("a"))), broken], 7)

    assert log.append(1, "b")
    assert "ab" == log.names


def test_checkpoints_are_listed_by_their_offset_and_then_as_they_were_made(log: Log) -> None:
    log.append(0, "abcd")
    for name, offset in (("late", 3), ("first", 1), ("second", 1), ("zero", 0), ("above", 4)):
        log.put(checkpoint(name, offset))
    with log.store.snapshot(KEY) as snapshot:
        assert ["zero", "first", "second", "late", "above"] == list(snapshot.checkpoint_ids())

    log.append(3, "x")
    with log.store.snapshot(KEY) as snapshot:
        assert ["zero", "first", "second", "late"] == list(snapshot.checkpoint_ids())


def test_an_activation_that_nobody_touched_has_no_checkpoints(log: Log) -> None:
    with log.store.snapshot(KEY) as snapshot:
        assert [] == list(snapshot.checkpoint_ids())


def test_the_keys_are_those_of_the_list(store: Store) -> None:
    old, live = ActivationKey("b", "old"), ActivationKey("a", "live")
    for key in (old, live):
        Log(store, key).append(0, "a")
    assert [live, old] == list(store.keys()) == [info.key for info in store.activations()]

    Log(store, old).do(Retire(), 5)
    store.sweep(10)
    assert [live] == list(store.keys())
