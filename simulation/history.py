"""What happened in a run, as its checkers look at it: calls with their answers, commits, and what views gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.decisions import Change
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Projection

__all__ = ["ActivationHistory", "Call", "Commit", "History", "Stored", "ViewCall", "ViewRead"]


class Call:
    """A command that somebody sent to an activation.

    `began` and `ended` say when, in the order of everything that happened; `ended` is None where no answer came.
    `acted` is when the store last did something for it. `at_ms` is the time that the store was given.
    """

    __slots__ = ("acted", "at_ms", "began", "command", "ended", "error", "history", "number", "process", "reply")

    def __init__(self, history: History, process: str, command: Any) -> None:
        self.history = history
        self.process = process
        self.command = command
        self.number = history.tick()
        self.began = self.number
        self.ended: int | None = None
        self.acted: int | None = None
        self.at_ms = 0
        self.reply: Any = None
        self.error: BaseException | None = None

    def answered(self, reply: Any, error: BaseException | None) -> None:
        """The answer reached whoever sent it."""
        if self.ended is None:
            self.ended = self.history.tick()
            self.reply = reply
            self.error = error

    def __repr__(self) -> str:
        return f"<Call {self.number} {type(self.command).__name__} by {self.process}>"


class Commit(NamedTuple):
    """A change that the store committed, and the heads around it."""

    at: int
    process: str
    before: Head
    change: Change
    head: Head


class ViewRead(NamedTuple):
    """What a projector answered when it was asked for its value at `asked` or beyond."""

    projection: Projection[Any]
    process: str
    asked: tuple[int, int]
    got: tuple[int, int]
    value: Any


class ViewCall:
    """A question for a view's value; its answer goes to `reads`."""

    __slots__ = ("_asked", "_process", "_projection", "_reads")

    def __init__(
        self, reads: list[ViewRead], projection: Projection[Any], process: str, asked: tuple[int, int]
    ) -> None:
        self._reads = reads
        self._projection = projection
        self._process = process
        self._asked = asked

    def answered(self, reply: Any, error: BaseException | None) -> None:
        """The answer reached whoever asked."""
        if error is None:
            got = (reply.generation, reply.next_offset)
            self._reads.append(ViewRead(self._projection, self._process, self._asked, got, reply.value))


class Stored(NamedTuple):
    """What the store holds of an activation when the run is over."""

    head: Head
    events: Sequence[AppendedEvent]
    checkpoints: Sequence[tuple[str, int]]
    """Their ids and offsets."""


class ActivationHistory:
    """All that happened to one activation."""

    def __init__(self, key: ActivationKey) -> None:
        self.key = key
        self.calls: list[Call] = []
        self.commits: list[Commit] = []
        self.views: list[ViewRead] = []
        self.stored: Stored | None = None
        self.whole = True
        """Whether every change came by a command: a fork, a copy or a sweep is none."""

    def add(self, call: Call) -> Call:
        """Keep `call`."""
        self.calls.append(call)
        return call


class History:
    """All that happened in a run, an activation at a time."""

    def __init__(self) -> None:
        self._ticks = 0
        self._activations: dict[ActivationKey, ActivationHistory] = {}

    def tick(self) -> int:
        """The number of what happens now."""
        self._ticks += 1
        return self._ticks

    def of(self, key: ActivationKey) -> ActivationHistory:
        """What happened to `key`."""
        found = self._activations.get(key)
        if found is None:
            found = self._activations[key] = ActivationHistory(key)
        return found

    def activations(self) -> list[ActivationHistory]:
        """Every activation that was touched, the first one first."""
        return list(self._activations.values())

    @property
    def commits(self) -> int:
        """How many changes were committed."""
        return sum(len(activation.commits) for activation in self._activations.values())
