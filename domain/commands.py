"""What an activation may be asked: frozen structs, imperative.

`Append`, `AppendMany` and `PutCheckpoint` may carry the head that their writer last saw. With it, a second writer of
the same incarnation is refused instead of being rewound in silence, and a repeat after an unknown outcome is
answered from the log (I6). Without it, an append below the head is a rewind, as in the reference.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.codec import EncodedEvent
from incarnate.domain.errors import MalformedCommandError
from incarnate.domain.events import Opaque, SessionEvent

__all__ = [
    "Append",
    "AppendMany",
    "Claim",
    "Command",
    "GetCheckpoint",
    "GetHead",
    "LatestCheckpoint",
    "Lease",
    "NextTurn",
    "PutCheckpoint",
    "Query",
    "Replay",
    "Retire",
    "Subscribe",
    "Subscriber",
    "Unsubscribe",
    "WriteCommand",
    "malformed",
]


class Lease(msgspec.Struct, frozen=True, gc=False, tag="lease"):
    """Take the activation at `incarnation`, or renew it there. Replies with the `Head`."""

    incarnation: int


class Claim(msgspec.Struct, frozen=True, gc=False, tag="claim"):
    """Take the activation at the next free incarnation, 1 on a fresh key. Replies with the `Head`."""


class Append(msgspec.Struct, frozen=True, gc=False, tag="append"):
    """Put `event` at `offset`; below the head it rewinds. Replies with the `AppendedEvent`."""

    incarnation: int
    offset: int
    event: SessionEvent | Opaque
    expected_head: tuple[int, int] | None = None


class AppendMany(msgspec.Struct, frozen=True, gc=False, tag="append-many"):
    """Put `events` at `offset` and above, all or none. Replies with a tuple of `AppendedEvent`.

    With no events it is only checked: nothing is appended and nothing rewound. An event that its sender has encoded
    already is taken as it is.
    """

    incarnation: int
    offset: int
    events: tuple[SessionEvent | Opaque | EncodedEvent, ...]
    expected_head: tuple[int, int] | None = None


class PutCheckpoint(msgspec.Struct, frozen=True, gc=False, tag="put-checkpoint"):
    """Keep `checkpoint`; the first write of an id is what is stored (I5). Replies with its argument."""

    incarnation: int
    checkpoint: Checkpoint
    expected_head: tuple[int, int] | None = None


class NextTurn(msgspec.Struct, frozen=True, gc=False, tag="next-turn"):
    """Hand out a turn number that was never used (I8). Replies with it."""

    incarnation: int


class Retire(msgspec.Struct, frozen=True, gc=False, tag="retire"):
    """Raise the fence and close the log for ever. Replies with the `Head`; retiring twice is no error."""


class LatestCheckpoint(msgspec.Struct, frozen=True, gc=False, tag="latest-checkpoint"):
    """Replies with the checkpoint of the highest offset, then the latest insert, or None."""


class GetCheckpoint(msgspec.Struct, frozen=True, gc=False, tag="get-checkpoint"):
    """Replies with the checkpoint of `id`, or None.

    Raises:
        MalformedCommandError: `id` is no string.
    """

    id: str

    def __post_init__(self) -> None:
        if not _is_text(self.id):
            raise _flaw(self, "id", "a string", self.id)


class Replay(msgspec.Struct, frozen=True, gc=False, tag="replay"):
    """Replies with a tuple of the events from `start` up to, not including, `stop` (None: the head).

    Raises:
        MalformedCommandError: one of them is no integer.
    """

    start: int = 0
    stop: int | None = None

    def __post_init__(self) -> None:
        if not _is_integer(self.start):
            raise _flaw(self, "start", "an integer", self.start)
        if self.stop is not None and not _is_integer(self.stop):
            raise _flaw(self, "stop", "an integer or None", self.stop)


class GetHead(msgspec.Struct, frozen=True, gc=False, tag="get-head"):
    """Replies with the stored `Head`."""


class Subscriber(Protocol):
    """Whoever can be told: any pykka actor reference."""

    def tell(self, message: Any, /) -> None:
        """Take `message` without blocking."""


class Subscribe(msgspec.Struct, frozen=True):
    """Tell `subscriber` every notice from now on. Replies with the `Head` it starts from.

    Raises:
        MalformedCommandError: `subscriber` has no `tell`.
    """

    subscriber: Subscriber

    def __post_init__(self) -> None:
        if not callable(getattr(self.subscriber, "tell", None)):
            raise _flaw(self, "subscriber", "something that can be told", self.subscriber)


class Unsubscribe(msgspec.Struct, frozen=True):
    """Stop telling `subscriber`."""

    subscriber: Subscriber


WriteCommand = Lease | Claim | Append | AppendMany | PutCheckpoint | NextTurn | Retire
Query = LatestCheckpoint | GetCheckpoint | Replay | GetHead
Command = WriteCommand | Query | Subscribe | Unsubscribe


def malformed(command: object) -> MalformedCommandError | None:
    """What is wrong with how a write was built, beyond the numbers and events that `decide` looks at anyway.

    Only asked where one failed: nobody pays for it at a command that is well made.
    """
    expected = getattr(command, "expected_head", None)
    if expected is not None and not _is_head(expected):
        return _flaw(command, "expected_head", "a pair of integers (generation, next_offset) or None", expected)
    events = getattr(command, "events", ())
    if not isinstance(events, tuple | list):
        return _flaw(command, "events", "a tuple of events", events)
    return None


def _is_head(value: object) -> bool:
    return isinstance(value, tuple | list) and [_is_integer(part) for part in value] == [True, True]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _flaw(command: object, field: str, wanted: str, value: object) -> MalformedCommandError:
    return MalformedCommandError(type(command).__name__, field, f"must be {wanted}, not {value!r:.100}")
