"""The session handle: what a supervisor sees."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    CheckpointError,
    EffectEntry,
    GetCheckpoint,
    GetHead,
    HeadMovedError,
    LogRewoundError,
    OffsetError,
    Replay,
    SessionSystem,
    StaleIncarnationError,
    TurnStart,
    UnencodableEventError,
    WouldRewindError,
)

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def texts(system: SessionSystem, key: ActivationKey = KEY) -> list[str]:
    return [appended.event.id for appended in system.replay(key)]


def test_emit_appends_at_the_head_and_answers_with_the_stored_event(system: SessionSystem) -> None:
    session = system.lease(KEY, incarnation=3)
    appended = session.emit(said("a"))

    assert (0, 3, said("a")) == (appended.offset, appended.incarnation, appended.event)
    assert (KEY, 3, 1) == (session.key, session.incarnation, session.next_offset)


def test_emit_many_is_all_or_none(system: SessionSystem) -> None:
    session = system.claim(KEY)
    with pytest.raises(UnencodableEventError):
        session.emit_many([said("a"), said("\ud800")])
    appended = session.emit_many([said("b"), said("c")])

    assert [0, 1] == [one.offset for one in appended]
    assert ["b", "c"] == texts(system)


def test_emit_many_of_nothing_is_nothing(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit(said("a"))
    session.restore()

    assert session.emit_many([]) == ()
    assert ["a"] == texts(system)


def test_a_zombie_is_refused_at_its_next_write(system: SessionSystem) -> None:
    zombie = system.claim(KEY)
    system.claim(KEY)
    for write in (
        lambda: zombie.emit(said("z")),
        lambda: zombie.emit_many([said("z")]),
        lambda: zombie.checkpoint("sha"),
        zombie.next_turn,
    ):
        with pytest.raises(StaleIncarnationError) as refused:
            write()

        assert (1, 2) == (refused.value.incarnation, refused.value.current)
    assert [] == texts(system)


def test_restore_hands_back_the_checkpoint_and_the_next_emit_supersedes_what_lies_above(system: SessionSystem) -> None:
    first = system.claim(KEY)
    first.emit(said("a"))
    taken = first.checkpoint("sha-1", [EffectEntry(id="x", kind="git-push", detail={"branch": "main"})])
    first.emit_many([said("b"), said("c")])
    second = system.claim(KEY)
    seed = second.restore()

    assert taken == seed.checkpoint
    assert ([said("a")], 1, 2) == ([one.event for one in seed.events], seed.next_offset, seed.discards)
    assert second.next_offset == 1
    second.emit(said("d"))
    second.emit(said("e"))
    assert ["a", "d", "e"] == texts(system)
    assert system.activation(KEY).ask(GetHead()).generation == 1


def test_restore_of_a_named_checkpoint_and_of_an_unknown_one(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit(said("a"))
    older = session.checkpoint("sha-1")
    session.emit(said("b"))
    newer = session.checkpoint("sha-2")

    assert older == session.restore(older.id).checkpoint
    assert newer == session.restore("unknown").checkpoint


def test_restore_prunes_nothing_until_the_next_write(system: SessionSystem) -> None:
    session = system.claim(KEY)
    older = session.checkpoint("sha-0")
    session.emit(said("a"))
    newer = session.checkpoint("sha-1")
    session.restore(older.id)

    assert newer == system.activation(KEY).ask(GetCheckpoint(newer.id))
    session.emit(said("b"))
    assert system.activation(KEY).ask(GetCheckpoint(newer.id)) is None


def test_a_log_without_a_checkpoint_is_not_erased_by_accident(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said("a"), said("b")])
    seed = session.restore()

    assert (None, (), 0, 2) == (seed.checkpoint, seed.events, seed.next_offset, seed.discards)
    for write in (lambda: session.emit(said("c")), lambda: session.checkpoint("sha")):
        with pytest.raises(WouldRewindError) as refused:
            write()

        assert refused.value.discards == 2
    assert ["a", "b"] == texts(system)


def test_it_is_erased_when_asked_for(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said("a"), said("b")])
    session.restore(rewind=True)
    session.emit(said("c"))

    assert ["c"] == texts(system)


def test_restore_of_an_empty_log_goes_on_at_0(system: SessionSystem) -> None:
    session = system.claim(KEY)

    assert session.restore().next_offset == 0
    assert session.emit(said("a")).offset == 0


def test_two_handles_of_one_incarnation_never_rewind_each_other(system: SessionSystem) -> None:
    one, other = system.lease(KEY, 1), system.lease(KEY, 1)
    one.emit(said("a"))
    with pytest.raises(HeadMovedError) as refused:
        other.emit(said("b"))

    assert ((0, 0), (0, 1)) == (refused.value.expected, refused.value.current)
    system.lease(KEY, 1).emit(said("c"))
    assert ["a", "c"] == texts(system)


def test_turn_numbers_are_never_used_again(system: SessionSystem) -> None:
    session = system.claim(KEY)

    assert (0, "turn-1") == (session.next_turn(), session.next_turn_id())
    session.emit(TurnStart(id="t", parent_id=None, turn=6))
    session.restore(rewind=True)
    session.emit(said("a"))
    assert system.claim(KEY).next_turn() == 7


def test_a_checkpoint_id_that_is_taken_is_told(url: str) -> None:
    with SessionSystem.open(url, new_id=lambda: "cp", clock=lambda: 0) as system:
        session = system.claim(KEY)
        taken = session.checkpoint("sha-1")

        assert taken == session.checkpoint("sha-1")
        with pytest.raises(CheckpointError):
            session.checkpoint("sha-2")


def test_a_handle_is_shared_by_threads_without_a_gap(system: SessionSystem) -> None:
    session = system.claim(KEY)
    numbers = itertools.count()

    def write() -> None:
        for _ in range(25):
            session.emit(said(str(next(numbers))))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, range(100))) == sorted(texts(system))


def test_on_fenced_is_called_once_when_a_newer_incarnation_takes_over(system: SessionSystem) -> None:
    session = system.claim(KEY)
    calls: list[None] = []
    called = threading.Event()

    def callback() -> None:
        calls.append(None)
        called.set()

    session.on_fenced(callback)
    system.lease(KEY, 1)
    assert not calls
    system.claim(KEY)
    assert called.wait(5)
    system.claim(KEY)
    late = threading.Event()
    session.on_fenced(late.set)
    assert late.wait(5)
    assert len(calls) == 1


def test_a_failing_callback_of_on_fenced_does_not_stop_the_next(system: SessionSystem) -> None:
    session = system.claim(KEY)
    called = threading.Event()
    session.on_fenced(lambda: 1 / 0)
    session.on_fenced(called.set)
    system.claim(KEY)

    assert called.wait(5)


def test_on_fenced_hears_of_a_take_over_through_another_system(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionSystem.open(url) as mine, SessionSystem.open(url) as theirs:
        called = threading.Event()
        mine.claim(KEY).on_fenced(called.set)
        theirs.claim(KEY)

        assert called.wait(5)


def test_a_replay_stops_at_the_head_it_began_with(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said("a"), said("b")])
    replay = system.replay(KEY)
    session.emit(said("c"))

    assert ["a", "b"] == [one.event.id for one in replay]


def test_a_replay_of_a_range(system: SessionSystem) -> None:
    system.claim(KEY).emit_many([said(text) for text in "abcd"])

    assert ["b", "c"] == [one.event.id for one in system.replay(KEY, 1, 3)]
    assert [] == list(system.replay(KEY, 4, 9))
    assert [] == list(system.replay(ActivationKey("nobody", "nothing")))


@pytest.mark.parametrize(("start", "stop"), [(-1, None), (2, 1)])
def test_an_impossible_range_is_refused_at_once(system: SessionSystem, start: int, stop: int | None) -> None:
    refusals: list[Callable[[], object]] = [
        lambda: system.replay(KEY, start, stop),
        lambda: system.activation(KEY).ask(Replay(start, stop)),
    ]
    for refusal in refusals:
        with pytest.raises(OffsetError):
            refusal()


def test_a_rewind_below_what_a_replay_gave_is_told(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said(str(number)) for number in range(1500)])
    replay = system.replay(KEY)
    given = [next(replay) for _ in range(1000)]
    session.restore(rewind=True)
    session.emit(said("new"))
    with pytest.raises(LogRewoundError) as told:
        next(replay)

    assert (1000, 0, 1000) == (len(given), told.value.cut, told.value.given)


def test_a_rewind_above_what_a_replay_gave_is_followed(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said(str(number)) for number in range(1200)])
    session.checkpoint("sha")
    session.emit_many([said("old")] * 300)
    replay = system.replay(KEY)
    given = [next(replay) for _ in range(1000)]
    session.restore()
    session.emit(said("new"))
    rest = list(replay)

    assert [*map(str, range(1200)), "new"] == [one.event.id for one in [*given, *rest]]


def test_activations_are_listed_in_the_order_of_their_keys(system: SessionSystem) -> None:
    keys = [ActivationKey(pik, element) for pik in ("b", "a/", "a") for element in ("2", "1")]
    for key in keys:
        system.claim(key)

    assert sorted(keys) == [info.key for info in system.activations()]
