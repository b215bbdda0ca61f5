"""What the model may see of a session, kept as it grows."""

from __future__ import annotations

from typing import Literal, Protocol, Self

from incarnate.domain.events import AppendedEvent
from incarnate.domain.projections.base import Change, ListProjection
from incarnate.domain.projections.model_messages import Message
from incarnate.domain.projections.model_reference import ReferenceBalance
from incarnate.domain.projections.model_valid import Diagnostics, ValidBalance
from incarnate.domain.projections.vector import Vector

__all__ = ["Balancing", "ModelHistory"]

Balancing = Literal["valid", "reference"]


class _Balance(Protocol):
    @property
    def diagnostics(self) -> Diagnostics: ...

    def reduce(self, appended: AppendedEvent, items: Vector[Message], size: int, generation: int) -> Change: ...

    def forget(self, offset: int) -> None: ...


_BALANCES: dict[Balancing, type[ValidBalance | ReferenceBalance]] = {
    "valid": ValidBalance,
    "reference": ReferenceBalance,
}

_FEW = 2  # a call and its placeholder: appended one by one they cost less than an extension


class ModelHistory(ListProjection[Message]):
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
        self._size = 0

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

    def apply(self, appended: AppendedEvent) -> Change:
        """Take the next event in and say what changed.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        # What the base does, for what nearly every event is: added messages and one replaced. It halves the time of
        # a rebuild, which is bound to this method.
        offset = appended.offset
        if offset != self.next_offset:
            self._expect(offset)
        items, size = self._items, self._size
        change = self._balance.reduce(appended, items, size, self.generation)
        if change.keep != size or len(change.replaced) > 1:
            items = self._edited(change)
        elif change.replaced:
            index, item = change.replaced[0]
            self._undo[offset] = ((), ((index, items[index]),))
            items = items.set(index, item)
        added = change.items
        if len(added) > _FEW:
            items = items.extend(added)
        else:
            for item in added:
                items = items.append(item)
        self._items = items
        self._size = size = change.keep + len(added)
        self._lengths.append(size)
        self.next_offset = offset + 1
        return change

    def rewind(self, offset: int) -> Change:
        """Forget the events from `offset` on and say what that changed.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        change = super().rewind(offset)
        self._size = len(self._items)
        return change

    def _reduce(self, appended: AppendedEvent) -> Change:
        return self._balance.reduce(appended, self._items, self._size, self.generation)

    def _forget(self, offset: int) -> None:
        self._balance.forget(offset)
