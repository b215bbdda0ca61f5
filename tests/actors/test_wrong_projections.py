"""Whatever a user's projection does wrong, who asks for the view is told, and nobody waits for ever."""

from collections.abc import Iterator
from typing import Any, Self

import pytest

from incarnate import (
    ActivationKey,
    AppendedEvent,
    BackingOffError,
    ClosedError,
    SessionSystem,
    UserMessage,
    ViewFailedError,
)
from incarnate.actors.dispatchers import DispatcherName

KEY = ActivationKey("pik", "task")


class Texts:
    """A projection as a user writes one."""

    name = "texts"
    generation = 0
    next_offset = 0

    def __init__(self) -> None:
        self.texts: list[str] = []

    @property
    def value(self) -> tuple[str, ...]:
        return tuple(self.texts)

    def apply(self, appended: AppendedEvent) -> None:
        assert isinstance(appended.event, UserMessage)
        self.texts.append(appended.event.text)
        self.next_offset = appended.offset + 1

    def rewind(self, offset: int) -> None:
        del self.texts[offset:]
        self.next_offset = offset
        self.generation += 1

    def fresh(self) -> Self:
        return type(self)()


class Stops(Texts):
    def apply(self, appended: AppendedEvent) -> None:
        raise StopIteration(appended)


class StandsStill(Texts):
    def apply(self, appended: AppendedEvent) -> None:
        self.texts.append(str(appended.offset))


class RewindsNothing(Texts):
    def rewind(self, offset: int) -> None:
        del self.texts[offset:]
        self.generation += 1


class HasNoValue(Texts):
    @property
    def value(self) -> tuple[str, ...]:
        raise LookupError


class CannotBeMade(Texts):
    def fresh(self) -> Self:
        raise LookupError


class MakesNothing(Texts):
    def fresh(self) -> Self:
        nothing: Any = None
        return nothing  # type: ignore[no-any-return]


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        session = opened.claim(KEY)
        session.checkpoint("4f2a91c")
        session.emit_many([UserMessage(id=text, parent_id=None, text=text) for text in "ab"])
        yield opened


def test_one_as_it_should_be_is_taken(system: SessionSystem) -> None:
    assert ("a", "b") == system.view(KEY, Texts()).get()


def test_a_stop_iteration_of_apply_is_a_failure_like_any_other(system: SessionSystem) -> None:
    with pytest.raises(ViewFailedError, match="StopIteration"):
        system.view(KEY, Stops()).get()


def test_an_apply_that_does_not_move_next_offset_is_told(system: SessionSystem) -> None:
    with pytest.raises(ViewFailedError, match="apply left next_offset at 0 where it must be 2"):
        system.view(KEY, StandsStill()).get()


def test_a_rewind_that_does_not_move_next_offset_is_told(system: SessionSystem) -> None:
    view = system.view(KEY, RewindsNothing())
    view.get()
    session = system.claim(KEY)
    session.restore()
    session.emit(UserMessage(id="c", parent_id=None, text="c"))

    with pytest.raises(ViewFailedError, match="rewind left next_offset at 2 where it must be 0"):
        view.get()


def test_a_fresh_that_raises_is_a_failure_of_the_view(system: SessionSystem) -> None:
    with pytest.raises(ViewFailedError, match=r"view texts of pik/task could not be made: LookupError\(\)"):
        system.view(KEY, CannotBeMade()).get()


@pytest.mark.parametrize("dispatcher", ["calling", "thread"])
@pytest.mark.parametrize("projection", [HasNoValue(), CannotBeMade(), MakesNothing()])
def test_whoever_follows_a_view_that_fails_can_leave_and_the_system_be_closed(
    projection: Texts, dispatcher: DispatcherName
) -> None:
    """It took the close with it: the store stayed open."""
    system = SessionSystem.open("memory://", dispatcher=dispatcher)
    system.claim(KEY).emit(UserMessage(id="a", parent_id=None, text="a"))
    view = system.view(KEY, projection)
    left, stays = view.changes(), view.changes()
    for changes in (left, stays, left, stays, left):
        with pytest.raises((ViewFailedError, BackingOffError)):
            changes.next(timeout=10)
    left.close()
    system.close()

    with pytest.raises(ClosedError):
        system.claim(KEY)
