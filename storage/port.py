"""The port: what the rest of incarnate may ask of a back end, and what every back end promises.

A store keeps, for each activation, a head, event rows, checkpoints, and an archive of what rewinds superseded. It
never looks inside a payload and never learns who asks. `contract` holds these promises as tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from incarnate.domain.decisions import Decision, StoredLog
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.rewinds import Rewind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Self

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.events import AppendedEvent

__all__ = ["ActivationInfo", "Decide", "Snapshot", "Store", "Swept", "Transaction"]


class ActivationInfo(msgspec.Struct, frozen=True):
    """What a listing tells of an activation.

    `created_ms` is when it was first touched, `updated_ms` when its newest event was written, and never before
    `created_ms`: a fork has events that are older than itself (milliseconds, UTC).
    """

    key: ActivationKey
    head: Head
    created_ms: int
    updated_ms: int


class Swept(msgspec.Struct, frozen=True):
    """What a sweep removed: retired activations, archives of rewinds, and the events in both."""

    activations: int
    rewinds: int
    events: int


Decide = Callable[[StoredLog], Decision]
"""Works out a decision. Pure: it may be called more than once, and on a head that was only seen before.

What is committed is a decision that holds for what is stored, compared or read in the write's own transaction.
"""


class Snapshot(StoredLog, Protocol):
    """One activation as it stood at one moment: every answer is of the same moment."""

    def page(self, start: int, stop: int, max_bytes: int) -> Sequence[AppendedEvent]:
        """The events from `start` up to `stop`, fewer where their payloads reach `max_bytes`; at least one if any."""
        ...

    def latest_checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the highest offset, then the latest insert (I5)."""
        ...

    def checkpoint_ids(self) -> Sequence[str]:
        """The ids of all checkpoints: that of the lowest offset first, of equal ones the one made first."""
        ...

    def rewinds(self) -> Sequence[Rewind]:
        """Every rewind of the log, the first one first."""
        ...

    def superseded(self, generation: int, start: int, stop: int, max_bytes: int) -> Sequence[AppendedEvent]:
        """The events that the rewind to `generation` superseded, as `page` gives those of the log."""
        ...

    def retired_ms(self) -> int | None:
        """When the log was retired (milliseconds, UTC); None where it was not, or has been swept since."""
        ...


class Transaction(NamedTuple):
    """One call of `Store.transact`."""

    key: ActivationKey
    decide: Decide
    now_ms: int


class Store(Protocol):
    """A back end. Every method may be called from any thread."""

    url: str
    """The URL that opens it again, or names it in a message."""

    commits_together: bool = False
    """Whether `transact_each` commits many at once. Where it does them one after the other, and one of them may have to
    wait, they are better done by as many threads."""

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        """Run `decide` on what is stored and commit its change, in one transaction. `now_ms` is the creation time.

        The decision is returned once its change is committed, and on the disk where it must be; its error is not
        raised here.

        Raises:
            StoreBusyError: another process kept the store longer than the wait; nothing was written.
            OutcomeUnknownError: the commit may have happened or not.
            ReadOnlyError: the store was opened read-only.
            ClosedError: the store was closed.
        """
        ...

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        """Run each of `decides` on what the one before it left; the answer is the first refusal, else the last one.

        It is `transact` for each, and a back end may commit many of them in one transaction. A caller that must know
        what was written after an error reads the head.

        Raises:
            StoreBusyError, OutcomeUnknownError, ReadOnlyError, ClosedError: as `transact`.
        """
        first, *others = decides
        decision = self.transact(key, first, now_ms)
        for decide in others:
            if decision.error is not None:
                break
            decision = self.transact(key, decide, now_ms)
        return decision

    def transact_each(self, calls: Sequence[Transaction]) -> list[Decision | Exception]:
        """`transact` for each of `calls`: the decision, or what it raised.

        A back end may commit many of them in one transaction.

        Raises:
            StoreBusyError, OutcomeUnknownError, ReadOnlyError, ClosedError: as `transact`, of all of them.
        """
        return [self._transact_one(*call) for call in calls]

    def _transact_one(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision | Exception:
        try:
            return self.transact(key, decide, now_ms)
        except Exception as error:  # noqa: BLE001 - it is the answer to this call, and the others have theirs
            return error

    def snapshot(self, key: ActivationKey) -> AbstractContextManager[Snapshot]:
        """What is stored of `key` at one moment; use it briefly, it may hold a connection.

        Raises:
            StoreBusyError, ClosedError: as above.
            LogCorruptionError: from its reads, with the place.
        """
        ...

    def head(self, key: ActivationKey) -> Head:
        """The stored head of `key`; a back end may have a cheaper way than a snapshot, since views ask at every read.

        Raises:
            StoreBusyError, ClosedError: as above.
        """
        with self.snapshot(key) as log:
            return log.head

    def activations(self) -> Iterator[ActivationInfo]:
        """What the store holds, in the order of the keys; what was swept is not listed."""
        ...

    def keys(self) -> Iterator[ActivationKey]:
        """The keys of `activations`, in that order; a log that is damaged does not hide those after it."""
        return (info.key for info in self.activations())

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        """Make `new_key` from the events of `key` below `offset` and the checkpoints up to it, in one transaction.

        It takes over the fence and the turn counter, so that nothing is admitted or handed out twice. Its archive is
        empty. Returns its head.

        Raises:
            OffsetError: `offset` is above the head of `key`.
            KeyTakenError: somebody has touched `new_key`.
            ReadOnlyError, StoreBusyError, OutcomeUnknownError, ClosedError: as `transact`.
        """
        ...

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        """Remove the events of activations retired before `before_ms`, and of rewinds done before it.

        With `keys` nothing is removed of any other activation: of none at all where it is empty. A swept activation
        keeps its fence and is no longer listed; a swept rewind keeps its cut. Each activation is a transaction of its
        own, so that a large sweep holds nobody up for long.

        Raises:
            ReadOnlyError, StoreBusyError, OutcomeUnknownError, ClosedError: as `transact`.
        """
        ...

    def vacuum(self) -> None:
        """Give the room of what was removed back to the file system.

        Raises:
            ReadOnlyError, StoreBusyError, ClosedError: as `transact`.
        """
        ...

    def group_sizes(self) -> Sequence[int]:
        """How many writes shared a transaction, by powers of two: item `i` counts those of `2**(i-1)` to `2**i - 1`.

        Empty where each write has its own.
        """
        return ()

    def version(self) -> int:
        """A number that changes when another process may have committed; cheap enough to poll."""
        ...

    def damage(self) -> Iterator[str]:
        """What the back end itself finds broken below what it holds, in words; nothing where it keeps no such check.

        It reads the whole store. A page of zeros may read as an activation that nobody has touched: only this tells.

        Raises:
            StoreBusyError, ClosedError: as above.
        """
        return iter(())

    def close(self) -> None:
        """Let go of everything. Closing twice is no error."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
