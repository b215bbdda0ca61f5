# ruff: noqa: ARG002 - what an edge is given
"""An edge that replays what harnesses printed: a life is its bytes and how it ends."""

import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from incarnate.domain.dialects.base import Dialect
from incarnate.domain.errors import HarnessNotStartedError
from incarnate.domain.events import SessionEvent
from incarnate.supervision.edge import Deadlines, Ended, Identity, SignalKind


class Life(NamedTuple):
    """`status` is None for a harness that runs until it is told to end. `tool`: something of it outlives it."""

    stdout: bytes
    status: int | None = 0
    tool: bool = False


class Replayed:
    def __init__(self, life: Life, argv: Sequence[str], run_id: str, chunk: int) -> None:
        self.identity = Identity(run_id)
        self.argv = tuple(argv)
        self.signals: list[SignalKind] = []
        self.ended = False
        self._left = life.stdout
        self._status = life.status
        self._dead = life.status
        self._tool = life.tool
        self._chunk = chunk
        self._changed = threading.Event()

    def read(self, timeout: float) -> bytes | None:
        if self._left:
            data, self._left = self._left[: self._chunk], self._left[self._chunk :]
            return data
        if self._status is None:
            self._changed.wait(timeout)
            return None
        if self._tool and not self.ended:
            return None
        return b""

    def signal(self, kind: SignalKind) -> None:
        self.signals.append(kind)
        if kind != "interrupt":
            self._status = -15
            self._changed.set()

    def poll(self) -> int | None:
        return None if self._left else self._status

    def descendants(self) -> tuple[int, ...]:
        return (7,) if self._tool and not self.ended else ()

    def end(self, deadlines: Deadlines) -> Ended:
        orphans = len(self.descendants())
        self.ended = True
        if self._status is None:
            self._status = -15 if deadlines.terminate else -9
        self._changed.set()
        return Ended(orphans)

    def close(self) -> None:
        self.end(Deadlines())


class ReplayEdge:
    """Gives one life after another; `started` are those that began."""

    def __init__(self, *lives: Life, chunk: int = 1 << 16) -> None:
        self._lives = list(lives)
        self._chunk = chunk
        self.started: list[Replayed] = []
        self.begun = threading.Event()

    def check(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        if not self._lives:
            raise HarnessNotStartedError(argv[0], "the recording has no more lives")

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, run_id: str) -> Replayed:
        if not self._lives:
            raise HarnessNotStartedError(argv[0], "the recording has no more lives")
        running = Replayed(self._lives.pop(0), argv, run_id, self._chunk)
        self.started.append(running)
        self.begun.set()
        return running

    def identity(self, run_id: str) -> Identity:
        return Identity(run_id)

    def leftovers(self, identity: Identity, deadlines: Deadlines) -> Ended:
        return Ended()


class NoFiles:
    """A harness whose files nobody knows, on a machine that has them."""

    def place(self) -> str:
        return "nowhere"

    def is_here(self, session: str) -> bool:
        return True

    def newest(self, since: float, theirs: frozenset[str] = frozenset()) -> str | None:
        return None

    def last_turn(self, session: str) -> list[SessionEvent]:
        return []


def drafts(dialect: Dialect, lines: Sequence[object]) -> list[SessionEvent]:
    normalizer = dialect.normalizer()
    return [draft for line in lines for draft in normalizer.feed(line).drafts]
