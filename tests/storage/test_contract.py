"""What every back end promises: the port's sentences and the invariants, over the table of back ends."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from incarnate.domain.codec import EncodedEvent
from incarnate.domain.commands import Append, AppendMany, Claim, NextTurn, PutCheckpoint, WriteCommand
from incarnate.domain.decisions import Change, Decision, StoredLog
from incarnate.domain.errors import (
    CheckpointError,
    ClosedError,
    HeadMovedError,
    OffsetError,
    OutOfRangeError,
    RefusedError,
    StaleIncarnationError,
    UnencodableEventError,
)
from incarnate.domain.events import MAX_INTEGER, Opaque, ToolCall, TurnEnd, TurnStart, UserMessage
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.port import ActivationInfo, Store
from tests.support.stores import KEY, OTHER, Log, checkpoint, decided, note, notes, perform, soon

Open = Callable[[], Store]

# I1, offsets are gap-free from 0


def test_i1_the_first_event_goes_to_offset_0_and_each_next_one_above(log: Log) -> None:
    log.append(0, "ab")
    log.append_one(2, "c")

    assert [0, 1, 2] == log.offsets


@pytest.mark.parametrize("offset", [4, 5, MAX_INTEGER])
def test_i1_an_append_above_the_head_is_refused(log: Log, offset: int) -> None:
    log.append(0, "abc")

    with pytest.raises(OffsetError, match=f"offset {offset} of pik-1/implement-task is above the head at 3"):
        log.append_one(offset, "x")

    assert "abc" == log.names


@pytest.mark.parametrize("offset", [-1, MAX_INTEGER + 1, 2**63, True, 1.0, "0"])
def test_i1_an_offset_that_is_no_offset_is_refused(log: Log, offset: Any) -> None:
    with pytest.raises(OutOfRangeError, match="offset must be an integer from 0 to 9007199254740991"):
        log.append_one(offset, "x")

    assert EMPTY_HEAD.next_offset == log.head.next_offset


def test_i1_an_empty_batch_neither_appends_nor_rewinds(log: Log) -> None:
    log.append(0, "abc")

    assert () == log.append(1, "")
    assert "abc" == log.names


# I2, the fence never falls


def test_i2_an_untouched_log_has_no_fence(log: Log) -> None:
    assert EMPTY_HEAD == log.head


def test_i2_a_lease_sets_the_fence_of_an_empty_log(log: Log) -> None:
    assert Head(0, 0, 0, 0) == log.lease(0)
    assert Head(7, 0, 0, 0) == log.lease(7)

    assert Head(7, 0, 0, 0) == log.head


def test_i2_the_fence_survives_a_rewind_to_nothing(log: Log) -> None:
    log.append(0, "abc", incarnation=3)
    log.append(0, "x", incarnation=3)

    with pytest.raises(StaleIncarnationError):
        log.append(0, "y", incarnation=2)

    assert (3, "x") == (log.head.fence, log.names)


def test_i2_the_fence_of_an_empty_log_survives_a_reopen(open_again: Open) -> None:
    Log(open_again()).lease(5)

    log = Log(open_again())
    with pytest.raises(StaleIncarnationError):
        log.lease(4)

    assert Head(5, 0, 0, 0) == log.head


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


@pytest.mark.parametrize("command", STALE.values(), ids=STALE)
def test_i2_the_fence_is_checked_before_anything_else(log: Log, command: WriteCommand) -> None:
    log.append(0, "ab")
    log.lease(2)
    before = log.everything()

    with pytest.raises(StaleIncarnationError) as refusal:
        log.do(command)

    assert (KEY, 1, 2) == (refusal.value.key, refusal.value.incarnation, refusal.value.current)
    assert before == log.everything()


def test_i2_a_stale_writer_is_refused_by_the_write_itself(open_again: Open) -> None:
    mine, theirs = Log(open_again()), Log(open_again())
    mine.append(0, "a")
    theirs.lease(2)

    with pytest.raises(StaleIncarnationError) as refusal:
        mine.append(1, "b")

    assert 2 == refusal.value.current


THEIRS: dict[str, tuple[Callable[[Log], object], Head]] = {
    "an append": (lambda log: log.append(2, "x"), Head(1, 3, 0, 0)),
    "a rewind to the same length": (lambda log: log.append(1, "x"), Head(1, 2, 1, 0)),
    "a rewind to less": (lambda log: log.append(0, "x"), Head(1, 1, 1, 0)),
    "a turn number": (Log.next_turn, Head(1, 2, 0, 1)),
    "nothing": (lambda log: log.head, Head(1, 2, 0, 0)),
}


@pytest.mark.parametrize(("theirs", "found"), THEIRS.values(), ids=THEIRS)
def test_a_write_is_decided_on_what_another_opening_has_left(
    open_again: Open, theirs: Callable[[Log], object], found: Head
) -> None:
    mine, other = Log(open_again()), Log(open_again())
    mine.append(0, "a")
    mine.append(1, "b")
    theirs(other)
    after = Head(1, found.next_offset + 1, found.generation, found.next_turn)

    assert (0, 2) == found.expected or isinstance(decided(mine.store, KEY, SAW_AB).error, HeadMovedError)
    assert after == decided(mine.store, KEY, Append(1, found.next_offset, note("c"), found.expected)).head
    assert after == mine.head == other.head


SAW_AB = Append(1, 2, note("c"), (0, 2))


@pytest.mark.parametrize("incarnation", [-1, MAX_INTEGER + 1, 2**64, True, 1.5, None])
def test_i2_an_incarnation_that_is_none_is_refused(log: Log, incarnation: Any) -> None:
    with pytest.raises(OutOfRangeError, match="incarnation must be an integer from 0 to 9007199254740991"):
        log.lease(incarnation)

    assert EMPTY_HEAD == log.head


def test_a_claim_takes_the_next_free_incarnation(log: Log) -> None:
    assert [1, 2, 3] == [log.claim().fence for _ in range(3)]


def test_a_claim_above_the_largest_incarnation_is_refused(log: Log) -> None:
    log.lease(MAX_INTEGER)

    with pytest.raises(OutOfRangeError):
        log.claim()

    assert MAX_INTEGER == log.head.fence


# I3, a refused command changes nothing, but a newer incarnation takes the fence

REFUSED: dict[str, tuple[Callable[[int], WriteCommand], type[RefusedError]]] = {
    "range": (lambda n: Append(n, 9, note("x")), OffsetError),
    "head moved": (lambda n: Append(n, 2, note("x"), (0, 1)), HeadMovedError),
    "unencodable": (lambda n: AppendMany(n, 0, (note("x"), note("\ud800"))), UnencodableEventError),
    "checkpoint above the head": (lambda n: PutCheckpoint(n, checkpoint("cp", 3, n)), OffsetError),
    "checkpoint of another": (lambda n: PutCheckpoint(n, checkpoint("cp", 1, n + 1)), CheckpointError),
    "checkpoint of a moved head": (lambda n: PutCheckpoint(n, checkpoint("cp", 1, n), (1, 2)), HeadMovedError),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_i3_a_refused_command_changes_nothing(
    log: Log, case: tuple[Callable[[int], WriteCommand], type[RefusedError]]
) -> None:
    command, error = case
    log.append(0, "ab", incarnation=2)
    before = log.everything()

    with pytest.raises(error):
        log.do(command(2))

    assert before == log.everything()


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_i3_a_newer_incarnation_takes_the_fence_even_if_it_is_refused(
    log: Log, case: tuple[Callable[[int], WriteCommand], type[RefusedError]]
) -> None:
    command, error = case
    log.append(0, "ab", incarnation=2)

    with pytest.raises(error):
        log.do(command(3))

    assert (Head(3, 2, 0, 0), "ab") == (log.head, log.names)


# I4, a rewind is one step


def test_i4_a_rewind_supersedes_the_tail_and_raises_the_generation(log: Log) -> None:
    log.append(0, "abcd")
    log.append(2, "x")

    assert (Head(1, 3, 1, 0), "abx") == (log.head, log.names)


def test_i4_a_rewind_prunes_the_checkpoints_above_the_cut_and_keeps_those_at_it(log: Log) -> None:
    log.append(0, "abcd")
    for offset in range(5):
        log.put(checkpoint(f"cp-{offset}", offset))
    log.append(2, "xyz")

    assert [True, True, True, False, False] == [log.checkpoint(f"cp-{n}") is not None for n in range(5)]
    assert "cp-2" == log.latest


def test_i4_the_id_of_a_pruned_checkpoint_is_free_again(log: Log) -> None:
    log.append(0, "abcd")
    log.put(checkpoint("cp", 4))
    log.append(1, "x")
    log.put(checkpoint("cp", 2, sha="new"))

    assert checkpoint("cp", 2, sha="new") == log.checkpoint("cp")


def test_i4_what_was_superseded_is_never_replayed(open_again: Open) -> None:
    log = Log(open_again())
    log.append(0, "abcd")
    log.append(1, "x")
    log.append(2, "y")

    assert "axy" == Log(open_again()).names


def test_i4_a_rewind_of_one_log_leaves_the_other_alone(store: Store) -> None:
    log, other = Log(store), Log(store, OTHER)
    other.append(0, "abc")
    other.put(checkpoint("cp", 3))
    log.append(0, "abc")
    log.append(0, "x")

    assert (Head(1, 3, 0, 0), "abc", "cp", None) == (other.head, other.names, other.latest, other.lowest_cut(0))


def test_i4_each_rewind_is_remembered_by_its_cut(log: Log) -> None:
    log.append(0, "abcdef")
    for cut in (4, 1, 2, 0):
        log.append(cut, "xyz")

    assert [0, 0, 0, 0, None] == [log.lowest_cut(generation) for generation in range(5)]
    log.append(2, "z")
    assert [0, 2, None] == [log.lowest_cut(generation) for generation in (3, 4, 5)]


# I5, what a checkpoint is


def test_i5_the_first_write_of_an_id_is_stored_and_the_second_answered_with_its_argument(log: Log) -> None:
    log.append(0, "a")
    first, second = checkpoint("cp", 1, sha="one"), checkpoint("cp", 0, sha="two")

    assert [first, second] == [log.put(first), log.put(second)]
    assert first == log.checkpoint("cp")


def test_i5_the_first_write_of_an_id_holds_against_a_newer_incarnation_too(log: Log) -> None:
    log.put(checkpoint("cp", 0, 1))
    log.put(checkpoint("cp", 0, 2))

    assert (2, checkpoint("cp", 0, 1)) == (log.head.fence, log.checkpoint("cp"))


def test_i5_newest_is_the_highest_offset_then_the_latest_insert(log: Log) -> None:
    log.append(0, "ab")
    newest = []
    for name, offset in (("z", 1), ("a", 2), ("m", 2), ("b", 1), ("m", 2)):
        log.put(checkpoint(name, offset))
        newest.append(log.latest)

    assert ["z", "a", "m", "m", "m"] == newest


def test_i5_a_checkpoint_of_another_incarnation_than_its_writers_is_refused(log: Log) -> None:
    with pytest.raises(CheckpointError, match="checkpoint 'cp' is of incarnation 1, its writer of 2"):
        log.do(PutCheckpoint(2, checkpoint("cp", 0, 1)))

    assert None is log.checkpoint("cp")


def test_i5_an_id_is_one_activations_own(store: Store) -> None:
    Log(store).put(checkpoint("cp", 0))

    assert None is Log(store, OTHER).checkpoint("cp")


# I6, repeats after an unknown outcome


def test_i6_the_repeat_of_an_append_that_extended_is_answered_from_the_log(log: Log) -> None:
    log.append(0, "a")
    first = log.do(AppendMany(1, 1, notes("bc"), (0, 1)), now_ms=5)

    assert first == log.do(AppendMany(1, 1, notes("bc"), (0, 1)), now_ms=9)
    assert (Head(1, 3, 0, 0), "abc") == (log.head, log.names)


def test_i6_the_repeat_of_an_append_that_rewound_is_answered_from_the_log(log: Log) -> None:
    log.append(0, "abcd")
    first = log.do(Append(1, 2, note("x"), (0, 4)), now_ms=5)
    log.put(checkpoint("cp", 3))

    assert first == log.do(Append(1, 2, note("x"), (0, 4)), now_ms=9)
    assert (Head(1, 3, 1, 0), "abx", "cp") == (log.head, log.names, log.latest)


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


@pytest.mark.parametrize("command", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_i6_what_only_resembles_a_repeat_is_refused(log: Log, command: AppendMany) -> None:
    log.append(0, "abcd")
    log.append(2, "xy")
    before = log.everything()

    with pytest.raises(HeadMovedError) as refusal:
        log.do(command)

    assert (command.expected_head, (1, 4)) == (refusal.value.expected, refusal.value.current)
    assert before == log.everything()


def test_i6_an_earlier_incarnations_events_are_no_repeat(log: Log) -> None:
    log.append(0, "ab")

    with pytest.raises(HeadMovedError):
        log.append(1, "b", incarnation=2, expected=(0, 1))

    assert [1, 1] == [appended.incarnation for appended in log.events]


def test_i6_without_an_expected_head_a_repeat_is_a_rewind(log: Log) -> None:
    log.append(0, "ab")
    log.append(1, "b")

    assert (Head(1, 2, 1, 0), "ab") == (log.head, log.names)


def test_i6_a_checkpoint_may_be_repeated(log: Log) -> None:
    log.append(0, "a")
    kept = checkpoint("cp", 1)

    assert [kept, kept] == [log.put(kept, (0, 1)), log.put(kept, (0, 1))]
    assert kept == log.checkpoint("cp")


def test_a_writer_that_saw_another_head_is_refused(log: Log) -> None:
    log.append(0, "ab")

    for expected in ((0, 1), (0, 3), (1, 2)):
        with pytest.raises(HeadMovedError):
            log.append(2, "x", expected=expected)
        with pytest.raises(HeadMovedError):
            log.put(checkpoint("cp", 1), expected)

    assert ("ab", None) == (log.names, log.latest)
    log.append(2, "c", expected=(0, 2))
    assert "abc" == log.names


# I8, turn numbers


def test_i8_turn_numbers_count_up_from_0(log: Log) -> None:
    assert [0, 1, 2] == [log.next_turn() for _ in range(3)]


@pytest.mark.parametrize(
    ("event", "following"),
    [
        (TurnStart(id="t", parent_id=None, turn=6), 7),
        (TurnEnd(id="t", parent_id=None, turn=6), 7),
        (TurnStart(id="t", parent_id=None, turn=0, label="turn-41"), 42),
        (TurnEnd(id="t", parent_id=None, turn=9, label="turn-3"), 4),
        (TurnStart(id="t", parent_id=None, turn=9, label="turn 3"), 1),
        (TurnStart(id="t", parent_id=None, turn=0), 1),
    ],
)
def test_i8_the_next_turn_is_above_every_turn_seen(log: Log, event: TurnStart | TurnEnd, following: int) -> None:
    log.next_turn()
    log.append(0, [event])

    assert following == log.next_turn()


def test_i8_a_turn_number_is_never_used_again_after_a_rewind(log: Log) -> None:
    log.append(0, [note("a"), TurnStart(id="t", parent_id=None, turn=8)])
    log.append(0, "x")

    assert 9 == log.next_turn()


def test_i8_a_turn_number_is_never_used_again_after_a_reopen(open_again: Open) -> None:
    Log(open_again()).next_turn()

    assert 1 == Log(open_again()).next_turn(2)


def test_i8_there_is_no_turn_above_the_largest(log: Log) -> None:
    log.append(0, [TurnStart(id="t", parent_id=None, turn=MAX_INTEGER - 1)])

    assert MAX_INTEGER == log.next_turn()
    with pytest.raises(OutOfRangeError, match="turn must be"):
        log.next_turn()


# I9, what is accepted reads back equal

NASTY = "NUL \0, U+2028 \u2028, U+FEFF \ufeff, U+FFFF \uffff, emoji \U0001f9e0, e\u0301, quote ' \" %, \r\n"
OPAQUE = b'{ "type":"hologram" ,"parentId":null,\n"id":"h", "big":1' + b"0" * 40 + b',"x":"\\u0000\xe2\x80\xa8"}'


def test_i9_payloads_read_back_equal(log: Log) -> None:
    args: dict[str, list[object]] = {
        NASTY: [2**64, -(10**40), 1e300, 5e-324, -0.0, True, None, NASTY, [], {}, {"": ""}]
    }
    events = (ToolCall(id=NASTY, parent_id=NASTY, call_id=NASTY, name="", args=args), UserMessage(**IDS, text=NASTY))
    log.append(0, events)

    assert events == tuple(appended.event for appended in log.events)
    assert repr(events) == repr(tuple(appended.event for appended in log.events))


IDS: dict[str, Any] = {"id": "", "parent_id": None}


def test_i9_keys_and_checkpoint_ids_survive(open_again: Open) -> None:
    name = NASTY.replace("\0", "")
    key = ActivationKey(name, f"/%2F{name}")
    log = Log(open_again(), key)
    for checkpoint_id in (NASTY, "", "\0", "a", "a\0"):
        log.put(checkpoint(checkpoint_id, 0, detail={NASTY: NASTY}))
    again = open_again()

    assert [key] == [info.key for info in again.activations()]
    assert ["\0", "a", "a\0"] == [kept.id for name in ("\0", "a", "a\0") if (kept := Log(again, key).checkpoint(name))]
    assert checkpoint(NASTY, 0, detail={NASTY: NASTY}) == Log(again, key).checkpoint(NASTY)


def test_i9_an_unknown_checkpoint_id_is_none_whatever_it_holds(log: Log) -> None:
    log.put(checkpoint("cp", 0))

    assert [None] * 4 == [log.checkpoint(name) for name in ("", "CP", "cp\0", "\ud800")]


def test_i9_an_unknown_event_type_comes_back_byte_for_byte(log: Log) -> None:
    event = Opaque("hologram", "h", None, OPAQUE)
    log.append(0, [note("a"), event, note("b")])

    assert event == log.events[1].event


def test_i9_nothing_that_a_caller_mutates_later_changes_the_log(log: Log) -> None:
    args = {"list": [1]}
    (appended,) = log.append(0, [ToolCall(**IDS, call_id="c", name="n", args=args)])
    args["list"].append(2)

    assert {"list": [1]} == log.events[0].event.args == appended.event.args  # type: ignore[union-attr]


# All or nothing


class UnforeseenError(Exception):
    """A failure that no store expects."""


def test_when_decide_fails_nothing_is_written(log: Log) -> None:
    def fails(_: StoredLog) -> Decision:
        raise UnforeseenError

    with pytest.raises(UnforeseenError):
        log.store.transact(KEY, fails, 0)

    assert [] == list(log.store.activations())
    assert "a" == "".join(appended.event.id for appended in log.append(0, "a"))


@pytest.mark.parametrize("cut", [None, 1])
def test_when_a_row_fails_in_the_middle_nothing_is_written(log: Log, cut: int | None) -> None:
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


# Reading


def test_an_activation_that_nobody_touched_reads_as_empty(log: Log) -> None:
    assert (EMPTY_HEAD, [], None, None) == log.everything()
    assert [] == list(log.store.activations())


def test_a_refused_first_command_touches_nothing(log: Log) -> None:
    log.refused(Append(2**53, 0, note("a")))

    assert [] == list(log.store.activations())


def test_activations_are_listed_in_the_order_of_their_keys(store: Store) -> None:
    names = [
        f"{prefix}{number}" for number in range(25) for prefix in ("", "Z", "a/", "%", "é", "\U0001f9e0", "\uffff")
    ]
    keys = [
        ActivationKey(first, second) for first in names for second in ("z", "A", "9")
    ]  # no page of 500 ends with a first part
    for key in reversed(keys):
        perform(store, key, Claim())

    assert len(set(keys)) > 500
    assert sorted(keys) == [info.key for info in store.activations()]


def test_a_listing_tells_head_and_times(store: Store) -> None:
    perform(store, KEY, Claim(), now_ms=10)
    perform(store, KEY, AppendMany(1, 0, notes("ab")), now_ms=20)
    perform(store, KEY, AppendMany(1, 1, notes("x")), now_ms=15)
    perform(store, OTHER, NextTurn(4), now_ms=30)

    assert [
        ActivationInfo(KEY, Head(1, 2, 1, 0), 10, 15),
        ActivationInfo(OTHER, Head(4, 0, 0, 1), 30, 30),
    ] == list(store.activations())


@pytest.mark.parametrize(
    ("start", "stop", "max_bytes", "names"),
    [
        (0, 6, 10**9, "abcdef"),
        (2, 4, 10**9, "cd"),
        (4, 99, 10**9, "ef"),
        (6, 9, 10**9, ""),
        (3, 3, 10**9, ""),
        (0, 6, 2500, "abc"),
        (1, 6, 1, "b"),
        (1, 6, 0, "b"),
        (2**80, 2**81, 1, ""),
        (0, 2**81, 1, "a"),
    ],
)
def test_a_page_holds_its_range_up_to_the_event_that_reaches_its_bytes(
    log: Log, start: int, stop: int, max_bytes: int, names: str
) -> None:
    log.append(0, [note(name, "x" * 1000) for name in "abcdef"])

    with log.store.snapshot(KEY) as snapshot:
        page = snapshot.page(start, stop, max_bytes)

    assert names == "".join(appended.event.id for appended in page)


def test_a_snapshot_stands_still_while_a_writer_goes_on(log: Log) -> None:
    log.append(0, "abc")
    log.put(checkpoint("old", 3))

    with log.store.snapshot(KEY) as snapshot, ThreadPoolExecutor() as pool:
        pool.submit(log.append, 1, "xyz").result()
        pool.submit(log.put, checkpoint("new", 4)).result()
        seen = (snapshot.head, "".join(e.event.id for e in snapshot.appended(0, 9)), snapshot.lowest_cut(0))
        assert (Head(1, 3, 0, 0), "abc", None) == seen
        assert (checkpoint("old", 3), None) == (snapshot.latest_checkpoint(), snapshot.checkpoint("new"))

    assert ("axyz", "new") == (log.names, log.latest)


def test_a_snapshot_of_an_untouched_activation_stays_empty(log: Log) -> None:
    with log.store.snapshot(KEY) as snapshot:
        log.append(0, "abc")

        assert (EMPTY_HEAD, []) == (snapshot.head, list(snapshot.appended(0, 3)))


# Threads


def test_threads_on_one_key_never_leave_a_gap(log: Log) -> None:
    def append(name: str) -> int:
        for tries in itertools.count():
            head = log.head
            try:
                log.append(head.next_offset, [note(name)], expected=head.expected)
            except HeadMovedError:
                continue
            return tries
        raise AssertionError

    names = [f"{number:03}" for number in range(120)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, names))

    assert list(range(120)) == log.offsets
    assert names == sorted(appended.event.id for appended in log.events)


def test_threads_on_different_keys_do_not_disturb_each_other(store: Store) -> None:
    start = threading.Barrier(4)

    def write(number: int) -> list[int]:
        log = Log(store, ActivationKey("pik", str(number)))
        start.wait()
        for offset in range(50):
            log.append_one(offset, f"{number}-{offset}")
        return log.offsets

    with ThreadPoolExecutor(4) as pool:
        written = list(pool.map(write, range(4)))

    assert [list(range(50))] * 4 == written


def test_readers_never_see_half_a_rewind(log: Log) -> None:
    log.append(0, "ab")
    done = threading.Event()

    def read() -> set[str]:
        seen = set()
        while not done.is_set():
            with log.store.snapshot(KEY) as snapshot:
                seen.add("".join(e.event.id for e in snapshot.appended(0, snapshot.head.next_offset)))
        return seen

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for _ in range(60):
                log.append(0, "xyz")
                log.append(0, "ab")
        finally:
            done.set()
        seen = set[str]().union(*(reader.result() for reader in readers))

    assert seen <= {"ab", "xyz"}


# Closing

USES: dict[str, Callable[[Log], object]] = {
    "transact": Log.claim,
    "snapshot": lambda log: log.head,
    "activations": lambda log: list(log.store.activations()),
}


def test_closing_twice_is_no_error(store: Store) -> None:
    store.close()
    store.close()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_closed_store_says_so(log: Log, use: Callable[[Log], object]) -> None:
    log.claim()
    log.head  # noqa: B018 - leaves an idle reader behind
    log.store.close()

    with pytest.raises(ClosedError, match="is closed"):
        use(log)


def test_the_version_moves_when_somebody_else_has_written(open_again: Open) -> None:
    mine, theirs = open_again(), open_again()
    before = mine.version()
    assert before == mine.version()

    Log(theirs).claim()

    assert soon(lambda: before != mine.version())  # a server's word may be on its way
