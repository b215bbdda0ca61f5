"""Followers of a view: an iterator of its changes, and an actor that is told of them."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

import pykka

from incarnate.actors.references import waiting
from incarnate.domain.errors import ForkedError
from incarnate.domain.notices import ViewChanged, ViewReset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from incarnate.actors.runtime import Condition
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Change

__all__ = ["ChangeStream", "Listener"]

_MAX_WAITING = 1024
"""Changes kept for a slow follower. One more, and it gets the whole view in one change instead."""


class ChangeStream:
    """Iterates the changes of a view, the first of which holds the view as it was when the iteration began.

    A consumer that falls more than 1,024 changes behind gets the whole view anew, as a change that keeps nothing.
    Ends when the system is closed, or when `close` is called from any thread.
    """

    def __init__(
        self,
        follow: Callable[[ChangeStream], None],
        unfollow: Callable[[ChangeStream], None],
        condition: Condition,
    ) -> None:
        self._follow = follow
        self._unfollow = unfollow
        self._condition = condition
        self._changes: deque[Change] = deque()
        self._behind = True
        self._closed = False
        self._told = 0
        self._given = -1
        self._pid = os.getpid()

    @property
    def told(self) -> int:
        """How many changes the projector has told so far."""
        return self._told

    @property
    def given(self) -> int:
        """How many of those are in what the consumer has got; -1 before the first."""
        return self._given

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    def push(self, changes: Sequence[Change]) -> bool:
        """Keep changes for the consumer; the projector calls this."""
        with self._condition:
            self._told += len(changes)
            if not self._behind:
                self._changes.extend(changes)
                if len(self._changes) > _MAX_WAITING:
                    self._changes.clear()
                    self._behind = True
            self._condition.notify()
        return True

    def reset(self, change: Change) -> bool:
        """Keep the whole view for the consumer, in place of what it has not read; the projector calls this."""
        with self._condition:
            self._changes.clear()
            self._changes.append(change)
            self._behind = False
            self._condition.notify()
        return True

    @property
    def ready(self) -> bool:
        """Never: a consumer that was left behind asks for the view itself."""
        return False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        change = self.next()
        if change is None:
            raise StopIteration
        return change

    def next(self, timeout: float | None = None) -> Change | None:
        """The next change; None when none came within `timeout` seconds, or when the stream has ended.

        Raises:
            ForkedError: in a forked child, to which no change comes.
            ViewFailedError, StoreBusyError, LogCorruptionError: from reading the view anew.
        """
        if os.getpid() != self._pid:  # before the lock, which a thread that the child has not may hold
            raise ForkedError("the process was forked after this system was opened")
        with self._condition:
            if not self._changes and not self._behind and not self._closed:
                self._condition.wait_for(lambda: self._changes or self._behind or self._closed, timeout)
            if self._changes:
                return self._given_next()
            if self._closed or not self._behind:
                return None
        self._follow(self)  # outside the lock, since the projector answers through `reset`
        with self._condition:
            return self._given_next() if self._changes else None

    def start_over(self) -> None:
        """Have the next change hold the whole view anew, in place of what was not read."""
        with self._condition:
            self._changes.clear()
            self._behind = not self._closed
            self._condition.notify()

    def close(self) -> None:
        """End the iteration, whoever waits in it. A forked child's is at its end already."""
        if os.getpid() != self._pid:
            return
        with self._condition:
            ended, self._closed = self._closed, True
            self._changes.clear()
            self._behind = False
            self._condition.notify_all()
        if not ended:
            self._unfollow(self)

    def _given_next(self) -> Change:
        change = self._changes.popleft()
        if not self._behind:  # else some were let go of, which the whole view brings
            self._given = self._told - len(self._changes)
        return change

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


class Listener:
    """Tells an actor of changes, `ViewChanged` each, as long as its inbox is read.

    One that has over 1,024 messages waiting is told nothing until it has read them, and then the whole view in one
    `ViewReset`. One that has stopped is let go of.
    """

    def __init__(self, ref: pykka.ActorRef[Any], key: ActivationKey, name: str) -> None:
        self.ref = ref
        self._key = key
        self._name = name
        self._behind = False

    def push(self, changes: Sequence[Change]) -> bool:
        """Tell the actor of changes; False where it has stopped."""
        for change in changes:
            if self._behind or waiting(self.ref) > _MAX_WAITING:
                self._behind = True
                return self.ref.is_alive()
            if not self._tell(ViewChanged(self._key, self._name, change)):
                return False
        return True

    def reset(self, change: Change) -> bool:
        """Tell the actor the whole view; False where it has stopped."""
        self._behind = False
        return self._tell(ViewReset(self._key, self._name, change))

    @property
    def ready(self) -> bool:
        """Whether it was left behind and has read what it had."""
        return self._behind and waiting(self.ref) <= _MAX_WAITING // 2

    def _tell(self, notice: ViewChanged | ViewReset) -> bool:
        try:
            self.ref.tell(notice)
        except pykka.ActorDeadError:
            return False
        return True
