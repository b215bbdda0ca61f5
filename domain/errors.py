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
│   ├── CallDepthError           too many actors asked on, one in the other (also a RecursionError)
│   ├── MailboxFullError         too many messages wait for an actor already
│   ├── ReadOnlyError            a write through a system opened with read_only=True
│   ├── MalformedCommandError    a command with a field of a wrong type (also a TypeError)
│   └── UnknownCommandError      a message that no activation knows (also a TypeError)
├── StoreBusyError               another process held the database for longer than the wait
├── OutcomeUnknownError          the write may have happened or not; ask for the head
│   └── AskTimeoutError          no answer came in time (also a TimeoutError)
├── LogRewoundError              a rewind cut below what a replay already gave
├── ViewBehindError              a view did not come as far as was asked in time (also a TimeoutError)
├── ViewFailedError              a projection raised; the view is rebuilt at the next call
├── PageTooLargeError            a session that no page for a browser can hold
├── SimulationFailedError        a simulated run broke a promise (also an AssertionError)
├── CorruptError
│   ├── EventShapeError          JSON that is no event
│   └── LogCorruptionError       a stored record that cannot be read
├── DialectError                 a harness record that its dialect refuses
├── SessionChoiceError           a place that holds several sessions, or none of the name
├── UnclearPromptError       a command line in which the prompt is not certain (also a ValueError)
├── KeyFormatError               text that names no activation (also a ValueError)
└── UnavailableError
    ├── MissingExtraError        an optional dependency is not installed
    ├── StoreUrlError            a URL that names no store
    ├── StoreFileError           a file that is no store of ours, or from a newer version
    ├── StoreServerError         a server or third party's store that cannot be reached, or holds no store of ours
    ├── HarnessNotStartedError   the program of a harness could not be started
    ├── BackingOffError          what answers here failed again and again; nobody is started for a while
    ├── ClosedError              the system or store was closed
    ├── ForeignLoopError         the system belongs to another event loop (also a RuntimeError)
    └── ForkedError              the process was forked after the system was opened
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.error_root import IncarnateError
from incarnate.domain.refusals import (
    CallDepthError,
    CheckpointError,
    HeadMovedError,
    KeyTakenError,
    LogMismatchError,
    MailboxFullError,
    MalformedCommandError,
    OffsetError,
    OutOfRangeError,
    ReadOnlyError,
    ReentrantCallError,
    RefusedError,
    RetiredError,
    StaleIncarnationError,
    UnencodableEventError,
    UnknownCommandError,
    WouldRewindError,
)
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey

__all__ = [
    "AskTimeoutError",
    "BackingOffError",
    "CallDepthError",
    "CheckpointError",
    "ClosedError",
    "CorruptError",
    "DialectError",
    "EventShapeError",
    "ForeignLoopError",
    "ForkedError",
    "HarnessNotStartedError",
    "HeadMovedError",
    "IncarnateError",
    "KeyFormatError",
    "KeyTakenError",
    "LogCorruptionError",
    "LogMismatchError",
    "LogRewoundError",
    "MailboxFullError",
    "MalformedCommandError",
    "MissingExtraError",
    "OffsetError",
    "OutOfRangeError",
    "OutcomeUnknownError",
    "PageTooLargeError",
    "ReadOnlyError",
    "ReentrantCallError",
    "RefusedError",
    "RetiredError",
    "SessionChoiceError",
    "SimulationFailedError",
    "StaleIncarnationError",
    "StoreBusyError",
    "StoreFileError",
    "StoreServerError",
    "StoreUrlError",
    "UnavailableError",
    "UnclearPromptError",
    "UnencodableEventError",
    "UnknownCommandError",
    "ViewBehindError",
    "ViewFailedError",
    "WouldRewindError",
]


class StoreBusyError(IncarnateError):
    """The store was busy for longer than the wait; nothing was written."""

    hint = "try again; ?busy=SECONDS in the store's URL sets the wait"


class OutcomeUnknownError(IncarnateError):
    """The write may have happened or may not have (I6).

    The next head tells. To repeat an append safely, send it again with the same `expected_head`:
    it is answered with the stored events if it had been written.
    """

    hint = "repeat the same call: a write that had happened is answered from the log, not doubled"


class AskTimeoutError(OutcomeUnknownError, TimeoutError):
    """No answer came in time: `message` may be handled still, by `actor`, in whose inbox `queued` messages wait."""

    def __init__(self, actor: str, message: str, seconds: float, queued: int) -> None:
        self.actor = actor
        self.message = message
        self.seconds = seconds
        self.queued = queued
        waiting = f"{counted(queued, 'message')} wait{'s' if queued == 1 else ''} in its inbox"
        super().__init__(f"{actor} did not answer {message} in {counted(seconds, 'second')}; {waiting}")


class LogRewoundError(IncarnateError):
    """The log was rewound below an event that this replay had already given."""

    hint = "start the replay again"

    def __init__(self, *, key: ActivationKey, cut: int, given: int) -> None:
        self.key = key
        self.cut = cut
        self.given = given
        super().__init__(f"{key} was rewound to {cut} while a replay stood at {given}")


class PageTooLargeError(IncarnateError):
    """A session does not fit into one page, not even with its long texts cut: of `size` bytes, `most` were allowed."""

    hint = "allow more, export it as canonical, or look at it with incarnate studio, which loads only what is seen"

    def __init__(self, *, key: ActivationKey, size: int, most: int) -> None:
        self.key = key
        self.size = size
        self.most = most
        super().__init__(f"{key} takes more than {most} bytes as a page, even with its long texts cut: {size} so far")


class ViewBehindError(IncarnateError, TimeoutError):
    """The view did not come as far as was asked in time: the log has not, or the projector is slow."""

    hint = "wait longer, or read the head to see how far the log is"


class ViewFailedError(IncarnateError):
    """A projection raised at an event; the view is rebuilt from the log at the next call."""

    hint = "mend the projection: it must take every event that the log holds"


class SimulationFailedError(IncarnateError, AssertionError):
    """A simulated run broke a promise, or did not come to its end.

    `kind` says which promise, as the name of its check. `seed` is the run's, `choices` tells what did not go the usual
    way in it, `trace` all that happened, and `command` repeats it. A run by itself knows its seed and its trace alone.
    """

    def __init__(
        self,
        reason: str,
        *,
        kind: str = "",
        seed: int | None = None,
        choices: tuple[str, ...] = (),
        trace: str = "",
        command: str = "",
    ) -> None:
        self.reason = reason
        self.kind = kind
        self.seed = seed
        self.choices = choices
        self.trace = trace
        self.command = command
        again = f"repeat it with {command}"
        self.hint = again if command else "read its trace; incarnate.simulation.explore finds a smaller run like it"
        lines = [reason if seed is None else f"seed {seed}: {reason}", *(f"  {choice}" for choice in choices)]
        super().__init__("\n".join(lines))


class CorruptError(IncarnateError):
    """Bytes that should hold a record and do not."""


class EventShapeError(CorruptError, ValueError):
    """JSON that is no event of the canonical union."""

    hint = "check what was read: it may be cut off, of another format, or written by a newer version"


class LogCorruptionError(CorruptError):
    """A stored record that cannot be read; `place` says which file, row or byte."""

    hint = "copy the store before anything else writes to it"

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class DialectError(IncarnateError):
    """A record that the dialect of `harness` refuses."""

    hint = "leave the record out and go on, it changed nothing; tell us of it where the harness did write it"

    def __init__(self, harness: str, reason: str, *, hint: str = "") -> None:
        self.harness = harness
        self.reason = reason
        self.hint = hint or self.hint
        super().__init__(f"{harness}: {reason}")


class KeyFormatError(IncarnateError, ValueError):
    """Text that names no activation."""

    hint = "write PROCESS_INSTANCE_KEY/ELEMENT_ID, with / as %2F and % as %25 inside a part"


class SessionChoiceError(IncarnateError):
    """A place that holds `count` sessions, the first of them `sessions`; `named` is none of them, or several."""

    hint = "name one with --session, by its id or the beginning of it"

    def __init__(self, place: str, named: str | None, sessions: tuple[str, ...], count: int) -> None:
        self.place = place
        self.named = named
        self.sessions = sessions
        self.count = count
        listed = ", ".join(sessions) + (", ..." if count > len(sessions) else "")
        if not count:
            self.hint = (
                "check the path and --harness: sessions are told by the names that the harness gives their files"
            )
        asked = "" if named is None else f", not one that {named!r} names"
        super().__init__(f"{place} holds {counted(count, 'session')}{asked}" + (f": {listed}" if listed else ""))


class UnclearPromptError(IncarnateError, ValueError):
    """A harness's command line in which the prompt cannot be told from values of options; `candidates` may be it."""

    hint = "say what it is asked with --prompt TEXT, and write {prompt} in its place: ... -p '{prompt}' ..."

    def __init__(self, program: str, candidates: tuple[str, ...], reason: str = "") -> None:
        self.program = program
        self.candidates = candidates
        told = ", ".join([repr(_short(word)) for word in candidates[:_FEW_CANDIDATES]])
        more = ", ..." if len(candidates) > _FEW_CANDIDATES else ""
        reason = reason or "it is not clear what the prompt is"
        super().__init__(f"in the command line of {program} {reason}" + (f": {told}{more}" if told else ""))


_FEW_CANDIDATES = 4
_SHORT = 40


def _short(word: str) -> str:
    return word if len(word) <= _SHORT else f"{word[:_SHORT]}..."


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
    """A file that is no store of ours, is from a newer version, or cannot be opened; it was left untouched.

    `is_full`: what is missing is room, and the same write works once there is some.
    """

    def __init__(self, path: str, reason: str, *, hint: str = "", is_full: bool = False) -> None:
        self.path = path
        self.reason = reason
        self.is_full = is_full
        self.hint = hint or "check the path in the store's URL"
        super().__init__(f"{path}: {reason}")


class StoreServerError(UnavailableError):
    """A server or a third party's store that cannot be reached, refuses us, or holds no store of ours.

    Nothing was written. `place` is the store's URL without its password.
    """

    def __init__(self, place: str, reason: str, *, hint: str = "") -> None:
        self.place = place
        self.reason = reason
        self.hint = hint or "check the store's URL, and whether the server runs"
        super().__init__(f"{place}: {reason}")


class HarnessNotStartedError(UnavailableError):
    """The program of a harness could not be started."""

    hint = "check the command line after --, and that the program is installed"

    def __init__(self, program: str, reason: str) -> None:
        self.program = program
        self.reason = reason
        super().__init__(f"{program} could not be started: {reason}")


class BackingOffError(UnavailableError):
    """What answers here failed `failures` times in a row, the last time with `last`; nothing was done.

    It is started anew at the first call after `retry_after` seconds.
    """

    hint = "read the log of the logger `incarnate` for what failed, and try again later"

    def __init__(self, actor: str, failures: int, last: str, retry_after: float) -> None:
        self.actor = actor
        self.failures = failures
        self.last = last
        self.retry_after = retry_after
        super().__init__(
            f"{actor} failed {failures} times in a row, with {last} the last time; "
            f"it is not started again for {retry_after:.2f} seconds"
        )


class ClosedError(UnavailableError):
    """The system or the store was closed before the call."""

    hint = "open a new one with SessionSystem.open(url)"


class ForeignLoopError(UnavailableError, RuntimeError):
    """An asynchronous system was called from another event loop than the one on which it was entered."""

    hint = "enter a system on each loop, or come back to its own: asyncio.run_coroutine_threadsafe(call, loop)"


class ForkedError(UnavailableError):
    """The process was forked after the system was opened; the child must not use it.

    It opens a new one. A SQLite file that was open at the fork cannot be opened again in the child at all.
    """

    hint = "open a new system in the child; on SQLite start it by spawn, or close the system before the fork"
