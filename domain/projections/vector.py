"""An immutable list whose every change is a new one that shares what did not change.

The value of a view is handed out after each event; copying a list each time made a session of 100,000 events
quadratic. Here a snapshot is the value itself, an append changes the tail alone and a change in the middle as many
nodes as the tree is high (four for a million items).

A tree of tuples with up to 32 children holds full leaves, the tail holds the 1 to 32 items behind them. Nodes are as
long as what they hold, and the tree is never higher than it must be, so equal vectors have equal trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, overload

__all__ = ["Vector"]

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")

_BITS = 5
_WIDTH = 1 << _BITS
_MASK = _WIDTH - 1

Node = tuple[Any, ...]


class Vector(Sequence[T_co]):
    """An immutable sequence: `append`, `extend`, `set` and `take` answer a new one and leave this as it was."""

    __slots__ = ("_root", "_shift", "_size", "_tail")
    # A subclass of Sequence is no tuple: the slots are assigned once, when it is made, and never again.
    _size: int
    _shift: int
    _root: Node
    _tail: Node

    def __init__(self, items: Iterable[T_co] = ()) -> None:
        self._size = 0
        self._shift = _BITS
        self._root = ()
        self._tail = ()
        full: Vector[T_co] = self._extended(items)
        self._size, self._shift, self._root, self._tail = full._size, full._shift, full._root, full._tail

    def append(self: Vector[S], item: S) -> Vector[S]:
        """This with `item` behind it."""
        new: Vector[S] = _allocate(Vector)
        tail = self._tail
        new._size = self._size + 1
        if len(tail) < _WIDTH:
            new._shift = self._shift
            new._root = self._root
            new._tail = tail + (item,)  # noqa: RUF005 (a third faster than unpacking)
        else:
            new._shift, new._root = _with_leaf(self._shift, self._root, self._size - _WIDTH, tail)
            new._tail = (item,)
        return new

    def extend(self: Vector[S], items: Iterable[S]) -> Vector[S]:
        """This with all of `items` behind it."""
        return self._extended(items)

    def set(self: Vector[S], index: int, item: S) -> Vector[S]:
        """This with `item` in place of what stands at `index`.

        Raises:
            IndexError: there is no such place.
        """
        index = self._place(index)
        in_tree = self._size - len(self._tail)
        if index >= in_tree:
            return self._made(self._size, self._shift, self._root, _with(self._tail, index - in_tree, item))
        return self._made(self._size, self._shift, _replaced(self._root, self._shift, index, item), self._tail)

    def take(self, count: int) -> Vector[T_co]:
        """The first `count` items; all of them where there are no more."""
        if count >= self._size:
            return self
        if count <= 0:
            return Vector()
        in_tree = self._size - len(self._tail)
        if count > in_tree:
            return self._made(count, self._shift, self._root, self._tail[: count - in_tree])
        kept = (count - 1) & ~_MASK  # what stays in the tree; the leaf behind it becomes the tail
        tail = self._leaf(kept)[: count - kept]
        root = _trimmed(self._root, self._shift, kept) if kept else ()
        shift = self._shift
        while shift > _BITS and len(root) <= 1:
            root, shift = (root[0] if root else ()), shift - _BITS
        return self._made(count, shift, root, tail)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        if not 0 <= index < self._size:
            index = self._place(index)
        in_tree = self._size - len(self._tail)
        if index >= in_tree:
            return self._tail[index - in_tree]
        return self._leaf(index)[index & _MASK]

    def __iter__(self) -> Iterator[T_co]:
        return chain.from_iterable(self._leaves(0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        # Equal trees, and tuples compare by identity first: what two versions share costs nothing.
        return self._size == other._size and self._tail == other._tail and self._root == other._root

    __hash__ = None  # type: ignore[assignment]  # as a list: items need not be hashable

    def __repr__(self) -> str:
        return f"Vector({list(self)!r})"

    @staticmethod
    def _made(size: int, shift: int, root: Node, tail: Node) -> Vector[Any]:
        new: Vector[Any] = _allocate(Vector)
        new._size = size
        new._shift = shift
        new._root = root
        new._tail = tail
        return new

    def _extended(self, items: Iterable[Any]) -> Vector[Any]:
        rest = iter(items)
        before = self._tail
        tail = before + tuple(islice(rest, _WIDTH - len(before)))
        in_tree = self._size - len(before)
        shift, root = self._shift, self._root
        while len(tail) == _WIDTH:
            behind = tuple(islice(rest, _WIDTH))
            if not behind:
                break
            shift, root = _with_leaf(shift, root, in_tree, tail)
            in_tree += _WIDTH
            tail = behind
        return self._made(in_tree + len(tail), shift, root, tail)

    def _place(self, index: int) -> int:
        place = index + self._size if index < 0 else index
        if not 0 <= place < self._size:
            raise IndexError(f"no index {index} in a vector of {self._size} items")
        return place

    def _leaf(self, index: int) -> Node:
        node = self._root
        shift = self._shift
        while shift:
            node = node[(index >> shift) & _MASK]
            shift -= _BITS
        return node

    def _leaves(self, start: int) -> Iterator[Node]:
        """The leaves from the one that holds the index `start` on, the tail as the last."""
        in_tree = self._size - len(self._tail)
        for index in range(start & ~_MASK, in_tree, _WIDTH):
            yield self._leaf(index)
        yield self._tail

    def _slice(self, where: slice) -> tuple[T_co, ...]:
        start, stop, step = where.indices(self._size)
        if step != 1:
            return tuple(self[index] for index in range(start, stop, step))
        if start >= stop:
            return ()
        in_tree = self._size - len(self._tail)
        if start >= in_tree:
            return self._tail[start - in_tree : stop - in_tree]
        skipped = start & _MASK
        return tuple(islice(chain.from_iterable(self._leaves(start)), skipped, skipped + stop - start))


_allocate = object.__new__


def _with_leaf(shift: int, root: Node, in_tree: int, leaf: Node) -> tuple[int, Node]:
    """The tree of `in_tree` items with a full leaf behind them, and how high it is."""
    if in_tree >> (shift + _BITS):
        return shift + _BITS, (root, _path(shift, leaf))
    return shift, _pushed(root, shift, in_tree, leaf)


def _pushed(node: Node, shift: int, index: int, leaf: Node) -> Node:
    if shift == _BITS:
        return (*node, leaf)
    at = (index >> shift) & _MASK
    if at == len(node):
        return (*node, _path(shift - _BITS, leaf))
    return (*node[:at], _pushed(node[at], shift - _BITS, index, leaf))


def _path(shift: int, leaf: Node) -> Node:
    while shift:
        leaf = (leaf,)
        shift -= _BITS
    return leaf


def _replaced(node: Node, shift: int, index: int, item: object) -> Node:
    at = (index >> shift) & _MASK
    return _with(node, at, _replaced(node[at], shift - _BITS, index, item) if shift else item)


def _with(node: Node, at: int, child: object) -> Node:
    """A node with one other child: by way of a list, which takes a third of the time of joining its two ends."""
    children = list(node)
    children[at] = child
    return tuple(children)


def _trimmed(node: Node, shift: int, count: int) -> Node:
    """The subtree that holds the first `count` (at least one) of all items, counted from the root's first."""
    last = count - 1
    at = (last >> shift) & _MASK
    if shift == _BITS:
        return node[: at + 1]
    return (*node[:at], _trimmed(node[at], shift - _BITS, count))
