"""Copies between stores: from every back end and to every back end, event by event."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from incarnate import (
    ActivationKey,
    AppendMany,
    Claim,
    Head,
    KeyTakenError,
    LogCorruptionError,
    NextTurn,
    Opaque,
    OutcomeUnknownError,
    Retire,
    RetiredError,
    StaleIncarnationError,
    TurnStart,
    UserMessage,
    open_store,
)
from incarnate.domain.decisions import Decision
from incarnate.storage.copying import Copied, copy_activations
from incarnate.storage.port import Decide, Store
from tests.support.stores import KEY, OTHER, Log, checkpoint, note, notes, sqlite_url

ALL = 2**53


@pytest.fixture
def other() -> Iterator[Store]:
    """The other end of a copy."""
    with open_store("memory://") as opened:
        yield opened


def fill(store: Store, key: ActivationKey = KEY) -> Log:
    """Three incarnations, times, checkpoints of one offset, a rewind, bytes that no version of ours wrote."""
    log = Log(store, key)
    log.do(AppendMany(1, 0, notes("abcd")), 100)
    log.do(AppendMany(1, 4, (TurnStart(id="t", parent_id=None, turn=7),)), 100)
    log.do(AppendMany(2, 5, (UserMessage(id="u", parent_id=None, text="\u2028\0 and \n"),)), 250)
    for name, offset in (("b", 2), ("a", 2), ("zero", 0), ("top", 6)):
        log.put(checkpoint(name, offset, incarnation=2))
    raw = b'{ "type":"tomorrow", "id":"o",\n "parentId":null, "x":1e400 }'
    log.do(AppendMany(4, 6, (Opaque("tomorrow", "o", None, raw), note("superseded"))), 260)
    log.do(AppendMany(4, 7, (note("last"),)), 300)
    return log


def copied(source: Store, target: Store, *keys: ActivationKey) -> list[Copied]:
    return list(copy_activations(source, target, keys, 999))


def whole(store: Store, key: ActivationKey = KEY) -> tuple[object, ...]:
    """All that a copy takes over."""
    with store.snapshot(key) as log:
        head = log.head
        rows = [tuple(row) for row in log.events(0, head.next_offset)]
        checkpoints = [log.checkpoint(id) for id in log.checkpoint_ids()]
        latest = log.latest_checkpoint()
    created = [info.created_ms for info in store.activations() if info.key == key]
    return (head.fence, head.next_offset, head.next_turn, head.retired), rows, checkpoints, latest, created


def test_a_copy_is_the_same_event_by_event(store: Store, other: Store) -> None:
    fill(store)
    assert [Copied(KEY, 8, 8, 4, archives=1)] == copied(store, other)
    assert whole(store) == whole(other)
    assert Head(4, 8, 0, 8) == Log(other).head

    with open_store("memory://") as source:
        log = fill(source, OTHER)
        log.do(NextTurn(4))
        assert [Copied(OTHER, 8, 8, 4, archives=1)] == copied(source, store)
        assert whole(source, OTHER) == whole(store, OTHER)


def test_a_copy_without_archives_has_no_rewinds(store: Store, other: Store) -> None:
    fill(other)
    copied(other, store)

    with store.snapshot(KEY) as log:
        assert [] == list(log.rewinds())
        assert [] == list(log.superseded(1, 0, ALL, ALL))


def test_a_copy_that_is_whole_is_compared_and_not_written_again(store: Store, other: Store) -> None:
    fill(store)
    copied(store, other)

    assert [Copied(KEY, 8, 0, 4, archives=1)] == copied(store, other)
    assert whole(store) == whole(other)


def test_a_copy_of_a_log_that_has_grown_is_continued(store: Store, other: Store) -> None:
    log = fill(other)
    copied(other, store)
    log.do(AppendMany(5, 8, notes("xy")), 400)
    log.put(checkpoint("later", 2, incarnation=5))
    log.do(NextTurn(5))

    assert [Copied(KEY, 10, 2, 5, archives=1)] == copied(other, store)
    assert whole(other) == whole(store)


def test_a_retired_log_is_retired_in_the_copy_too(store: Store, other: Store) -> None:
    log = fill(other)
    log.do(Retire(), 500)
    copied(other, store)

    assert whole(other) == whole(store)
    with pytest.raises(RetiredError):
        Log(store).do(Claim())
    assert [Copied(KEY, 8, 0, 4, archives=1)] == copied(other, store)


def test_i2_nobody_below_the_fence_is_admitted_to_a_copy(store: Store, other: Store) -> None:
    fill(other)
    copied(other, store)

    with pytest.raises(StaleIncarnationError):
        Log(store).append(8, "x", incarnation=3)
    assert 5 == Log(store).claim().fence


def test_an_activation_that_was_only_taken_is_copied(store: Store, other: Store) -> None:
    Log(other).lease(3)

    assert [Copied(KEY)] == copied(other, store)
    assert Head(3, 0, 0, 0) == Log(store).head


def test_only_the_keys_that_are_named_are_copied(store: Store, other: Store) -> None:
    fill(other)
    fill(other, OTHER)

    assert [OTHER] == [one.key for one in copied(other, store, OTHER)]
    assert [OTHER] == list(store.keys())
    assert [KEY, OTHER] == [one.key for one in copied(other, store)]


class DeathError(Exception):
    """The process ends here."""


def dies_at(store: Store, step: int, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    """Every decision of `store` is a transaction, and the one of number `step` is the last, done or not."""
    transact, done = store.transact, 0

    def counting(key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        nonlocal done
        if done == step:
            raise DeathError
        done += 1
        decision = transact(key, decide, now_ms)
        if done == step and after:
            raise OutcomeUnknownError("the answer is lost")
        return decision

    monkeypatch.setattr(store, "transact", counting)
    monkeypatch.setattr(store, "transact_all", lambda *arguments: Store.transact_all(store, *arguments))


@pytest.mark.parametrize("step", range(11))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_copy_that_was_killed_at_any_step_is_a_whole_log_and_is_continued(
    other: Store, tmp_path: Path, step: int, *, after: bool
) -> None:
    log = fill(other)
    log.do(Retire(), 500)
    with open_store(sqlite_url(tmp_path)) as target:
        with pytest.MonkeyPatch.context() as patch:
            dies_at(target, step, patch, after=after)
            try:
                copied(other, target)
            except (DeathError, OutcomeUnknownError):
                pass
            else:
                assert step == 10  # it takes no more of them
        half = Log(target)
        assert list(range(half.head.next_offset)) == half.offsets
        assert half.head.fence == (log.head.fence if list(target.keys()) else None)

        assert [None] == [one.error for one in copied(other, target)]
        assert whole(other) == whole(target)


def refused(source: Store, target: Store) -> str:
    """Why the copy is refused; the target stays as it was."""
    before = whole(target)
    (one,) = copied(source, target)
    assert isinstance(one.error, KeyTakenError)
    assert before == whole(target)
    return one.error.reason.removeprefix(f"in {target.url} it ")


def test_another_content_under_the_key_is_refused_with_the_offset(store: Store, other: Store) -> None:
    fill(other)
    log = Log(store)
    log.do(AppendMany(1, 0, notes("abcX")), 100)

    assert "holds something else at offset 3" == refused(other, store)


def test_other_times_and_incarnations_are_another_content(other: Store) -> None:
    fill(other)
    for incarnation, now in ((0, 100), (1, 101)):
        with open_store("memory://") as target:
            Log(target).do(AppendMany(incarnation, 0, notes("a")), now)

            assert "holds something else at offset 0" == refused(other, target)


def test_a_target_that_went_its_own_way_is_refused(other: Store, store: Store) -> None:
    fill(other)
    copied(other, store)
    log = Log(store)
    log.do(NextTurn(4))
    assert "has begun turns up to 8" == refused(other, store)
    log.claim()
    assert "was taken by incarnation 5" == refused(other, store)
    log.append(8, "x", incarnation=5)
    assert "goes on to offset 9, here to 8" == refused(other, store)
    log.append(8, "y", incarnation=5)
    assert "was rewound" == refused(other, store)


def test_a_target_with_another_checkpoint_is_refused(other: Store, store: Store) -> None:
    fill(other)
    log = Log(store)
    log.do(AppendMany(1, 0, notes("abcd")), 100)
    log.put(checkpoint("a", 3))

    assert "holds another checkpoint 'a'" == refused(other, store)


def test_a_target_that_was_retired_by_itself_is_refused(other: Store, store: Store) -> None:
    Log(store).do(Retire())
    fill(other)

    assert "is retired" == refused(other, store)


def test_one_that_is_refused_does_not_stop_the_others(other: Store, store: Store) -> None:
    fill(other)
    fill(other, OTHER)
    Log(store).append(0, "x")

    assert [True, False] == [one.error is not None for one in copied(other, store)]
    assert whole(other, OTHER) == whole(store, OTHER)


def test_somebody_who_writes_to_the_copy_meanwhile_is_not_overwritten(
    other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(other)
    with open_store(sqlite_url(tmp_path)) as target:
        transact_all = target.transact_all

        def meddled(key: ActivationKey, decides: list[Decide], now_ms: int) -> Decision:
            decision = transact_all(key, decides, now_ms)
            monkeypatch.setattr(target, "transact_all", transact_all)
            Log(target).append(0, "mine", incarnation=4)
            return decision

        monkeypatch.setattr(target, "transact_all", meddled)
        (one,) = copied(other, target)

        assert isinstance(one.error, KeyTakenError)
        assert "is being written to" in str(one.error)
        assert "mine" == Log(target).names


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM event WHERE offset = 3", "the event at offset 3 is missing"),
        ("UPDATE event SET payload = X'7B' WHERE offset = 3", "offset 3: no event: "),
        ("DELETE FROM event WHERE offset >= 4", "the checkpoint 'top' of pik-1/implement-task is above the head"),
    ],
)
def test_a_damaged_log_is_not_copied_as_if_it_were_whole(
    tmp_path: Path, other: Store, statement: str, told: str
) -> None:
    with open_store(sqlite_url(tmp_path)) as source:
        fill(source)
        with sqlite3.connect(tmp_path / "sessions.db") as db:
            db.execute(statement)
        db.close()
        (one,) = copied(source, other)

    assert isinstance(one.error, LogCorruptionError)
    assert told in str(one.error)


def test_a_log_of_ten_thousand_events_is_copied_in_pages(tmp_path: Path, other: Store) -> None:
    log = Log(other)
    for start in range(0, 10_000, 100):
        log.do(AppendMany(1, start, tuple(note(str(start + n)) for n in range(100))), start)
    with open_store(sqlite_url(tmp_path)) as target:
        assert [Copied(KEY, 10_000, 10_000)] == copied(other, target)
        assert whole(other) == whole(target)
