"""I6: the repeat of a write whose answer was lost is answered from the log."""

from __future__ import annotations

import pytest

from incarnate.domain.commands import Append, AppendMany
from incarnate.domain.errors import HeadMovedError
from incarnate.domain.heads import Head
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import Log, checkpoint, note, notes

__all__ = ["Repeats"]

NEAR_MISSES: dict[str, AppendMany] = {
    "other bytes": AppendMany(1, 2, (note("x"), note("y", "other")), (0, 4)),
    "another id": AppendMany(1, 2, notes("xz"), (0, 4)),
    "fewer events": AppendMany(1, 2, notes("x"), (0, 4)),
    "the tail only": AppendMany(1, 3, notes("y"), (0, 3)),
    "more events": AppendMany(1, 2, notes("xyz"), (0, 4)),
    "the same range, two rewinds ago": AppendMany(1, 2, notes("xy"), (-1, 4)),
    "an expectation at the offset, a generation ago": AppendMany(1, 2, notes("xy"), (0, 2)),
    "an expectation below the offset": AppendMany(1, 2, notes("xy"), (0, 1)),
    "a generation to come": AppendMany(1, 2, notes("xy"), (2, 2)),
}


class Repeats(Contract):
    """A repeat is known by its bytes, its writer and the head that it expected."""

    def test_i6_the_repeat_of_an_append_that_extended_is_answered_from_the_log(self, log: Log) -> None:
        log.append(0, "a")
        first = log.do(AppendMany(1, 1, notes("bc"), (0, 1)), now_ms=5)

        assert first == log.do(AppendMany(1, 1, notes("bc"), (0, 1)), now_ms=9)
        assert (Head(1, 3, 0, 0), "abc") == (log.head, log.names)

    def test_i6_the_repeat_of_an_append_that_rewound_is_answered_from_the_log(self, log: Log) -> None:
        log.append(0, "abcd")
        first = log.do(Append(1, 2, note("x"), (0, 4)), now_ms=5)
        log.put(checkpoint("cp", 3))

        assert first == log.do(Append(1, 2, note("x"), (0, 4)), now_ms=9)
        assert (Head(1, 3, 1, 0), "abx", "cp") == (log.head, log.names, log.latest)

    @pytest.mark.parametrize("command", NEAR_MISSES.values(), ids=NEAR_MISSES)
    def test_i6_what_only_resembles_a_repeat_is_refused(self, log: Log, command: AppendMany) -> None:
        log.append(0, "abcd")
        log.append(2, "xy")
        before = log.everything()

        with pytest.raises(HeadMovedError) as refusal:
            log.do(command)

        assert (command.expected_head, (1, 4)) == (refusal.value.expected, refusal.value.current)
        assert before == log.everything()

    def test_i6_an_earlier_incarnations_events_are_no_repeat(self, log: Log) -> None:
        log.append(0, "ab")

        with pytest.raises(HeadMovedError):
            log.append(1, "b", incarnation=2, expected=(0, 1))

        assert [1, 1] == [appended.incarnation for appended in log.events]

    def test_i6_without_an_expected_head_a_repeat_is_a_rewind(self, log: Log) -> None:
        log.append(0, "ab")
        log.append(1, "b")

        assert (Head(1, 2, 1, 0), "ab") == (log.head, log.names)

    def test_i6_a_checkpoint_may_be_repeated(self, log: Log) -> None:
        log.append(0, "a")
        kept = checkpoint("cp", 1)

        assert [kept, kept] == [log.put(kept, (0, 1)), log.put(kept, (0, 1))]
        assert kept == log.checkpoint("cp")
