"""`decide`: the only place where fencing and rewind are worked out.

A pure function from what is stored, a command and the time to a decision, which is data: the change to commit and
what to answer. The store calls it inside the write's own transaction, so no belief is older than the transaction.
The checks go in this order: fence (I2), repeat (I6), expected head, offset (I1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from incarnate.domain.codec import (
    EncodedCheckpoint,
    EncodedEvent,
    StoredEvent,
    encode_checkpoint,
    encode_event,
    encode_events,
)
from incarnate.domain.commands import (
    Append,
    AppendMany,
    Claim,
    Lease,
    NextTurn,
    PutCheckpoint,
    Retire,
    WriteCommand,
    malformed,
)
from incarnate.domain.errors import (
    CheckpointError,
    HeadMovedError,
    MalformedCommandError,
    OffsetError,
    OutOfRangeError,
    RefusedError,
    RetiredError,
    StaleIncarnationError,
)
from incarnate.domain.events import MAX_INTEGER, AppendedEvent, TurnEnd, TurnStart
from incarnate.domain.heads import Head
from incarnate.domain.turns import next_turn_after

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.keys import ActivationKey

__all__ = ["Change", "Decision", "Payload", "StoredLog", "decide", "encode_command", "evolve"]


_TURN_MARKS = frozenset({TurnStart, TurnEnd})
_MALFORMED = (TypeError, ValueError, AttributeError)
"""What Python raises where a field of a command is of another type than it says."""


class StoredLog(Protocol):
    """What is stored of one activation, as the write's own transaction sees it."""

    @property
    def key(self) -> ActivationKey:
        """The activation."""
        ...

    @property
    def head(self) -> Head:
        """Its head; `EMPTY_HEAD` for one that nobody has touched."""
        ...

    def events(self, start: int, stop: int) -> Sequence[StoredEvent | tuple[int, int, int, bytes]]:
        """The rows from `start` up to, not including, `stop`."""
        ...

    def appended(self, start: int, stop: int) -> Sequence[AppendedEvent]:
        """The same rows, decoded.

        Raises:
            LogCorruptionError: one of them cannot be read, or is missing.
        """
        ...

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """The checkpoint of that id."""
        ...

    def lowest_cut(self, generation: int) -> int | None:
        """The lowest offset that a rewind after `generation` cut at; None if there was none."""
        ...


class Change(msgspec.Struct, frozen=True, gc=False):
    """What to commit, all of it or nothing.

    `fence`: the incarnation to admit. `cut`: supersede the events at and above it and prune the checkpoints above it.
    `offset`, `incarnation`, `at_ms` and `events`: rows to add. `checkpoint`: one to keep, unless its id is taken.
    `next_turn`: raise the turn counter to it. `retired`: close the log for ever. `durable`: must reach the disk before
    it is acknowledged, whatever the store's mode (I11).
    """

    fence: int | None = None
    cut: int | None = None
    offset: int = 0
    incarnation: int = 0
    at_ms: int = 0
    events: tuple[EncodedEvent, ...] = ()
    checkpoint: EncodedCheckpoint | None = None
    next_turn: int | None = None
    durable: bool = False
    retired: bool = False


class Decision(msgspec.Struct, frozen=True):
    """`change` to commit, if any; then `error` to raise, or else `reply` to give. `head` is the head after it."""

    change: Change | None
    head: Head
    reply: Any = None
    error: RefusedError | None = None


Payload = tuple[EncodedEvent, ...] | EncodedCheckpoint | RefusedError | None


def encode_command(command: WriteCommand) -> Payload:
    """The bytes that `command` would store, made before the transaction so that it stays short.

    A value outside the encoding contract is returned, not raised: the fence is checked before anything else (I2).
    """
    kind = type(command)
    try:
        if kind is Append:
            return (encode_event(command.event),)  # type: ignore[union-attr]
        if kind is AppendMany:
            return encode_events(command.events)  # type: ignore[union-attr]
        if kind is PutCheckpoint:
            return encode_checkpoint(command.checkpoint)  # type: ignore[union-attr]
    except RefusedError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a value of the sender's raises is no failure of the actor
        return malformed(command) or MalformedCommandError(kind.__name__, "event", f"raised {error!r:.100}")
    return None


def decide(stored: StoredLog, command: WriteCommand, payload: Payload, now_ms: int) -> Decision:
    """What `command` does to `stored` at `now_ms`; `payload` is what `encode_command` made of it.

    A refusal is a decision too: its change still takes the fence where the command is of a newer incarnation (I3).
    """
    head = stored.head
    if type(command) is Append:
        plain = _one_more(head, command, payload, now_ms)
        if plain is not None:
            return plain
    fence = None
    try:
        fence = _admit(stored, head, command)
        if head.retired and not isinstance(command, Retire):
            fence = None  # not even the fence moves any more
            raise RetiredError(stored.key)
        if isinstance(payload, RefusedError):
            raise payload
        return _DECIDERS[type(command)](stored, head, fence, command, payload, now_ms)
    except MalformedCommandError as error:
        return Decision(None, head, error=error)
    except RefusedError as error:
        change = _taken(fence)
        return Decision(change, evolve(head, change), error=error)
    except _MALFORMED:  # looked at only now, so that a well-made command pays nothing for it
        flaw = malformed(command)
        if flaw is None:
            raise
        return Decision(None, head, error=flaw)


def _one_more(head: Head, command: Append, payload: Payload, now_ms: int) -> Decision | None:
    """One more event at the head by the writer who holds the fence: nearly every command is this.

    It is what the checks of `decide` come to where all of them pass, in one frame instead of ten, which took a third
    of an emit's time. None where anything else may come of it: then they are made one by one.
    """
    offset, incarnation, expected = command.offset, command.incarnation, command.expected_head
    if (
        offset != head.next_offset
        or incarnation != head.fence
        or (expected is not None and expected != (head.generation, offset))
        or type(payload) is not tuple
        or type(offset) is not int
        or type(incarnation) is not int
        or not 0 <= offset < MAX_INTEGER
        or not 0 <= incarnation <= MAX_INTEGER
        or head.retired
    ):
        return None
    event = payload[0].event
    if type(event) in _TURN_MARKS:
        return None
    return Decision(
        Change(None, None, offset, incarnation, now_ms, payload),
        Head(incarnation, offset + 1, head.generation, head.next_turn),
        AppendedEvent(offset, incarnation, now_ms, event),
    )


def evolve(head: Head, change: Change | None) -> Head:
    """The head after `change`."""
    if change is None:
        return head
    return Head(
        head.fence if change.fence is None else change.fence,
        change.offset + len(change.events) if change.events else head.next_offset,
        head.generation if change.cut is None else head.generation + 1,
        head.next_turn if change.next_turn is None else change.next_turn,
        head.retired or change.retired,
    )


def _admit(stored: StoredLog, head: Head, command: WriteCommand) -> int | None:
    if isinstance(command, Retire):
        return min(_next_incarnation(head), MAX_INTEGER)
    if isinstance(command, Claim):
        return _in_range("incarnation", _next_incarnation(head))
    incarnation = _in_range("incarnation", command.incarnation)
    if head.fence is None or incarnation > head.fence:
        return incarnation
    if incarnation < head.fence:
        raise StaleIncarnationError(key=stored.key, incarnation=incarnation, current=head.fence)
    return None


def _next_incarnation(head: Head) -> int:
    return 1 if head.fence is None else head.fence + 1


def _in_range(name: str, value: int) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise OutOfRangeError(name, value)
    return value


def _take(
    _stored: StoredLog, head: Head, fence: int | None, _command: Lease | Claim, _payload: None, _now_ms: int
) -> Decision:
    change = _taken(fence)
    after = evolve(head, change)
    return Decision(change, after, after)


def _taken(fence: int | None) -> Change | None:
    return None if fence is None else Change(fence=fence, durable=True)


def _append_one(
    stored: StoredLog, head: Head, fence: int | None, command: Append, events: tuple[EncodedEvent, ...], now_ms: int
) -> Decision:
    decision = _append(stored, head, fence, command, events, now_ms)
    return Decision(decision.change, decision.head, decision.reply[0])


def _append(
    stored: StoredLog,
    head: Head,
    fence: int | None,
    command: Append | AppendMany,
    events: tuple[EncodedEvent, ...],
    now_ms: int,
) -> Decision:
    offset, incarnation = _in_range("offset", command.offset), command.incarnation
    if command.expected_head is not None:
        repeated = _repeated(stored, head, command, events, command.expected_head)
        if repeated is not None:
            return Decision(None, head, repeated)
        _expect(stored, head, command.expected_head)
    next_offset = head.next_offset
    if offset > next_offset:
        raise OffsetError(f"offset {offset} of {stored.key} is above the head at {next_offset}")
    if not events:
        return Decision(_taken(fence), evolve(head, _taken(fence)), ())
    _in_range("offset", offset + len(events) - 1)
    fresh = [new.event for new in events]
    appended = tuple([AppendedEvent(at, incarnation, now_ms, event) for at, event in enumerate(fresh, offset)])
    turn = next_turn_after(fresh, head.next_turn)
    change = Change(
        fence,
        offset if offset < next_offset else None,
        offset,
        incarnation,
        now_ms,
        events,
        None,
        turn if turn > head.next_turn else None,
        fence is not None,
    )
    return Decision(change, evolve(head, change), appended)


def _repeated(
    stored: StoredLog,
    head: Head,
    command: Append | AppendMany,
    events: tuple[EncodedEvent, ...],
    expected: tuple[int, int],
) -> tuple[AppendedEvent, ...] | None:
    """The stored events, where the command is the repeat of one that was written but never answered (I6).

    Anything looser than these conditions would leave the checkpoint of an abandoned world in place.
    """
    if not events or command.offset + len(events) != head.next_offset:
        return None  # an append at the head ends above it: nothing is read of the tail for it
    generation, next_offset = expected
    extended = (generation, next_offset) == (head.generation, command.offset)
    rewound = next_offset > command.offset and generation + 1 == head.generation
    if not extended and not (rewound and stored.lowest_cut(generation) == command.offset):
        return None
    rows = stored.events(command.offset, head.next_offset)
    same = all(
        row[1] == command.incarnation and row[3] == encoded.payload for row, encoded in zip(rows, events, strict=True)
    )
    return tuple(stored.appended(command.offset, head.next_offset)) if same else None


def _expect(stored: StoredLog, head: Head, expected: tuple[int, int]) -> None:
    generation, next_offset = expected
    if generation != head.generation or next_offset != head.next_offset:
        raise HeadMovedError(key=stored.key, expected=(generation, next_offset), current=head.expected)


def _put_checkpoint(
    stored: StoredLog,
    head: Head,
    fence: int | None,
    command: PutCheckpoint,
    encoded: EncodedCheckpoint,
    _now_ms: int,
) -> Decision:
    checkpoint = command.checkpoint
    if command.expected_head is not None:
        _expect(stored, head, command.expected_head)
    if checkpoint.incarnation != command.incarnation:
        raise CheckpointError(
            f"checkpoint {checkpoint.id!r} is of incarnation {checkpoint.incarnation}, "
            f"its writer of {command.incarnation}"
        )
    if checkpoint.offset > head.next_offset:
        raise OffsetError(
            f"checkpoint {checkpoint.id!r} is at {checkpoint.offset}, above the head at {head.next_offset}"
        )
    known = stored.checkpoint(checkpoint.id) is not None
    change = Change(fence=fence, checkpoint=None if known else encoded, durable=True)
    return Decision(None if known and fence is None else change, evolve(head, change), reply=checkpoint)


def _next_turn(
    _stored: StoredLog, head: Head, fence: int | None, _command: NextTurn, _payload: None, _now_ms: int
) -> Decision:
    number = _in_range("turn", head.next_turn)
    change = Change(fence=fence, next_turn=number + 1, durable=True)
    return Decision(change, evolve(head, change), reply=number)


def _retire(
    _stored: StoredLog, head: Head, fence: int | None, _command: Retire, _payload: None, now_ms: int
) -> Decision:
    change = None if head.retired else Change(fence=fence, at_ms=now_ms, durable=True, retired=True)
    after = evolve(head, change)
    return Decision(change, after, after)


# Each takes what is stored, its head, the incarnation to raise the fence to (None where it stands there), the command,
# what encode_command made of it, and the time.
_DECIDERS: dict[type, Callable[..., Decision]] = {
    Lease: _take,
    Claim: _take,
    Append: _append_one,
    AppendMany: _append,
    PutCheckpoint: _put_checkpoint,
    NextTurn: _next_turn,
    Retire: _retire,
}
