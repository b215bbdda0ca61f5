"""The errors that say no: nothing changed. Import them from `incarnate.domain.errors`, which draws the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.error_root import IncarnateError
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = [
    "CallDepthError",
    "CheckpointError",
    "HeadMovedError",
    "KeyTakenError",
    "LogMismatchError",
    "MailboxFullError",
    "MalformedCommandError",
    "OffsetError",
    "OutOfRangeError",
    "ReadOnlyError",
    "ReentrantCallError",
    "RefusedError",
    "RetiredError",
    "StaleIncarnationError",
    "UnencodableEventError",
    "UnknownCommandError",
    "WouldRewindError",
]


_KEPT = "text, numbers, lists and dicts that read back equal from JSON can be kept"


class RefusedError(IncarnateError):
    """The log said no, and nothing changed."""


class StaleIncarnationError(RefusedError):
    """A newer incarnation has taken the activation over; this writer must stop (I2)."""

    hint = "stop this writer; a newer incarnation owns the activation (claim it again only to take it back)"

    def __init__(self, *, key: ActivationKey, incarnation: int, current: int) -> None:
        self.key = key
        self.incarnation = incarnation
        self.current = current
        super().__init__(f"incarnation {incarnation} of {key} is stale: incarnation {current} has taken over")


class OffsetError(RefusedError, ValueError):
    """An offset above the head, or a range that ends before it starts (I1)."""

    hint = "read the head and go on from its next_offset"


class OutOfRangeError(RefusedError, ValueError):
    """An incarnation, offset or turn number that is not an integer from 0 to 2^53 - 1."""

    hint = "give an int in that range; a session's incarnation and a head's next_offset are the numbers to go on from"

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.value = value
        super().__init__(f"{name} must be an integer from 0 to 9007199254740991, not {value!r}")


class HeadMovedError(RefusedError):
    """The log has moved since this writer last saw it: someone else wrote with the same incarnation."""

    hint = "restore() or lease again, then decide whether to go on"

    def __init__(self, *, key: ActivationKey, expected: tuple[int, int], current: tuple[int, int]) -> None:
        self.key = key
        self.expected = expected
        self.current = current
        super().__init__(
            f"{key} has moved: expected generation {expected[0]} at offset {expected[1]}, "
            f"found generation {current[0]} at offset {current[1]}"
        )


class WouldRewindError(RefusedError):
    """The write would erase the whole log: it has events and no checkpoint to restore."""

    hint = "lease again to append at the head, or restore(rewind=True) to start over at 0"

    def __init__(self, *, key: ActivationKey, discards: int) -> None:
        self.key = key
        self.discards = discards
        super().__init__(f"{key} has no checkpoint, so going on from 0 would erase its {counted(discards, 'event')}")


class CheckpointError(RefusedError):
    """A checkpoint whose incarnation is not its writer's, or whose id already holds another (I5)."""

    hint = "give it its writer's incarnation and an id that no other has: new_id must never give one twice"


class UnencodableEventError(RefusedError, ValueError):
    """A value outside the encoding contract: it would not read back equal (I9).

    `path` points at the value, as in `$.args.items[3]`; `$` is the whole event.
    """

    hint = f"change the value at that path: {_KEPT}"

    def __init__(self, *, path: str, reason: str, hint: str = "") -> None:
        self.path = path
        self.reason = reason
        is_whole = path == "$"
        self.hint = hint or (f"change it: {_KEPT}" if is_whole else self.hint)
        super().__init__(reason if is_whole else f"{reason} - at `{path}`")


class LogMismatchError(RefusedError):
    """A file of records that does not begin as the log does: it belongs to another activation, or was changed."""

    hint = (
        "append all runs of one session to one file (claude ... >> run.jsonl) and ingest that, "
        "ingest this file under a key of its own, or pipe it in to append it at the head"
    )

    def __init__(self, *, key: ActivationKey, line: int, offset: int) -> None:
        self.key = key
        self.line = line
        self.offset = offset
        super().__init__(f"line {line} is not what {key} holds at offset {offset}; nothing was appended")


class RetiredError(RefusedError):
    """The activation was retired: nobody writes to its log any more, whatever the incarnation."""

    hint = "fork it onto a new key to go on from where it ended"

    def __init__(self, key: ActivationKey) -> None:
        self.key = key
        super().__init__(f"{key} is retired")


class KeyTakenError(RefusedError):
    """A fork or copy would write over an activation that exists already."""

    hint = "choose a key that nobody has touched"

    def __init__(self, key: ActivationKey, reason: str = "") -> None:
        self.key = key
        self.reason = reason
        super().__init__(f"{key} exists already{reason and f': {reason}'}")


class ReentrantCallError(RefusedError, RuntimeError):
    """A call from inside another that it would wait for, for ever: a signal handler, a subscriber, a callback."""

    hint = "hand it to another thread, or do it after the call that it came from has returned"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was called from inside a call of its own")


class CallDepthError(RefusedError, RecursionError):
    """`depth` actors asked on, one in the other; `actor` was not asked."""

    hint = "end the recursion, or tell the next actor instead of asking it"

    def __init__(self, actor: str, depth: int) -> None:
        self.actor = actor
        self.depth = depth
        super().__init__(f"{actor} was asked from inside {counted(depth, 'call')} of other actors")


class MailboxFullError(RefusedError):
    """`limit` messages wait for `actor` already; this one was not taken in."""

    hint = "send less at once, wait for the answers, or give `wait` to wait for room; max_mailbox sets the limit"

    def __init__(self, actor: str, limit: int) -> None:
        self.actor = actor
        self.limit = limit
        waiting = f"{counted(limit, 'message')} wait{'s' if limit == 1 else ''}"
        super().__init__(f"the mailbox of {actor} is full: {waiting} there")


class ReadOnlyError(RefusedError):
    """A write was asked of a system that was opened with read_only=True."""

    hint = "open the system without read_only=True"


class MalformedCommandError(RefusedError, TypeError):
    """A command or a call with a field of another type than it says: `command` and `field` name it."""

    hint = "see the call's docstring, or incarnate.domain.commands, for what each field takes"

    def __init__(self, command: str, field: str, reason: str) -> None:
        self.command = command
        self.field = field
        self.reason = reason
        super().__init__(f"{command}.{field} {reason}")


class UnknownCommandError(RefusedError, TypeError):
    """A message that no activation knows."""

    hint = "send one of the commands in incarnate.domain.commands"

    def __init__(self, message: object) -> None:
        super().__init__(f"{type(message).__name__} is no command of an activation")
