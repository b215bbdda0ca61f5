"""The process edge as the supervisor sees it: start a harness, read it, signal it, end the whole tree of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["RUN_ID_VARIABLE", "Deadlines", "Edge", "Ended", "Identity", "Running", "SignalKind", "mark_of"]

RUN_ID_VARIABLE = "INCARNATE_RUN_ID"
"""In the environment of every process of a run: what tells them from all others, whatever they are called."""

SignalKind = Literal["interrupt", "terminate", "kill"]


def mark_of(run_id: str) -> int:
    """The number that is a limit of every process of a run, where the system has such: `env -i` does not clear it."""
    return 1 << 61 | int.from_bytes(hashlib.blake2b(run_id.encode(), digest_size=7).digest(), "big")


class Identity(msgspec.Struct, frozen=True):
    """What a run is recognised by later, on the same machine: never a name.

    `run_id` is known before anything starts, and is in the environment of all that the run started, and as a mark in
    their limits. `boot_id` is the
    kernel's of this boot. `pid` and `started` (the kernel's start time of the process, in clock ticks since boot) are
    of the process that holds the tree together, None before it was started.
    """

    run_id: str
    boot_id: str = ""
    pid: int | None = None
    started: int | None = None


class Deadlines(msgspec.Struct, frozen=True):
    """How long each step of an ending may take before the next one, in seconds; 0 leaves a step out.

    After the last one everything of the tree gets SIGKILL, again and again until nothing of it is left; `give_up`
    seconds after that the edge says what it could not end.
    """

    interrupt: float = 0.0
    terminate: float = 5.0
    give_up: float = 10.0


class Ended(msgspec.Struct, frozen=True):
    """How a tree came to its end: how many processes outlived the harness, and which of them outlive SIGKILL."""

    orphans: int = 0
    unkillable: tuple[int, ...] = ()


class Running(Protocol):
    """A harness that was started, with all that it starts. One thread reads, any other may call the rest."""

    @property
    def identity(self) -> Identity:
        """What to record, so that leftovers of it are found."""
        ...

    def read(self, timeout: float) -> bytes | None:
        """What the harness wrote, as soon as there is some; `b""` once nothing can come any more (and from then on).

        None: nothing came in `timeout` seconds, or the harness's own process ended meanwhile and its output is held
        open by others (then there is no wait). Whatever was written before the end of the tree is still given.
        """
        ...

    def signal(self, kind: SignalKind) -> None:
        """Send to the harness's own process alone; nothing happens if it has ended."""
        ...

    def poll(self) -> int | None:
        """The exit status of the harness's own process, negative for a signal; None while it lives.

        Where the process that holds the tree together was killed, the status is -9.
        """
        ...

    def descendants(self) -> tuple[int, ...]:
        """Who else of the tree lives: all that the harness started, however they detached themselves."""
        ...

    def end(self, deadlines: Deadlines) -> Ended:
        """End the tree, the harness too, and wait until nothing of it is left. Ending twice is no error."""
        ...

    def close(self) -> None:
        """Let go of pipes and handles; ends what was not ended with SIGKILL."""
        ...


class Edge(Protocol):
    """Starts processes."""

    def check(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        """See whether `start` would find the program, without starting anything.

        Raises:
            HarnessNotStartedError: there is no such program, or it may not be run.
        """
        ...

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, run_id: str) -> Running:
        """Start a harness whose standard output is read here and whose standard error is ours.

        `env` is the whole environment, to which `RUN_ID_VARIABLE` is added.

        Raises:
            HarnessNotStartedError: there is no such program, or it may not be run.
            OSError: the system is short of something, and may not be so later.
        """
        ...

    def identity(self, run_id: str) -> Identity:
        """What is known of a run before it starts."""
        ...

    def leftovers(self, identity: Identity, deadlines: Deadlines) -> Ended:
        """End what an earlier run left alive on this machine, and wait until nothing of it is left.

        Found by the identity alone: by the process that was recorded, if its start time and boot are the same, with
        all below it, and by the run id in the environment, or the mark, of any process. Nothing is done for another
        boot.
        """
        ...
