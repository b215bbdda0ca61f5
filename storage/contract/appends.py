"""I1 and I3: where an append goes, and what a refused one leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from incarnate.domain.commands import Append, AppendMany, PutCheckpoint, WriteCommand
from incarnate.domain.errors import (
    CheckpointError,
    HeadMovedError,
    OffsetError,
    OutOfRangeError,
    RefusedError,
    UnencodableEventError,
)
from incarnate.domain.events import MAX_INTEGER
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import Log, checkpoint, note

__all__ = ["Appends"]

REFUSED: dict[str, tuple[Callable[[int], WriteCommand], type[RefusedError]]] = {
    "range": (lambda n: Append(n, 9, note("x")), OffsetError),
    "head moved": (lambda n: Append(n, 2, note("x"), (0, 1)), HeadMovedError),
    "unencodable": (lambda n: AppendMany(n, 0, (note("x"), note("\ud800"))), UnencodableEventError),
    "checkpoint above the head": (lambda n: PutCheckpoint(n, checkpoint("cp", 3, n)), OffsetError),
    "checkpoint of another": (lambda n: PutCheckpoint(n, checkpoint("cp", 1, n + 1)), CheckpointError),
    "checkpoint of a moved head": (lambda n: PutCheckpoint(n, checkpoint("cp", 1, n), (1, 2)), HeadMovedError),
}


class Appends(Contract):
    """Offsets are gap-free from 0, and a refused command changes nothing."""

    def test_i1_the_first_event_goes_to_offset_0_and_each_next_one_above(self, log: Log) -> None:
        log.append(0, "ab")
        log.append_one(2, "c")

        assert [0, 1, 2] == log.offsets

    @pytest.mark.parametrize("offset", [4, 5, MAX_INTEGER])
    def test_i1_an_append_above_the_head_is_refused(self, log: Log, offset: int) -> None:
        log.append(0, "abc")

        with pytest.raises(OffsetError, match=f"offset {offset} of pik-1/implement-task is above the head at 3"):
            log.append_one(offset, "x")

        assert "abc" == log.names

    @pytest.mark.parametrize("offset", [-1, MAX_INTEGER + 1, 2**63, True, 1.0, "0"])
    def test_i1_an_offset_that_is_no_offset_is_refused(self, log: Log, offset: Any) -> None:
        with pytest.raises(OutOfRangeError, match="offset must be an integer from 0 to 9007199254740991"):
            log.append_one(offset, "x")

        assert EMPTY_HEAD.next_offset == log.head.next_offset

    def test_i1_an_empty_batch_neither_appends_nor_rewinds(self, log: Log) -> None:
        log.append(0, "abc")

        assert () == log.append(1, "")
        assert "abc" == log.names

    @pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
    def test_i3_a_refused_command_changes_nothing(
        self, log: Log, case: tuple[Callable[[int], WriteCommand], type[RefusedError]]
    ) -> None:
        command, error = case
        log.append(0, "ab", incarnation=2)
        before = log.everything()

        with pytest.raises(error):
            log.do(command(2))

        assert before == log.everything()

    @pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
    def test_i3_a_newer_incarnation_takes_the_fence_even_if_it_is_refused(
        self, log: Log, case: tuple[Callable[[int], WriteCommand], type[RefusedError]]
    ) -> None:
        command, error = case
        log.append(0, "ab", incarnation=2)

        with pytest.raises(error):
            log.do(command(3))

        assert (Head(3, 2, 0, 0), "ab") == (log.head, log.names)

    def test_a_writer_that_saw_another_head_is_refused(self, log: Log) -> None:
        log.append(0, "ab")

        for expected in ((0, 1), (0, 3), (1, 2)):
            with pytest.raises(HeadMovedError):
                log.append(2, "x", expected=expected)
            with pytest.raises(HeadMovedError):
                log.put(checkpoint("cp", 1), expected)

        assert ("ab", None) == (log.names, log.latest)
        log.append(2, "c", expected=(0, 2))
        assert "abc" == log.names
