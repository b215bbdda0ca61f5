"""What a projection is, how a list-like one says what changed, and the undo that makes a rewind cheap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec

from incarnate.domain.errors import OffsetError
from incarnate.domain.events import AppendedEvent
from incarnate.domain.projections.vector import Vector

__all__ = ["Change", "ListProjection", "Projection", "Reducer", "apply_change"]

T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)


class Change(msgspec.Struct, frozen=True):
    """How a list-like view changed: keep the first `keep` items, put each of `replaced` in place, then add `items`.

    `generation` is the view's after the change. The index of every `(index, item)` of `replaced` is below `keep`.
    """

    generation: int
    keep: int
    items: tuple[Any, ...]
    replaced: tuple[tuple[int, Any], ...] = ()


def apply_change(items: list[Any], change: Change) -> None:
    """Bring a reader's copy of a view up to date.

    Raises:
        ValueError: the copy is shorter than what the change keeps: it has missed one.
    """
    if change.keep > len(items):
        raise ValueError(f"the change keeps {change.keep} items of a copy that has {len(items)}: read the view again")
    del items[change.keep :]
    for index, item in change.replaced:
        items[index] = item
    items.extend(change.items)


class Projection(Protocol[V_co]):
    """A pure reducer over one log, the same for live events and for a rebuild (I7).

    `generation` is the log's rewind generation as far as the projection was told: whoever drives it sets it, and
    `rewind` adds one. `next_offset` is the only offset that `apply` takes.
    """

    generation: int
    next_offset: int

    @property
    def name(self) -> str:
        """What it computes, configuration included: two of one name have the same value after the same events."""
        ...

    @property
    def value(self) -> V_co:
        """What it came to: immutable, so that later events change nothing of it."""
        ...

    def apply(self, appended: AppendedEvent) -> Change | None:
        """Take the next event in; a list-like projection says what changed, others answer None.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        ...

    def rewind(self, offset: int) -> Change | None:
        """Forget the events from `offset` on, at a cost in proportion to what that changes.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        ...

    def fresh(self) -> Self:
        """An empty one of the same configuration, for a rebuild."""
        ...


class Reducer:
    """What every projection of ours shares: its place in the log and its name."""

    def __init__(self) -> None:
        self.generation = 0
        self.next_offset = 0

    @property
    def name(self) -> str:
        """What it computes, configuration included: two of one name have the same value after the same events."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def fresh(self) -> Self:
        """An empty one of the same configuration, for a rebuild."""
        return type(self)()

    def _expect(self, offset: int) -> None:
        if offset != self.next_offset:
            raise OffsetError(f"{type(self).__name__} has come to offset {self.next_offset}; it cannot take {offset}")

    def _expect_cut(self, offset: int) -> None:
        if not 0 <= offset <= self.next_offset:
            raise OffsetError(
                f"{type(self).__name__} has come to offset {self.next_offset}; it cannot be rewound to {offset}"
            )


_Undo = tuple[tuple[Any, ...], tuple[tuple[int, Any], ...]]


class ListProjection(Reducer, ABC, Generic[T]):
    """The base of list-like projections: a subclass says how an event changes the list, this keeps list and undo.

    The undo is the length after each event (eight bytes), and what was dropped or replaced for the few events that
    did more than add. A subclass with state of its own restores it in `_forget`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: Vector[T] = Vector()
        self._lengths = array("q")
        self._undo: dict[int, _Undo] = {}

    @property
    def value(self) -> Vector[T]:
        """The list as it is now: a snapshot in O(1), which later events do not touch."""
        return self._items

    def apply(self, appended: AppendedEvent) -> Change:
        """Take the next event in and say what changed.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._expect(appended.offset)
        change = self._reduce(appended)
        items = self._items
        added = change.items
        if change.keep < len(items) or change.replaced:
            items = self._edited(change)
        if len(added) == 1:
            items = items.append(added[0])
        elif added:
            items = items.extend(added)
        self._items = items
        self._lengths.append(len(items))
        self.next_offset += 1
        return change

    def rewind(self, offset: int) -> Change:
        """Forget the events from `offset` on and say what that changed.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        items = self._items
        keep = len(items)
        touched: set[int] = set()
        for undone in range(self.next_offset - 1, offset - 1, -1):
            self._forget(undone)
            undo = self._undo.pop(undone, None)
            if undo is not None:
                # Events that only added need nothing: `take` drops what they and their successors left.
                dropped, replaced = undo
                kept = self._length_at(undone) - len(dropped)
                keep = min(keep, kept)
                items = items.take(kept).extend(dropped)
                for index, item in replaced:
                    items = items.set(index, item)
                    touched.add(index)
        del self._lengths[offset:]
        self._items = items = items.take(self._length_at(offset))
        self.next_offset = offset
        self.generation += 1
        keep = min(keep, len(items))
        restored = tuple((index, items[index]) for index in sorted(touched) if index < keep)
        return Change(self.generation, keep, items[keep:], restored)

    @abstractmethod
    def _reduce(self, appended: AppendedEvent) -> Change:
        """How an event changes the list, `self._items`, which is still as it was before it.

        It is called once for each event. If it raises it must have changed nothing of the subclass's own state.
        """

    def _forget(self, offset: int) -> None:
        """Restore the subclass's own state to before the event at `offset`; called for the newest first.

        Meanwhile `self._items` is still the list before the rewind.
        """

    def _added(self, *items: T) -> Change:
        """The change of an event that does no more than add `items`; without any, one that changes nothing."""
        return Change(self.generation, len(self._items), items)

    def _edited(self, change: Change) -> Vector[T]:
        """The list with the dropped and replaced items of `change` applied, and their undo written down."""
        items = self._items
        replaced = tuple((index, items[index]) for index, _ in change.replaced)
        self._undo[self.next_offset] = (items[change.keep :], replaced)
        items = items.take(change.keep)
        for index, item in change.replaced:
            items = items.set(index, item)
        return items

    def _length_at(self, offset: int) -> int:
        """How long the list was before the event at `offset`."""
        return self._lengths[offset - 1] if offset else 0
