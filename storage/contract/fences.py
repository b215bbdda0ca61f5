"""I2: the fence never falls, and is checked in the write's own transaction."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from incarnate.domain.commands import Append, AppendMany, NextTurn, PutCheckpoint, WriteCommand
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.domain.errors import OutOfRangeError, StaleIncarnationError
from incarnate.domain.events import MAX_INTEGER
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import KEY, Log, checkpoint, note

__all__ = ["Fences"]

STALE: dict[str, WriteCommand] = {
    "append": Append(1, 2, note("x")),
    "append above the head": Append(1, 9, note("x")),
    "append that would rewind": Append(1, 0, note("x"), (0, 2)),
    "append of what no one can store": Append(1, 2, note("\ud800")),
    "empty batch": AppendMany(1, 2, ()),
    "repeat": Append(1, 1, note("b"), (0, 1)),
    "checkpoint": PutCheckpoint(1, checkpoint("cp", 2)),
    "turn": NextTurn(1),
}

_MOMENT = 0.1
"""How long a take-over is given to slip in: a store that holds its transaction makes it wait longer than that."""


class Fences(Contract):
    """Who may write is settled by the write itself."""

    def test_i2_an_untouched_log_has_no_fence(self, log: Log) -> None:
        assert log.head == EMPTY_HEAD

    def test_i2_a_lease_sets_the_fence_of_an_empty_log(self, log: Log) -> None:
        assert Head(0, 0, 0, 0) == log.lease(0)
        assert Head(7, 0, 0, 0) == log.lease(7)

        assert Head(7, 0, 0, 0) == log.head

    def test_i2_the_fence_survives_a_rewind_to_nothing(self, log: Log) -> None:
        log.append(0, "abc", incarnation=3)
        log.append(0, "x", incarnation=3)

        with pytest.raises(StaleIncarnationError):
            log.append(0, "y", incarnation=2)

        assert (3, "x") == (log.head.fence, log.names)

    @pytest.mark.parametrize("command", STALE.values(), ids=STALE)
    def test_i2_the_fence_is_checked_before_anything_else(self, log: Log, command: WriteCommand) -> None:
        log.append(0, "ab")
        log.lease(2)
        before = log.everything()

        with pytest.raises(StaleIncarnationError) as refusal:
            log.do(command)

        assert (refusal.value.key, refusal.value.incarnation, refusal.value.current) == (KEY, 1, 2)
        assert before == log.everything()

    @pytest.mark.parametrize("incarnation", [-1, MAX_INTEGER + 1, 2**64, True, 1.5, None])
    def test_i2_an_incarnation_that_is_none_is_refused(self, log: Log, incarnation: Any) -> None:
        with pytest.raises(OutOfRangeError, match="incarnation must be an integer from 0 to 9007199254740991"):
            log.lease(incarnation)

        assert log.head == EMPTY_HEAD

    def test_a_claim_takes_the_next_free_incarnation(self, log: Log) -> None:
        assert [1, 2, 3] == [log.claim().fence for _ in range(3)]

    def test_a_claim_above_the_largest_incarnation_is_refused(self, log: Log) -> None:
        log.lease(MAX_INTEGER)

        with pytest.raises(OutOfRangeError):
            log.claim()

        assert log.head.fence == MAX_INTEGER

    def test_i2_a_take_over_cannot_slip_in_between_the_decision_and_its_commit(self, log: Log) -> None:
        log.append(0, "a")
        command = Append(1, 1, note("b"))
        payload = encode_command(command)
        taken = threading.Event()
        rivals: list[threading.Thread] = []

        def take_over() -> None:
            log.lease(2)
            taken.set()

        def work_out(stored: StoredLog) -> Decision:
            decision = decide(stored, command, payload, 0)
            if not rivals:
                rivals.append(threading.Thread(target=take_over, daemon=True))
                rivals[0].start()
                taken.wait(_MOMENT)
                slipped_in.append(taken.is_set())
            return decision

        slipped_in: list[bool] = []
        decision = log.store.transact(KEY, work_out, 0)
        rivals[0].join(10)

        assert taken.is_set(), "the take-over waited for ever"
        if slipped_in == [True]:
            assert isinstance(decision.error, StaleIncarnationError), "a stale writer was admitted"
        assert ("a" if decision.error else "ab", 2) == (log.names, log.head.fence)
