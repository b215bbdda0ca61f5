"""All or nothing: whatever fails, and however many steps are taken at once."""

from __future__ import annotations

from typing import Any

import pytest

from incarnate.domain.codec import EncodedEvent
from incarnate.domain.commands import AppendMany, Lease, WriteCommand
from incarnate.domain.decisions import Change, Decision, StoredLog, decide, encode_command
from incarnate.domain.errors import OffsetError
from incarnate.domain.heads import Head
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import KEY, OTHER, Log, checkpoint, note, notes
from incarnate.storage.port import Decide, Store, Transaction

__all__ = ["Batches"]


class UnforeseenError(Exception):
    """A failure that no store expects."""


def step(command: WriteCommand) -> Decide:
    payload = encode_command(command)

    def work_out(stored: StoredLog) -> Decision:
        return decide(stored, command, payload, 7)

    return work_out


class Batches(Contract):
    """A transaction is written whole or not at all."""

    def test_when_decide_fails_nothing_is_written(self, log: Log) -> None:
        def fails(_: StoredLog) -> Decision:
            raise UnforeseenError

        with pytest.raises(UnforeseenError):
            log.store.transact(KEY, fails, 0)

        assert [] == list(log.store.activations())
        assert "a" == "".join(appended.event.id for appended in log.append(0, "a"))

    @pytest.mark.parametrize("cut", [None, 1])
    def test_when_a_row_fails_in_the_middle_nothing_is_written(self, log: Log, cut: int | None) -> None:
        log.append(0, "abc")
        log.put(checkpoint("cp", 3))
        before = log.everything()
        rows: Any = (EncodedEvent(note("x"), b"{}"), None, EncodedEvent(note("z"), b"{}"))
        torn = Change(fence=9, cut=cut, offset=3 if cut is None else cut, incarnation=9, events=rows, next_turn=5)

        with pytest.raises(Exception, match="NoneType"):
            log.store.transact(KEY, lambda stored: Decision(torn, stored.head), 0)

        assert before == log.everything()
        log.append(3, "d")
        assert "abcd" == log.names

    def test_the_decision_is_handed_back_as_it_was_made(self, log: Log) -> None:
        made = step(AppendMany(1, 0, notes("ab")))
        seen: list[Decision] = []

        def work_out(stored: StoredLog) -> Decision:
            seen.append(made(stored))
            return seen[-1]

        assert log.store.transact(KEY, work_out, 7) == seen[-1]

    def test_each_step_is_decided_on_what_the_one_before_it_left(self, store: Store, log: Log) -> None:
        steps: list[WriteCommand] = [
            Lease(3),
            AppendMany(3, 0, notes("ab")),
            AppendMany(3, 2, notes("c")),
            AppendMany(3, 1, notes("d")),
        ]
        decision = store.transact_all(KEY, [step(one) for one in steps], 7)

        assert Head(3, 2, 1, 0) == decision.head == log.head
        assert "ad" == log.names

    def test_one_step_is_a_transaction(self, store: Store, log: Log) -> None:
        assert Head(1, 2, 0, 0) == store.transact_all(KEY, [step(AppendMany(1, 0, notes("ab")))], 7).head
        assert Head(1, 3, 0, 0) == store.transact_all(KEY, [step(AppendMany(1, 2, notes("c")))], 7).head
        assert "abc" == log.names

    def test_the_answer_to_many_steps_is_the_first_refusal(self, store: Store, log: Log) -> None:
        steps = [AppendMany(1, 0, notes("a")), AppendMany(1, 5, notes("b")), AppendMany(1, 6, notes("c"))]
        decision = store.transact_all(KEY, [step(one) for one in steps], 7)

        assert isinstance(decision.error, OffsetError)
        assert "offset 5 " in str(decision.error)
        assert "a" == log.names

    def test_calls_of_many_logs_are_each_answered(self, store: Store, log: Log) -> None:
        calls = [
            Transaction(KEY, step(AppendMany(1, 0, notes("ab"))), 7),
            Transaction(OTHER, step(AppendMany(2, 5, notes("x"))), 7),
            Transaction(OTHER, step(AppendMany(3, 0, notes("c"))), 7),
        ]
        written, refused, last = store.transact_each(calls)

        assert isinstance(written, Decision)
        assert isinstance(refused, Decision)
        assert isinstance(last, Decision)
        assert (written.head, last.head) == (log.head, Log(store, OTHER).head)
        assert isinstance(refused.error, OffsetError)
        assert ("ab", "c") == (log.names, Log(store, OTHER).names)

    def test_a_call_that_raises_takes_nothing_from_the_others(self, store: Store, log: Log) -> None:
        def broken(_: StoredLog) -> Decision:
            raise UnforeseenError

        found = store.transact_each(
            [
                Transaction(OTHER, broken, 7),
                Transaction(KEY, step(AppendMany(1, 0, notes("a"))), 7),
            ]
        )

        assert [UnforeseenError, Decision] == [type(one) for one in found]
        assert ("a", "") == (log.names, Log(store, OTHER).names)

    def test_no_calls_are_nothing(self, store: Store) -> None:
        assert [] == store.transact_each([])

    def test_a_step_that_raises_raises_for_the_caller(self, store: Store, log: Log) -> None:
        def broken(_: StoredLog) -> Decision:
            raise UnforeseenError

        with pytest.raises(UnforeseenError):
            store.transact_all(KEY, [step(AppendMany(1, 0, notes("a"))), broken], 7)

        log.append(log.head.next_offset, "b")
        assert log.names in {"ab", "b"}
