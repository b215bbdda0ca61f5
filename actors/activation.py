"""The activation actor: the shell around the core, one a live activation.

Take one message, transact, tell the subscribers, reply. It holds no head: what a write is decided on is read in the
write's own transaction, and reads go to the store.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import pykka

from incarnate.actors.contained import ContainedActor
from incarnate.actors.logs import log
from incarnate.actors.replay import end_of_range
from incarnate.domain.codec import StoredEvent, decode_stored
from incarnate.domain.commands import (
    Append,
    AppendMany,
    Claim,
    GetCheckpoint,
    GetHead,
    LatestCheckpoint,
    Lease,
    NextTurn,
    PutCheckpoint,
    Replay,
    Retire,
    Subscribe,
    Unsubscribe,
)
from incarnate.domain.decisions import decide, encode_command
from incarnate.domain.errors import MailboxFullError, UnknownCommandError
from incarnate.domain.notices import Appended, FenceMoved
from incarnate.storage.port import Store, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.services import Services
    from incarnate.domain.commands import Subscriber, WriteCommand
    from incarnate.domain.decisions import Decision, StoredLog
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.notices import Notice
    from incarnate.storage.port import Snapshot

__all__ = ["ActivationActor", "Finish", "Prepare", "Prepared"]

_WRITES = frozenset({Lease, Claim, Append, AppendMany, PutCheckpoint, NextTurn, Retire})


class Prepare(NamedTuple):
    """Make ready to write `command`; the answer is a `Prepared`. Whoever asks this commits it himself.

    None where somebody else's code subscribes: he holds other actors while it runs, for which it might wait.
    """

    command: WriteCommand


class Prepared(NamedTuple):
    """What the store is to do, begun at `started`."""

    store: Store
    transaction: Transaction
    started: float


class Finish(NamedTuple):
    """The store came to `found` at what was prepared; the answer is that of the command."""

    prepared: Prepared
    found: Decision | BaseException


class ActivationActor(ContainedActor):
    """Owns the writes of one activation; `subscribers` outlives it, so that a fresh actor tells the same ones."""

    def __init__(
        self,
        key: ActivationKey,
        services: Services,
        subscribers: list[Subscriber],
        report_failure: Callable[[BaseException], None],
    ) -> None:
        super().__init__()
        self.report_failure = report_failure
        self._key = key
        self._services = services
        self._store = services.store
        self._subscribers = subscribers

    def __str__(self) -> str:
        return f"activation {self._key}"

    def handle(self, message: Any) -> Any:
        """Answer one command (see `incarnate.domain.commands` for what each replies)."""
        kind: type[Any] = type(message)
        if kind in _WRITES:
            return self._write(message)
        if kind is Prepare:
            return self._prepare(message.command)
        if kind is Finish:
            return self._finish(message.prepared, message.found)
        if kind is Subscribe:
            return self._subscribe(message.subscriber)
        if kind is Unsubscribe:
            return self._unsubscribe(message.subscriber)
        if kind is GetHead:
            return self._store.head(self._key)
        with self._store.snapshot(self._key) as log:
            return _answer(log, message)

    def _write(self, command: WriteCommand) -> Any:
        # What `_prepare` and `_finish` do, in one frame: every emit comes by here.
        services = self._services
        monotonic, meter = services.runtime.monotonic, services.meters.mine()
        started = monotonic()
        payload = encode_command(command)
        now_ms = services.clock()

        def work_out(stored: StoredLog) -> Decision:
            return decide(stored, command, payload, now_ms)

        try:
            decision = self._store.transact(self._key, work_out, now_ms)
        except BaseException as error:
            meter.failed(error, monotonic() - started)
            raise
        meter.answered(decision, monotonic() - started)
        if self._subscribers:
            self._notify(decision)
        if decision.error is not None:
            raise decision.error
        return decision.reply

    def _prepare(self, command: WriteCommand) -> Prepared | None:
        if not all(getattr(one, "holds_activation", False) for one in self._subscribers):
            return None
        services = self._services
        started = services.runtime.monotonic()
        payload = encode_command(command)
        now_ms = services.clock()

        def work_out(stored: StoredLog) -> Decision:
            return decide(stored, command, payload, now_ms)

        return Prepared(self._store, Transaction(self._key, work_out, now_ms), started)

    def _finish(self, prepared: Prepared, found: Decision | BaseException) -> Any:
        meter, seconds = self._services.meters.mine(), self._services.runtime.monotonic() - prepared.started
        if isinstance(found, BaseException):
            meter.failed(found, seconds)
            raise found
        meter.answered(found, seconds)
        if self._subscribers:
            self._notify(found)
        if found.error is not None:
            raise found.error
        return found.reply

    def _notify(self, decision: Decision) -> None:
        change = decision.change
        if change is None:
            return
        if change.fence is not None:
            self._tell(FenceMoved(decision.head))
        if change.events:
            # Decoded anew: what the caller does to a dict in its reply must change no view.
            rows = [
                StoredEvent(offset, change.incarnation, change.at_ms, encoded.payload)
                for offset, encoded in enumerate(change.events, change.offset)
            ]
            events = decode_stored(rows, f"{self._store.url}, {self._key}")
            self._tell(Appended(decision.head, change.cut, tuple(events)))

    def _tell(self, notice: Notice) -> None:
        for subscriber in tuple(self._subscribers):
            try:
                subscriber.tell(notice)
            except MailboxFullError as error:  # it misses this one, as its system's metrics tell, and hears the next
                log(logging.WARNING, "untold", "%s could not tell %r: %s", self, subscriber, error)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - what was committed must be answered, whoever cannot be told
                self._unsubscribe(subscriber)
                if not isinstance(error, pykka.ActorDeadError):
                    log(logging.ERROR, "untold", "%s could not tell %r", self, subscriber, error=error)

    def _subscribe(self, subscriber: Subscriber) -> Any:
        if subscriber not in self._subscribers:
            self._subscribers.append(subscriber)
        return self._store.head(self._key)

    def _unsubscribe(self, subscriber: Subscriber) -> None:
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)


def _answer(log: Snapshot, query: Any) -> Any:
    match query:
        case LatestCheckpoint():
            return log.latest_checkpoint()
        case GetCheckpoint(id=checkpoint_id):
            return log.checkpoint(checkpoint_id)
        case Replay(start=start, stop=stop):
            return _replay(log, start, stop)
        case _:
            raise UnknownCommandError(query)


def _replay(log: Snapshot, start: int, stop: int | None) -> tuple[AppendedEvent, ...]:
    return tuple(log.appended(start, end_of_range(start, stop, log.head.next_offset)))
