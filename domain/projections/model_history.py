"""What the model may see of a session, kept as it grows."""

from __future__ import annotations

from array import array
from typing import Literal, Protocol, Self

from msgspec import Struct

from incarnate.domain.events import AppendedEvent
from incarnate.domain.projections.base import Change, Reducer
from incarnate.domain.projections.model_messages import Message
from incarnate.domain.projections.model_reference import ReferenceBalance
from incarnate.domain.projections.model_undo import SEAL_EVERY, UndoStack
from incarnate.domain.projections.model_valid import Diagnostics, ValidBalance
from incarnate.domain.projections.vector import Vector

__all__ = ["Balancing", "ModelHistory"]

Balancing = Literal["valid", "reference"]


class _Balance(Protocol):
    @property
    def diagnostics(self) -> Diagnostics: ...

    def reduce(self, appended: AppendedEvent, items: Vector[Message], size: int, generation: int) -> Change:
        """How the next event changes `items`."""
        ...

    def forget(self, offset: int) -> None:
        """Undo what the newest event changed of its own state."""
        ...

    def seal(self) -> None:
        """Seal its undo."""
        ...


class _Put(Struct, frozen=True, gc=False):
    """The undo of an event that replaced one message: which, and what stood there."""

    index: int
    message: Message


class _Cut(Struct, frozen=True, gc=False):
    """The undo of any other event that did not only add messages: what it dropped from the end and what it replaced."""

    dropped: tuple[Message, ...]
    puts: tuple[_Put, ...]


_BALANCES: dict[Balancing, type[ValidBalance | ReferenceBalance]] = {
    "valid": ValidBalance,
    "reference": ReferenceBalance,
}

_FEW = 2  # a call and its placeholder: appended one by one they cost less than an extension


class ModelHistory(Reducer):
    """The messages that the model may see: a `Vector` of `Message`, kept as the log grows and rewinds.

    `balancing="valid"` is what a provider accepts after any crash (the rules: `model_valid`), for use with
    `to_openai_chat`, `to_openai_responses` and `to_anthropic`. `"reference"` is the reference's own history to the
    letter (`model_reference`).
    """

    def __init__(self, balancing: Balancing = "valid") -> None:
        super().__init__()
        if balancing not in _BALANCES:
            raise ValueError(f"a model history is balanced 'valid' or 'reference', not {balancing!r}")
        self.balancing: Balancing = balancing
        self._balance: _Balance = _BALANCES[balancing]()
        self._items: Vector[Message] = Vector()
        self._size = 0
        self._lengths = array("q")
        self._undo: UndoStack[_Put | _Cut | None] = UndoStack()

    @property
    def name(self) -> str:
        """What it computes, configuration included."""
        return f"{super().name}[{self.balancing}]"

    def fresh(self) -> Self:
        """An empty one of the same balancing."""
        return type(self)(self.balancing)

    @property
    def diagnostics(self) -> Diagnostics:
        """How many results and messages had to be left out; all 0 for `reference`, which leaves nothing out."""
        return self._balance.diagnostics

    @property
    def value(self) -> Vector[Message]:
        """The messages as they are now: a snapshot in O(1), which later events do not touch."""
        return self._items

    def apply(self, appended: AppendedEvent) -> Change:
        """Take the next event in and say what changed.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        offset = appended.offset
        if offset != self.next_offset:
            self._expect(offset)
        items, size = self._items, self._size
        change = self._balance.reduce(appended, items, size, self.generation)
        undo: _Put | _Cut | None = None
        keep, added, replaced = change.keep, change.items, change.replaced
        if keep == size and len(replaced) <= 1:
            for index, item in replaced:
                undo = _Put(index, items[index])
                items = items.set(index, item)
        else:
            undo = _Cut(items[keep:], tuple(_Put(index, items[index]) for index, _ in replaced))
            items = items.take(keep)
            for index, item in replaced:
                items = items.set(index, item)
        if len(added) > _FEW:
            items = items.extend(added)
        else:
            for item in added:
                items = items.append(item)
        self._items = items
        self._size = size = keep + len(added)
        self._lengths.append(size)
        self._undo.recent.append(undo)
        self.next_offset = offset = offset + 1
        if not offset % SEAL_EVERY:
            self._undo.seal()
            self._balance.seal()
        return change

    def rewind(self, offset: int) -> Change:
        """Forget the events from `offset` on and say what that changed.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        items, keep = self._items, self._size
        touched: set[int] = set()
        for undone in range(self.next_offset - 1, offset - 1, -1):
            self._balance.forget(undone)
            undo = self._undo.pop()
            if undo is None:
                continue
            if isinstance(undo, _Cut):
                kept = self._length_at(undone) - len(undo.dropped)
                keep = min(keep, kept)
                items = items.take(kept).extend(undo.dropped)
            for put in undo.puts if isinstance(undo, _Cut) else (undo,):
                items = items.set(put.index, put.message)
                touched.add(put.index)
        del self._lengths[offset:]
        self._size = self._length_at(offset)
        self._items = items = items.take(self._size)
        self.next_offset = offset
        self.generation += 1
        keep = min(keep, self._size)
        restored = tuple((index, items[index]) for index in sorted(touched) if index < keep)
        return Change(self.generation, keep, items[keep:], restored)

    def _length_at(self, offset: int) -> int:
        """How many messages there were before the event at `offset`."""
        return self._lengths[offset - 1] if offset else 0
