"""What a supervisor knows, and the facts that change it."""

from __future__ import annotations

from typing import Literal

import msgspec

from incarnate.supervision.edge import SignalKind

__all__ = [
    "Claimed",
    "Exited",
    "Fact",
    "Fenced",
    "Known",
    "LeftoversEnded",
    "NotStarted",
    "Outlook",
    "OutputRecorded",
    "Phase",
    "Policy",
    "Peeked",
    "PredecessorGone",
    "Reconciled",
    "RecordingFailed",
    "Signalled",
    "Started",
    "StopAsked",
    "StoreFailed",
    "TreeEnded",
    "TurnState",
]

TurnState = Literal["none", "completed", "interrupted", "failed", "cancelled", "step_limit"]

Phase = Literal[
    "fresh", "unseen", "unclaimed", "claimed", "unlevel", "level", "alive", "dead", "gone", "recorded", "over"
]
"""How far a life has come.

- fresh: nothing was done; unseen: nothing of a dead supervisor lives here, or of a living one of the key
- unclaimed: as far as can be seen without taking it over, the activation has something left to do; claimed: it is ours
- unlevel: nobody else's harness lives here, and the log may lack what the harness's own files know; level: it does not
- alive: a harness runs; dead: its own process ended, its tree may live; gone: nothing of it lives
- recorded: all that it wrote is in the log; over: nothing is left to do
"""


class Policy(msgspec.Struct, frozen=True):
    """What the user wants. Times are seconds.

    Attributes:
        max_restarts: how often a harness is started again, in all.
        backoff: before the first restart; doubled for each quick death in a row.
        max_backoff: the longest of them.
        stable: a life that lasted as long was no quick death.
        interrupt: how long a harness may take to end after SIGINT when a stop is asked; 0 sends none.
        terminate: how long it may take after SIGTERM.
        predecessor: how long a supervisor of the same activation on this machine may take to end its harness.
        flush: how long the end of the output may take to become durable when a stop is asked.
    """

    max_restarts: int = 5
    backoff: float = 1.0
    max_backoff: float = 60.0
    stable: float = 60.0
    interrupt: float = 5.0
    terminate: float = 5.0
    predecessor: float = 30.0
    flush: float = 30.0


class Outlook(msgspec.Struct, frozen=True):
    """What the levelled log says about going on.

    `events` is the head, `session` the harness's own one that the log names, `is_here` whether this machine still has
    its files, `turn` how the last turn of the session ended, and `is_asked` whether what the user asks now is what
    the log's last task is. `reason` is why a turn failed, in the harness's words.
    """

    events: int = 0
    session: str | None = None
    is_here: bool = False
    turn: TurnState = "none"
    is_asked: bool = False
    reason: str = ""


class LeftoversEnded(msgspec.Struct, frozen=True):
    """Nothing lives that a dead supervisor of this machine had started; `predecessor`: a living one has the key."""

    at: float
    predecessor: bool


class Peeked(msgspec.Struct, frozen=True):
    """The log was looked at, and nobody fenced: `outlook` if it is level and its last turn done, else None."""

    outlook: Outlook | None


class Claimed(msgspec.Struct, frozen=True):
    """The activation is ours at this incarnation."""

    incarnation: int
    at: float


class PredecessorGone(msgspec.Struct, frozen=True):
    """No other supervisor of this machine has a harness for the key, or what it had was ended."""


class Reconciled(msgspec.Struct, frozen=True):
    """The log holds what either side knew, and nothing in it is open; `found` events were known by the files alone."""

    outlook: Outlook
    found: int = 0


class Started(msgspec.Struct, frozen=True):
    """The harness runs; `resumed`: it was told to go on with its own session."""

    at: float
    resumed: bool


class NotStarted(msgspec.Struct, frozen=True):
    """The harness could not be started; `for_now`: since the system is short of something."""

    reason: str
    for_now: bool = False
    at: float = 0.0


class Signalled(msgspec.Struct, frozen=True):
    """The harness was sent a signal because a stop was asked."""

    kind: SignalKind
    at: float


class Exited(msgspec.Struct, frozen=True):
    """The harness's own process ended; whatever it started may live."""

    status: int
    at: float


class TreeEnded(msgspec.Struct, frozen=True):
    """Nothing of the harness lives, but for what not even SIGKILL ends; `status` is how its own process ended."""

    orphans: int = 0
    unkillable: tuple[int, ...] = ()
    at: float = 0.0
    status: int | None = None


class OutputRecorded(msgspec.Struct, frozen=True):
    """All that it wrote is durable; `events` were appended. `unread`: so many lines, none of them of the harness.

    `refused` lines gave no events because they were damaged; `ignored` are the records, or parts of them, that map to
    nothing, by kind, the most frequent kinds alone.
    """

    events: int
    unread: int = 0
    refused: int = 0
    ignored: tuple[tuple[str, int], ...] = ()


class RecordingFailed(msgspec.Struct, frozen=True):
    """What it writes cannot be recorded any more."""

    reason: str


class Fenced(msgspec.Struct, frozen=True):
    """A newer incarnation than `incarnation`, which is or was ours, has the activation."""

    incarnation: int
    current: int | None = None


class StopAsked(msgspec.Struct, frozen=True):
    """Somebody wants the supervisor to end; `code` is what it then exits with."""

    at: float
    code: int


class StoreFailed(msgspec.Struct, frozen=True):
    """The store did not take what had to be in it before going on; `hint` is what mends a refusal that stays."""

    reason: str
    hint: str = ""


Fact = (
    LeftoversEnded
    | Peeked
    | Claimed
    | PredecessorGone
    | Reconciled
    | Started
    | NotStarted
    | Signalled
    | Exited
    | TreeEnded
    | OutputRecorded
    | RecordingFailed
    | Fenced
    | StopAsked
    | StoreFailed
)


class Known(msgspec.Struct, frozen=True):
    """All that decides what to do next.

    Attributes:
        phase: see `Phase`.
        incarnation: ours, None until it is claimed.
        since: when the phase began, in seconds of the supervisor's clock.
        predecessor: another living supervisor of this machine has, or had, the key.
        outlook: what the levelled log says.
        restarts: how often a harness was started again.
        quick: how many lives in a row were short.
        started: when the harness was started.
        status: how its own process ended.
        lives: how many harnesses were started.
        written: how many events its output came to, once it is recorded to the end.
        unread: how many lines the last life printed, where none of them was the harness's.
        refused: how many lines gave no events because they were damaged, in all lives.
        spoke: whether the last life left any event.
        resumed: whether the last life was one of a session that existed.
        unstarted: why it could not be started again, where the last try failed.
        lost: a session that could not be resumed by its id, though it should have been.
        stop: when the first stop was asked, and the code to exit with.
        stops: how often.
        signal: the last one sent because of it.
        signalled: when.
        fenced: by which incarnation, where somebody has taken over.
        broken: why nothing can go on, `code` what to exit with then, and `hint` what mends it, where that is known.
        unkillable: what not even SIGKILL has ended.
    """

    phase: Phase = "fresh"
    incarnation: int | None = None
    since: float = 0.0
    predecessor: bool = False
    outlook: Outlook = Outlook()
    restarts: int = 0
    quick: int = 0
    started: float = 0.0
    status: int | None = None
    lives: int = 0
    written: int | None = None
    unread: int = 0
    refused: int = 0
    spoke: bool = False
    resumed: bool = False
    unstarted: str = ""
    lost: str | None = None
    stop: StopAsked | None = None
    stops: int = 0
    signal: SignalKind | None = None
    signalled: float = 0.0
    fenced: Fenced | None = None
    broken: str = ""
    code: int = 0
    hint: str = ""
    unkillable: tuple[int, ...] = ()
