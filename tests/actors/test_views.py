"""Views: level with the log, whoever wrote it and whatever failed."""

import contextlib
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pykka
import pytest

from incarnate import (
    ActivationKey,
    AppendedEvent,
    Change,
    ClosedError,
    LogCorruptionError,
    ModelHistory,
    SessionSystem,
    ToolResult,
    UserMessage,
    ViewBehindError,
    ViewChanged,
    ViewFailedError,
    ViewReset,
    apply_change,
)
from incarnate.actors.dispatchers import DispatcherName
from incarnate.domain.heads import Head
from incarnate.domain.notices import Appended
from incarnate.domain.projections.base import ListProjection, Reducer
from incarnate.domain.projections.model_valid import Diagnostics

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> UserMessage:
    return UserMessage(id=text, parent_id=None, text=text)


class Ids(ListProjection[str]):
    """The ids of the events: the plainest view that shows order, gaps and doubles."""

    def _reduce(self, appended: AppendedEvent) -> Change:
        return self._added(appended.event.id)


class Count(Reducer):
    """A view that is no list."""

    @property
    def value(self) -> int:
        return self.next_offset

    def apply(self, appended: AppendedEvent) -> None:
        self._expect(appended.offset)
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        self._expect_cut(offset)
        self.next_offset = offset
        self.generation += 1


class FailsOnce(Ids):
    """Raises at the first event whose id is `bad`, and never again."""

    failed = False

    def _reduce(self, appended: AppendedEvent) -> Change:
        if appended.event.id == "bad" and not FailsOnce.failed:
            FailsOnce.failed = True
            raise ZeroDivisionError
        return super()._reduce(appended)


def follow_until(changes: Any, copy: list[Any], done: Callable[[list[Any]], bool]) -> list[Any]:
    """Apply changes to `copy` until it looks as it should; fails by the stream's own silence."""
    while not done(copy):
        change = changes.next(timeout=10)
        assert change is not None, f"no change came; the copy stands at {copy[-3:]}"
        apply_change(copy, change)
    return copy


def test_get_includes_everything_acknowledged_before_it(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    for number in range(200):
        session.emit(said(str(number)))

        assert str(number) == view.get()[-1]
    assert list(map(str, range(200))) == list(view.get())


def test_a_snapshot_stays_as_it_was(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    session.emit(said("a"))
    before = view.get()
    session.restore(rewind=True)
    session.emit(said("b"))

    assert (["a"], ["b"]) == (list(before), list(view.get()))


def test_a_view_begun_late_catches_up(system: SessionSystem) -> None:
    system.claim(KEY).emit_many([said(str(number)) for number in range(2500)])

    assert list(map(str, range(2500))) == list(system.view(KEY, Ids()).get())


def test_one_view_a_key_and_projection(system: SessionSystem) -> None:
    view = system.view(KEY, Ids())

    assert view is system.view(KEY, Ids())
    assert view is not system.view(KEY, FailsOnce())
    assert view is not system.view(ActivationKey("pik-2", "x"), Ids())


def test_a_view_follows_rewinds_and_take_overs(system: SessionSystem) -> None:
    view = system.view(KEY, Ids())
    first = system.claim(KEY)
    first.emit_many([said("a"), said("b")])
    first.checkpoint("sha")
    first.emit(said("lost"))
    view.get()
    second = system.claim(KEY)
    second.restore()
    second.emit(said("c"))

    assert ["a", "b", "c"] == list(view.get())


def test_a_view_that_missed_several_rewinds_is_right(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said(str(number)) for number in range(10)])
    session.checkpoint("sha")
    view = system.view(KEY, Ids())
    view.get()
    for number in range(100):
        if number % 20 == 0:
            session.restore()
        session.emit_many([said(f"x{number}")] * 50)  # 5,000 in all, more than a tap keeps

    assert [one.event.id for one in system.replay(KEY)] == list(view.get())


def test_a_view_covers_what_another_system_wrote(tmp_path: Path, dispatcher: DispatcherName) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionSystem.open(url, dispatcher=dispatcher) as mine, SessionSystem.open(url) as theirs:
        ours = mine.claim(KEY)
        ours.emit(said("a"))
        view = mine.view(KEY, Ids())
        assert ["a"] == list(view.get())
        other = theirs.claim(KEY)
        other.emit(said("b"))
        assert ["a", "b"] == list(view.get())
        other.restore(rewind=True)
        other.emit(said("c"))
        assert ["c"] == list(view.get())


def test_changes_hear_of_what_another_system_wrote(tmp_path: Path, dispatcher: DispatcherName) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with (
        SessionSystem.open(url, dispatcher=dispatcher) as mine,
        SessionSystem.open(url) as theirs,
        mine.view(KEY, Ids()).changes() as changes,
    ):
        copy: list[str] = []
        apply_change(copy, next(changes))
        theirs.claim(KEY).emit(said("a"))

        assert ["a"] == follow_until(changes, copy, bool)


def test_a_view_of_a_read_only_system_follows_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionSystem.open(url) as writer, SessionSystem.open(url, read_only=True) as reader:
        writer.claim(KEY).emit(said("a"))
        view = reader.view(KEY, Ids())

        assert ["a"] == list(view.get())
        writer.claim(KEY).emit(said("b"))
        assert ["a", "b"] == list(view.get())


def test_get_waits_for_a_position(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    waiting, got = threading.Event(), []

    def wait() -> None:
        waiting.set()
        got.append(list(view.get(at_least=(0, 3), timeout=10)))

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    for text in "abc":
        session.emit(said(text))
    thread.join(10)

    assert [["a", "b", "c"]] == got


def test_get_is_satisfied_by_a_later_generation(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_many([said("a"), said("b")])
    session.restore(rewind=True)
    session.emit(said("c"))

    assert ["c"] == list(system.view(KEY, Ids()).get(at_least=(0, 2), timeout=10))


def test_get_of_a_position_that_never_comes_is_told(system: SessionSystem) -> None:
    with pytest.raises(ViewBehindError, match=r"stands at \(0, 0\) after 0\.01 seconds; \(0, 1\) was asked for"):
        system.view(KEY, Ids()).get(at_least=(0, 1), timeout=0.01)


def test_changes_begin_with_the_view_as_it_is(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit(said("a"))
    with system.view(KEY, Ids()).changes() as changes:
        assert Change(0, 0, ("a",)) == next(changes)
        session.emit_many([said("b"), said("c")])
        assert [Change(0, 1, ("b",)), Change(0, 2, ("c",))] == [next(changes), next(changes)]
        session.restore(rewind=True)
        session.emit(said("d"))
        assert [Change(1, 0, ()), Change(1, 0, ("d",))] == [next(changes), next(changes)]


def test_a_view_that_is_no_list_changes_as_a_list_of_one(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Count())
    with view.changes() as changes:
        assert Change(0, 0, (0,)) == next(changes)
        session.emit(said("a"))
        assert Change(0, 0, (1,)) == next(changes)
    assert view.get() == 1


def test_a_consumer_that_fell_behind_gets_the_whole_view_and_holds_up_nobody(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    with view.changes() as changes:
        copy: list[str] = []
        apply_change(copy, next(changes))
        for start in range(0, 3000, 100):
            session.emit_many([said(str(number)) for number in range(start, start + 100)])
            view.get()

        assert list(map(str, range(3000))) == follow_until(changes, copy, lambda copy: len(copy) == 3000)


def test_closing_a_stream_ends_its_iteration(system: SessionSystem) -> None:
    changes = system.view(KEY, Ids()).changes()
    next(changes)
    thread = threading.Thread(target=lambda: list(changes))
    thread.start()
    changes.close()
    thread.join(10)

    assert not thread.is_alive()


def test_closing_the_system_ends_every_iteration(url: str, dispatcher: DispatcherName) -> None:
    system = SessionSystem.open(url, dispatcher=dispatcher)
    view = system.view(KEY, Ids())
    changes = view.changes()
    next(changes)
    thread = threading.Thread(target=lambda: list(changes))
    thread.start()
    system.close()
    thread.join(10)

    assert not thread.is_alive()
    with pytest.raises(ClosedError):
        view.get()


def test_several_followers_of_several_views_on_one_activation(system: SessionSystem) -> None:
    session = system.claim(KEY)
    streams = [system.view(KEY, projection).changes() for projection in (Ids(), Ids(), FailsOnce())]
    copies: list[list[str]] = [[] for _ in streams]
    for stream, copy in zip(streams, copies, strict=True):
        apply_change(copy, next(stream))
    session.emit_many([said("a"), said("b")])

    for stream, copy in zip(streams, copies, strict=True):
        assert ["a", "b"] == follow_until(stream, copy, lambda copy: len(copy) == 2)
        stream.close()


class Refuses(Ids):
    """Refuses the event whose id is `bad` as often as it comes."""

    def _reduce(self, appended: AppendedEvent) -> Change:
        if appended.event.id == "bad":
            raise LogCorruptionError("offset 2", "it is bad")
        return super()._reduce(appended)


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "read"])
def test_followers_hear_of_what_came_before_an_event_that_was_refused(url: str, *, noticed: bool) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        view = system.view(KEY, Refuses())
        with view.changes() as changes:
            copy: list[str] = []
            apply_change(copy, next(changes))
            if not noticed:
                view.tap.tell(Appended(Head(1, 8, 0, 0), None, (AppendedEvent(7, 1, 0, said("a gap")),)))
            session.emit_many([said("a"), said("b"), said("bad"), said("c")])
            with contextlib.suppress(LogCorruptionError):  # or the watch was first to meet it
                view.get()

            assert ["a", "b"] == follow_until(changes, copy, lambda copy: len(copy) == 2)


def test_a_burst_of_events_is_one_change_of_a_view_that_is_no_list(system: SessionSystem) -> None:
    session = system.claim(KEY)
    with system.view(KEY, Count()).changes() as changes:
        next(changes)
        session.emit_many([said("a"), said("b"), said("c")])

        assert Change(0, 0, (3,)) == next(changes)


def test_diagnostics_are_level_with_the_log(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, ModelHistory())
    assert Diagnostics() == view.diagnostics()
    session.checkpoint("sha")
    session.emit(said(" "))
    assert Diagnostics(blanks=1) == view.diagnostics()
    session.restore()
    session.emit(ToolResult(id="r", parent_id=None, call_id="never-called", ok=True, result=1))

    assert Diagnostics(orphans=1) == view.diagnostics()


def test_diagnostics_cover_what_another_system_wrote(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionSystem.open(url) as mine, SessionSystem.open(url) as theirs:
        view = mine.view(KEY, ModelHistory())
        assert Diagnostics() == view.diagnostics()
        theirs.claim(KEY).emit(said(" "))

        assert Diagnostics(blanks=1) == view.diagnostics()


def test_a_projection_without_diagnostics_has_none(system: SessionSystem) -> None:
    assert system.view(KEY, Ids()).diagnostics() is None


def test_a_failed_view_is_rebuilt_and_its_followers_begin_anew(system: SessionSystem) -> None:
    FailsOnce.failed = False
    session = system.claim(KEY)
    view = system.view(KEY, FailsOnce())
    with view.changes() as changes:
        copy: list[str] = []
        apply_change(copy, next(changes))
        session.emit_many([said("a"), said("bad"), said("b")])
        with contextlib.suppress(ViewFailedError):  # or the watch was first to meet the failure
            view.get()

        assert ["a", "bad", "b"] == list(view.get())
        assert ["a", "bad", "b"] == follow_until(changes, copy, lambda copy: len(copy) == 3)


class Listening(pykka.ThreadingActor):
    """Keeps a copy of a view by what it is told; can be held up."""

    use_daemon_thread = True

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()
        self.copy: list[Any] = []
        self.resets = 0
        self.grown = threading.Condition()

    def on_receive(self, message: Any) -> Any:
        if message == "self":
            return self
        self.go.wait(10)
        with self.grown:
            if isinstance(message, ViewReset):
                self.resets += 1
            assert isinstance(message, (ViewReset, ViewChanged))
            apply_change(self.copy, message.change)
            self.grown.notify_all()
        return None

    def wait_for(self, length: int) -> bool:
        with self.grown:
            return self.grown.wait_for(lambda: len(self.copy) == length, 10)


@pytest.fixture
def listener() -> Generator[pykka.ActorRef[Listening]]:
    ref = Listening.start()
    actor: Any = ref.ask("self")
    yield ref
    actor.go.set()
    ref.stop()


def test_an_actor_is_told_of_changes(system: SessionSystem, listener: pykka.ActorRef[Listening]) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    view.subscribe(listener)
    session.emit_many([said("a"), said("b")])
    actor: Any = listener.ask("self")

    assert actor.wait_for(2)
    view.unsubscribe(listener)
    session.emit(said("c"))
    assert len(view.get()) == 3
    assert (["a", "b"], 1) == (actor.copy, actor.resets)


def test_a_slow_actor_is_told_to_begin_anew_and_its_inbox_stays_bounded(
    system: SessionSystem, listener: pykka.ActorRef[Listening]
) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    view.subscribe(listener)
    actor: Any = listener.ask("self")
    actor.go.clear()
    for start in range(0, 4000, 200):
        session.emit_many([said(str(number)) for number in range(start, start + 200)])
        view.get()
    waiting: Any = listener.actor_inbox

    assert waiting.qsize() <= 1026
    actor.go.set()
    assert actor.wait_for(4000)
    assert actor.resets == 2


def test_an_actor_that_stopped_is_let_go_of(system: SessionSystem, listener: pykka.ActorRef[Listening]) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    view.subscribe(listener)
    listener.stop()
    session.emit(said("a"))

    assert ["a"] == list(view.get())
    assert not view._followers  # noqa: SLF001


def test_a_listener_whose_reference_raises_is_let_go_of_and_fails_no_view(system: SessionSystem) -> None:
    class Unreachable(pykka.ThreadingActor):
        pass

    session = system.claim(KEY)
    view = system.view(KEY, Ids())
    ref = Unreachable.start()
    with pytest.MonkeyPatch.context() as patch:
        view.subscribe(ref)
        patch.setattr(ref, "tell", lambda _message: 1 / 0)
        session.emit(said("a"))
        assert ["a"] == list(view.get())
        session.emit(said("b"))

    assert ["a", "b"] == list(view.get())
    assert {} == system.metrics().failures
    ref.stop()
