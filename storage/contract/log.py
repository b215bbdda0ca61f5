"""One activation's log driven command by command, without any actor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.commands import Append, AppendMany, Claim, Lease, NextTurn, PutCheckpoint, WriteCommand
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.domain.errors import RefusedError
from incarnate.domain.events import AppendedEvent, AssistantMessage, Opaque, SessionEvent
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.rewinds import Rewind
from incarnate.storage.port import Store

__all__ = ["ALL", "KEY", "OTHER", "Log", "checkpoint", "decided", "note", "notes", "perform", "soon"]

KEY = ActivationKey("pik-1", "implement-task")
OTHER = ActivationKey("pik-1", "review")
ALL = 2**53
"""More than any offset or number of bytes."""


def note(name: str, text: str = "") -> AssistantMessage:
    """An event."""
    return AssistantMessage(id=name, parent_id=None, text=text)


def notes(names: str) -> tuple[AssistantMessage, ...]:
    """One event a letter."""
    return tuple(note(name) for name in names)


def checkpoint(name: str, offset: int, incarnation: int = 1, sha: str = "sha", detail: object = None) -> Checkpoint:
    """A checkpoint with one effect."""
    ledger = (EffectEntry(id="effect", kind="git-push", detail=detail),)
    at = "1970-01-01T00:00:00.000Z"
    return Checkpoint(id=name, offset=offset, commit_sha=sha, effect_ledger=ledger, incarnation=incarnation, at=at)


def decided(store: Store, key: ActivationKey, command: WriteCommand, now_ms: int = 0) -> Decision:
    """What an activation actor has decided and committed."""
    payload = encode_command(command)

    def work_out(stored: StoredLog) -> Decision:
        return decide(stored, command, payload, now_ms)

    return store.transact(key, work_out, now_ms)


def perform(store: Store, key: ActivationKey, command: WriteCommand, now_ms: int = 0) -> Any:
    """What an activation actor would answer; raises its refusal."""
    decision = decided(store, key, command, now_ms)
    if decision.error is not None:
        raise decision.error
    return decision.reply


def soon(happened: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether it has happened within that time."""
    until, pause = time.monotonic() + seconds, threading.Event()
    while not happened():
        if time.monotonic() >= until:
            return False
        pause.wait(0.002)
    return True


class Log:
    """One activation of a store."""

    def __init__(self, store: Store, key: ActivationKey = KEY) -> None:
        self.store = store
        self.key = key

    def do(self, command: WriteCommand, now_ms: int = 0) -> Any:
        return perform(self.store, self.key, command, now_ms)

    def refused(self, command: WriteCommand) -> None:
        """Do it, whatever the log says to it."""
        with suppress(RefusedError):
            self.do(command)

    def lease(self, incarnation: int) -> Head:
        head: Head = self.do(Lease(incarnation))
        return head

    def claim(self) -> Head:
        head: Head = self.do(Claim())
        return head

    def append(
        self,
        offset: int,
        events: str | Sequence[SessionEvent | Opaque],
        incarnation: int = 1,
        expected: tuple[int, int] | None = None,
    ) -> tuple[AppendedEvent, ...]:
        """Events, or one note a letter, in one command."""
        batch = notes(events) if isinstance(events, str) else tuple(events)
        appended: tuple[AppendedEvent, ...] = self.do(AppendMany(incarnation, offset, batch, expected))
        return appended

    def append_at(self, offset: int, names: str, now_ms: int) -> None:
        """One note a letter, written at `now_ms`."""
        self.do(AppendMany(1, offset, notes(names)), now_ms)

    def append_one(
        self, offset: int, name: str, incarnation: int = 1, expected: tuple[int, int] | None = None
    ) -> AppendedEvent:
        appended: AppendedEvent = self.do(Append(incarnation, offset, note(name), expected))
        return appended

    def put(self, kept: Checkpoint, expected: tuple[int, int] | None = None) -> Checkpoint:
        reply: Checkpoint = self.do(PutCheckpoint(kept.incarnation, kept, expected))
        return reply

    def next_turn(self, incarnation: int = 1) -> int:
        number: int = self.do(NextTurn(incarnation))
        return number

    @property
    def head(self) -> Head:
        with self.store.snapshot(self.key) as log:
            return log.head

    @property
    def retired_ms(self) -> int | None:
        with self.store.snapshot(self.key) as log:
            return log.retired_ms()

    @property
    def events(self) -> list[AppendedEvent]:
        with self.store.snapshot(self.key) as log:
            return list(log.appended(0, log.head.next_offset))

    @property
    def names(self) -> str:
        """The ids of the events, one letter each where `notes` made them."""
        return "".join(appended.event.id for appended in self.events)

    @property
    def offsets(self) -> list[int]:
        return [appended.offset for appended in self.events]

    @property
    def latest(self) -> str | None:
        """The id of the newest checkpoint."""
        with self.store.snapshot(self.key) as log:
            latest = log.latest_checkpoint()
        return None if latest is None else latest.id

    def checkpoint(self, name: str) -> Checkpoint | None:
        with self.store.snapshot(self.key) as log:
            return log.checkpoint(name)

    def lowest_cut(self, generation: int) -> int | None:
        with self.store.snapshot(self.key) as log:
            return log.lowest_cut(generation)

    @property
    def rewinds(self) -> list[Rewind]:
        with self.store.snapshot(self.key) as log:
            return list(log.rewinds())

    def superseded(self, generation: int, start: int = 0, stop: int = ALL, max_bytes: int = ALL) -> list[str]:
        """The ids of the events that a rewind superseded."""
        with self.store.snapshot(self.key) as log:
            return [appended.event.id for appended in log.superseded(generation, start, stop, max_bytes)]

    def everything(self) -> tuple[object, ...]:
        """All that a reader can see, to compare."""
        return self.head, self.events, self.latest, self.lowest_cut(0)
