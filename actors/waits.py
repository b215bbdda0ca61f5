"""Which actors each thread runs, and what it waits for: enough to refuse a wait that would never end.

Each thread has a stack: the mailboxes whose messages it is handling, the outermost first, and last of all what it
waits for, if it waits. Whoever begins to wait inside a handler follows the waits of the others, from the mailbox that
it wants to the thread that serves it and on to what that thread wants. Nobody else pays for this: a caller that runs
no actor can be part of no circle.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["Entry", "Served", "Stack", "closes_circle", "here", "running"]


class Entry(Protocol):
    """What a thread handles or waits for."""

    def held(self) -> bool:
        """Whether the running thread serves it, and does not only wait for it."""
        ...

    def wanted(self) -> Served | None:
        """The mailbox that has to be served first; None where nothing is waited for any more."""
        ...


Stack: TypeAlias = list[Entry]


class Served(Entry, Protocol):
    """A mailbox, of which one thread at a time handles the messages."""

    holder: Stack | None
    """The stack of a thread that called on from inside its handler. May be out of date: the stack itself tells."""


class _Here(threading.local):
    """The running thread's own."""

    def __init__(self) -> None:
        self.stack: Stack = []
        self.depth = 0
        """How many actors had asked on, one in the other, when this thread took over the call."""


here = _Here()


def running() -> Stack:
    """The running thread's stack, holding nothing but what it handles.

    An interrupt can leave an entry behind, and a signal handler comes between an entry and what it waits for: both
    are on top, and not held.
    """
    stack = here.stack
    while stack and not stack[-1].held():
        stack.pop()
    return stack


def closes_circle(stack: Stack, wanted: Served) -> bool:
    """Whether waiting for `wanted`, which is already on top of `stack`, would be to wait for oneself.

    What was seen on the way is looked at once more, from the end: the last thread waits for one that `stack` holds
    and cannot move, so the one before it cannot, and so on. Without that a thread seen too early makes a circle that
    never was. No circle is missed: of all that take part, whoever comes last sees the others wait.
    """
    path: list[tuple[Served, Stack, Entry]] = []
    target: Served = wanted
    while target not in stack[:-1]:
        holder = target.holder
        if holder is None or any(holder is one for _, one, _ in path):
            return False
        seen = holder.copy()  # at once: it is another thread's
        if target not in seen[:-1]:
            return False
        following = seen[-1].wanted()
        if following is None:
            return False
        path.append((target, holder, seen[-1]))
        target = following
    return all(_still_waits(*step) for step in reversed(path))


def _still_waits(target: Served, holder: Stack, entry: Entry) -> bool:
    seen = holder.copy()
    return bool(seen) and seen[-1] is entry and target in seen[:-1] and entry.wanted() is not None
