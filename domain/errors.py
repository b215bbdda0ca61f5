"""Every error of incarnate, one tree.

```
IncarnateError
├── RefusedError                 the log said no; nothing changed (I3 names the one exception)
│   ├── StaleIncarnationError    a newer incarnation has taken over
│   ├── OffsetError              an append above the head, an impossible range (also a ValueError)
│   ├── OutOfRangeError          a number outside 0 to 2^53 - 1 (also a ValueError)
│   ├── HeadMovedError           the log is not where the writer last saw it
│   ├── WouldRewindError         the write would erase a log that has no checkpoint
│   ├── CheckpointError          a checkpoint that contradicts its writer or what is stored
│   ├── UnencodableEventError    a value that would not read back equal
│   ├── LogMismatchError         records that part from what the log holds
│   ├── RetiredError             the activation was retired: its log is closed for ever
│   ├── KeyTakenError            a fork or copy onto an activation that exists
│   ├── ReentrantCallError       a call from inside a call that it would wait for (also a RuntimeError)
│   ├── ReadOnlyError            a write through a system opened with read_only=True
│   ├── MalformedCommandError    a command with a field of a wrong type (also a TypeError)
│   └── UnknownCommandError      a message that no activation knows (also a TypeError)
├── StoreBusyError               another process held the database for longer than the wait
├── OutcomeUnknownError          the write may have happened or not; ask for the head
├── LogRewoundError              a rewind cut below what a replay already gave
├── ViewBehindError              a view did not come as far as was asked in time (also a TimeoutError)
├── ViewFailedError              a projection raised; the view is rebuilt at the next call
├── CorruptError
│   ├── EventShapeError          JSON that is no event
│   └── LogCorruptionError       a stored record that cannot be read
├── DialectError                 a harness record that its dialect refuses
├── KeyFormatError               text that names no activation (also a ValueError)
└── UnavailableError
    ├── MissingExtraError        an optional dependency is not installed
    ├── StoreUrlError            a URL that names no store
    ├── StoreFileError           a file that is no store of ours, or from a newer version
    ├── StoreServerError         a server that cannot be reached, refuses us, or holds no store of ours
    ├── ClosedError              the system or store was closed
    └── ForkedError              the process was forked after the system was opened
```
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.keys import ActivationKey

__all__ = [
    "CheckpointError",
    "ClosedError",
    "CorruptError",
    "DialectError",
    "EventShapeError",
    "ForkedError",
    "HeadMovedError",
    "IncarnateError",
    "KeyFormatError",
    "KeyTakenError",
    "LogCorruptionError",
    "LogMismatchError",
    "LogRewoundError",
    "MalformedCommandError",
    "MissingExtraError",
    "OffsetError",
    "OutOfRangeError",
    "OutcomeUnknownError",
    "ReadOnlyError",
    "ReentrantCallError",
    "RefusedError",
    "RetiredError",
    "StaleIncarnationError",
    "StoreBusyError",
    "StoreFileError",
    "StoreServerError",
    "StoreUrlError",
    "UnavailableError",
    "UnencodableEventError",
    "UnknownCommandError",
    "ViewBehindError",
    "ViewFailedError",
    "WouldRewindError",
]


class IncarnateError(Exception):
    """Something that incarnate refuses, cannot do, or cannot know.

    `hint` is the next step, in words that the command line prints after `Try:`, and so does a traceback.
    """

    hint: str = ""

    @cached_property
    def __notes__(self) -> list[str]:  # type: ignore[override] # it may be set and added to, as any exception's
        # What a traceback prints below the message. Made when it is asked for: most errors are caught, not printed.
        return [f"Try: {self.hint}"] if self.hint else []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        # Errors cross threads and processes; most take keyword arguments, which the default cannot rebuild.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[IncarnateError], args: tuple[Any, ...]) -> IncarnateError:
    error = cls.__new__(cls)
    error.args = args
    return error


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


class UnencodableEventError(RefusedError, ValueError):
    """A value outside the encoding contract: it would not read back equal (I9).

    `path` points at the value, as in `$.args.items[3]`.
    """

    def __init__(self, *, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason} - at `{path}`")


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


class ReadOnlyError(RefusedError):
    """A write was asked of a system that was opened with read_only=True."""

    hint = "open the system without read_only=True"


class MalformedCommandError(RefusedError, TypeError):
    """A command with a field of another type than it says: `command` and `field` name it."""

    hint = "see incarnate.domain.commands for what each field takes"

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


class StoreBusyError(IncarnateError):
    """The store was busy for longer than the wait; nothing was written."""

    hint = "try again; ?busy=SECONDS in the store's URL sets the wait"


class OutcomeUnknownError(IncarnateError):
    """The write may have happened or may not have (I6).

    The next head tells. To repeat an append safely, send it again with the same `expected_head`:
    it is answered with the stored events if it had been written.
    """

    hint = "repeat the same call: a write that had happened is answered from the log, not doubled"


class LogRewoundError(IncarnateError):
    """The log was rewound below an event that this replay had already given."""

    hint = "start the replay again"

    def __init__(self, *, key: ActivationKey, cut: int, given: int) -> None:
        self.key = key
        self.cut = cut
        self.given = given
        super().__init__(f"{key} was rewound to {cut} while a replay stood at {given}")


class ViewBehindError(IncarnateError, TimeoutError):
    """The view did not come as far as was asked in time: the log has not, or the projector is slow."""

    hint = "wait longer, or read the head to see how far the log is"


class ViewFailedError(IncarnateError):
    """A projection raised at an event; the view is rebuilt from the log at the next call."""

    hint = "mend the projection: it must take every event that the log holds"


class CorruptError(IncarnateError):
    """Bytes that should hold a record and do not."""


class EventShapeError(CorruptError, ValueError):
    """JSON that is no event of the canonical union."""


class LogCorruptionError(CorruptError):
    """A stored record that cannot be read; `place` says which file, row or byte."""

    hint = "copy the store before anything else writes to it"

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class DialectError(IncarnateError):
    """A record that the dialect of `harness` refuses."""

    def __init__(self, harness: str, reason: str) -> None:
        self.harness = harness
        self.reason = reason
        super().__init__(f"{harness}: {reason}")


class KeyFormatError(IncarnateError, ValueError):
    """Text that names no activation."""

    hint = "write PROCESS_INSTANCE_KEY/ELEMENT_ID, with / as %2F and % as %25 inside a part"


class UnavailableError(IncarnateError):
    """What was asked for is not to be had here."""


class MissingExtraError(UnavailableError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        self.hint = f'pip install "incarnate[{extra}]"'
        super().__init__(f"{needed_for} needs the extra {extra!r}, which is not installed")


class StoreUrlError(UnavailableError, ValueError):
    """A URL that names no store."""

    hint = "use memory://, sqlite:///relative.db, sqlite:////absolute/path.db, jsonl:///folder or postgresql://host/database"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.hint = hint or self.hint
        super().__init__(message)


class StoreFileError(UnavailableError):
    """A file that is no store of ours, is from a newer version, or cannot be opened; it was left untouched."""

    def __init__(self, path: str, reason: str, *, hint: str = "") -> None:
        self.path = path
        self.reason = reason
        self.hint = hint or "check the path in the store's URL"
        super().__init__(f"{path}: {reason}")


class StoreServerError(UnavailableError):
    """A server that cannot be reached, refuses us, or holds no store of ours; nothing was written.

    `place` is the store's URL without its password.
    """

    def __init__(self, place: str, reason: str, *, hint: str = "") -> None:
        self.place = place
        self.reason = reason
        self.hint = hint or "check the store's URL, and whether the server runs"
        super().__init__(f"{place}: {reason}")


class ClosedError(UnavailableError):
    """The system or the store was closed before the call."""

    hint = "open a new one with SessionSystem.open(url)"


class ForkedError(UnavailableError):
    """The process was forked after the system was opened; the child must not use it."""

    hint = "open a new system in the child, with SessionSystem.open(url)"
