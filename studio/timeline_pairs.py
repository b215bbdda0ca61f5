"""What begins at one event and ends at another: turns with their ends, calls with their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["Pair", "Pairs"]

B = TypeVar("B")
E = TypeVar("E")


class Pair(NamedTuple, Generic[B, E]):
    """What began and how it ended; `beginning` or `ending` is None where the log holds only the other."""

    start: int
    beginning: B | None
    stop: int | None
    ending: E | None


class _Begun(NamedTuple, Generic[B]):
    offset: int
    name: Hashable
    what: B


class _Ended(NamedTuple, Generic[E]):
    offset: int
    begun: int | None  # its index among the begun
    what: E


class Pairs(Generic[B, E]):
    """Beginnings and ends in the order of the log; an end belongs to the latest open beginning of its name."""

    def __init__(self) -> None:
        self._begun: list[_Begun[B]] = []
        self._ended: list[_Ended[E]] = []
        self._open: dict[Hashable, list[int]] = {}  # indexes among the begun

    def begin(self, offset: int, name: Hashable, what: B) -> None:
        """Something of `name` begins."""
        self._open.setdefault(name, []).append(len(self._begun))
        self._begun.append(_Begun(offset, name, what))

    def end(self, offset: int, name: Hashable, what: E) -> None:
        """The latest of `name` that is open ends; without one it is an end alone."""
        opened = self._open.get(name)
        begun = opened.pop() if opened else None
        self._ended.append(_Ended(offset, begun, what))

    def rewind(self, cut: int) -> None:
        """Forget what happened from `cut` on, the newest first: so each stack is again as it was."""
        begun, ended = self._begun, self._ended
        while True:
            last_begun = begun[-1].offset if begun else -1
            last_ended = ended[-1].offset if ended else -1
            if max(last_begun, last_ended) < cut:
                return
            if last_ended > last_begun:
                index = ended.pop().begun
                if index is not None:
                    self._open[begun[index].name].append(index)
            else:
                self._open[begun.pop().name].pop()

    def __iter__(self) -> Iterator[Pair[B, E]]:
        """All of them, in the order of their first event."""
        ends: list[_Ended[E] | None] = [None] * len(self._begun)
        alone: list[Pair[B, E]] = []
        for ended in self._ended:
            if ended.begun is None:
                alone.append(Pair(ended.offset, None, ended.offset, ended.what))
            else:
                ends[ended.begun] = ended
        pairs: list[Pair[B, E]] = [
            Pair(one.offset, one.what, None, None) if end is None else Pair(one.offset, one.what, end.offset, end.what)
            for one, end in zip(self._begun, ends, strict=True)
        ]
        return iter(sorted([*pairs, *alone], key=_start) if alone else pairs)


def _start(pair: Pair[B, E]) -> int:
    return pair.start
