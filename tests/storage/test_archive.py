"""What a rewind superseded, forks, retirement and sweeps: one contract over every back end."""

import pytest

from incarnate import (
    ActivationKey,
    AppendMany,
    Claim,
    Head,
    KeyTakenError,
    Lease,
    OffsetError,
    Retire,
    RetiredError,
    Rewind,
    StaleIncarnationError,
    Swept,
)
from incarnate.storage.port import Store
from tests.support.stores import Log, checkpoint, notes

KEY, FORK = ActivationKey("pik", "task"), ActivationKey("pik", "fork")
ALL = 2**53


def append(log: Log, offset: int, names: str, now: int) -> None:
    log.do(AppendMany(1, offset, notes(names)), now)


def superseded(store: Store, generation: int, start: int = 0, stop: int = ALL, max_bytes: int = ALL) -> list[str]:
    with store.snapshot(KEY) as log:
        return [appended.event.id for appended in log.superseded(generation, start, stop, max_bytes)]


def rewinds(store: Store) -> list[Rewind]:
    with store.snapshot(KEY) as log:
        return list(log.rewinds())


def test_i4_a_rewind_leaves_what_it_superseded_in_the_archive(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "abc")
    append(log, 1, "d", 5)
    log.append(2, "e")
    append(log, 0, "f", 9)

    assert log.names == "f"
    assert [Rewind(1, 1, 3, 1, 5), Rewind(2, 0, 3, 1, 9)] == rewinds(store)
    assert ["b", "c"] == superseded(store, 1)
    assert ["a", "d", "e"] == superseded(store, 2)
    assert [] == superseded(store, 3)


def test_an_archive_is_read_in_pages(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "abcde")
    log.append(1, "x")

    assert ["c", "d"] == superseded(store, 1, 2, 4)
    assert ["b"] == superseded(store, 1, 0, ALL, 1)


def test_a_fork_holds_the_prefix_its_checkpoints_fence_and_turns(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "ab")
    kept = log.put(checkpoint("cp-1", 2))
    log.append(2, "c")
    log.put(checkpoint("cp-2", 3))
    head = store.fork(KEY, FORK, 2, 7)
    forked = Log(store, FORK)

    assert Head(1, 2, 0, 0) == head == forked.head
    assert forked.names == "ab"
    with store.snapshot(FORK) as snapshot:
        assert kept == snapshot.latest_checkpoint()
        assert [] == list(snapshot.rewinds())
    assert log.names == "abc"


def test_a_fork_and_its_source_go_separate_ways(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "ab")
    store.fork(KEY, FORK, 1, 7)
    forked = Log(store, FORK)
    log.append(0, "x")
    forked.append(1, "y")

    assert ("x", "ay") == (log.names, forked.names)


@pytest.mark.parametrize("offset", [-1, 3, 2**53])
def test_a_fork_above_the_head_is_refused(store: Store, offset: int) -> None:
    Log(store, KEY).append(0, "ab")
    with pytest.raises(OffsetError):
        store.fork(KEY, FORK, offset, 7)

    assert Log(store, FORK).head.fence is None


def test_a_fork_onto_a_key_that_was_touched_is_refused(store: Store) -> None:
    Log(store, KEY).append(0, "ab")
    Log(store, FORK).do(Claim())
    for taken in (FORK, KEY):
        with pytest.raises(KeyTakenError):
            store.fork(KEY, taken, 1, 7)


def test_a_fork_of_nothing_at_0_is_an_empty_activation(store: Store) -> None:
    assert Head(None, 0, 0, 0) == store.fork(KEY, FORK, 0, 7)
    with pytest.raises(KeyTakenError):
        store.fork(KEY, FORK, 0, 7)


def test_a_retired_log_is_closed_for_ever_and_still_read(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "ab")
    head = log.do(Retire())

    assert Head(2, 2, 0, 0, retired=True) == head == log.head == log.do(Retire())
    for command in (Claim(), Lease(2), Lease(9)):
        with pytest.raises(RetiredError):
            log.do(command)
    with pytest.raises(StaleIncarnationError):
        log.append(2, "c")
    assert log.names == "ab"
    assert head == log.head


def test_a_sweep_removes_old_retired_activations_and_keeps_their_fence(store: Store) -> None:
    old, young, live = (ActivationKey("pik", name) for name in ("old", "young", "live"))
    for key in (old, young, live):
        Log(store, key).append(0, "ab")
    Log(store, old).do(Retire(), 5)
    Log(store, young).do(Retire(), 10)

    assert Swept(1, 0, 2) == store.sweep(10)
    assert [live, young] == [info.key for info in store.activations()]
    assert ("", "ab") == (Log(store, old).names, Log(store, young).names)
    with pytest.raises(RetiredError):
        Log(store, old).do(Claim())
    assert Swept(0, 0, 0) == store.sweep(10)


def test_a_sweep_removes_old_archives_and_keeps_their_cuts(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "ab")
    append(log, 1, "c", 5)
    append(log, 0, "d", 10)

    assert Swept(0, 1, 1) == store.sweep(10)
    assert [Rewind(1, 1, 2, 1, 5, swept=True), Rewind(2, 0, 2, 1, 10)] == rewinds(store)
    assert ([], ["a", "c"]) == (superseded(store, 1), superseded(store, 2))
    assert log.names == "d"
    with store.snapshot(KEY) as snapshot:
        assert snapshot.lowest_cut(0) == 0


def test_a_sweep_of_a_retired_activation_takes_its_archives_too(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "ab")
    append(log, 1, "c", 50)
    log.do(Retire(), 5)

    assert Swept(1, 1, 3) == store.sweep(10)


def test_vacuum_changes_nothing_that_can_be_read(store: Store) -> None:
    log = Log(store, KEY)
    log.append(0, "abc")
    log.append(1, "d")
    store.sweep(ALL)
    store.vacuum()

    assert log.names == "ad"
    log.append(2, "e")
    assert log.names == "ade"
