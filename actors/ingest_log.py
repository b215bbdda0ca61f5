"""The log that a harness's records go into: compared with them until it ends, claimed there, and appended to."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from incarnate.domain.codec import encode_event
from incarnate.domain.commands import GetHead
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.errors import (
    HeadMovedError,
    LogMismatchError,
    OutcomeUnknownError,
    RetiredError,
    StoreBusyError,
    UnencodableEventError,
)
from incarnate.domain.events import TurnEnd, TurnStart
from incarnate.domain.turns import next_turn_after
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from incarnate.actors.ingest_report import IngestReport
    from incarnate.actors.session import Session
    from incarnate.actors.system import SessionSystem
    from incarnate.actors.turn_checkpoints import Boundaries
    from incarnate.domain.events import AppendedEvent, SessionEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey

__all__ = ["Drafted", "IngestedLog", "Mapped", "Patience"]

T = TypeVar("T")


class Patience(Protocol):
    """Repeats a call that may be repeated as it is, through a busy store and unknown outcomes."""

    def __call__(self, call: Callable[[], T], /) -> T:
        """Its answer."""
        ...


_TRIES = 5  # of a busy store, each of which waits the store's own time: giving up would break the harness's pipe
_MOST_EVENTS = 2048  # of one commit
_MOST_BYTES = 4 * 1024 * 1024  # of the records of one commit


class Drafted(Protocol):
    """A record with its drafts, at least one."""

    @property
    def line(self) -> int:
        """Where it was read."""
        ...

    @property
    def size(self) -> int:
        """Its bytes."""
        ...

    @property
    def drafts(self) -> tuple[SessionEvent, ...]:
        """What it became."""
        ...

    @property
    def name(self) -> str:
        """What names those of its drafts that have no id."""
        ...

    @property
    def refuse(self) -> Callable[[str], None]:
        """Told why, if the log cannot hold one of them."""
        ...


class Mapped(msgspec.Struct, frozen=True):
    """A record of which a function is told that it is refused; see `Drafted`."""

    line: int
    size: int
    drafts: tuple[SessionEvent, ...]
    name: str
    refuse: Callable[[str], None]


class IngestedLog:
    """One run over one log. It compares until the log ends, claims, and then appends.

    Whole records are appended, so that the log ends between two of them at any moment; those that arrived together
    share a commit.
    """

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey,
        report: IngestReport,
        checkpoints: Boundaries | None,
        *,
        session: Session | None = None,
        patiently: Patience | None = None,
    ) -> None:
        """With `session` nothing is claimed: it has been; `patiently` is how long a store is waited for."""
        self._system = system
        self._key = key
        self._report = report
        self._checkpoints = checkpoints
        self._head: Head = self._ask_head()
        self._stored: Iterator[AppendedEvent] = iter(())
        self._ahead: deque[AppendedEvent] = deque()  # read from the log and not yet compared
        self._turn_source: AppendedEvent | None = None
        self._next_turn = 0
        self._session: Session | None = None
        self._claimed = session
        self._patiently: Patience = patiently or _patiently
        self._appending = False
        self._batch: list[Drafted] = []
        self._batch_events = self._batch_bytes = 0
        self._named: str | None = None  # the harness's session that was last seen
        self._named_at: int | None = None  # where its first events end, until a checkpoint names it
        self._record: Drafted | None = None  # the one that is being linked
        self._index = 0
        self._linker = Linker(None, 0, self._new_id, self._number_turn)

    def begin(self, *, at_head: bool) -> None:
        """Start at the log's first event, or at its head.

        Raises:
            RetiredError: nobody may append to it, whatever the stream holds.
        """
        if self._head.retired and self._claimed is None:
            raise RetiredError(self._key)
        if not at_head:
            self._stored = self._system.replay(self._key, 0, self._head.next_offset)
            return
        self._claim()
        self._appending = True
        offset = self._head.next_offset
        for last in self._system.replay(self._key, max(0, offset - 1), offset):
            self._linker.parent_id = last.event.id
        self._linker.next_offset = offset

    def add(self, record: Drafted) -> None:
        """Compare one record with the log, or append it.

        Raises:
            LogMismatchError: the log holds something else.
            StaleIncarnationError, HeadMovedError, StoreBusyError, OutcomeUnknownError: as `ingest`.
        """
        if not self._appending and (held := self._look_ahead(len(record.drafts))):
            self._compare(record, held)
        else:
            self._appending = True
            self._batch.append(record)
            self._batch_events += len(record.drafts)
            self._batch_bytes += record.size
            if self._is_due(record):
                self.flush()
        if self._report.session_id != self._named:
            self._note_session()

    def flush(self) -> None:
        """Append what waits, so that it is durable."""
        batch, self._batch = self._batch, []
        self._batch_events = self._batch_bytes = 0
        if not batch:
            return
        linker = self._linker
        before = linker.parent_id, linker.next_offset, linker.open_turns.copy(), self._next_turn
        try:
            self._append(self._link_all(batch))
        except UnencodableEventError as error:
            linker.parent_id, linker.next_offset, linker.open_turns, self._next_turn = before
            self._refuse_one_of(batch, str(error))

    def finish(self) -> None:
        """Claim where nothing was to be appended, make the checkpoint that is owed, and tell.

        A stream that holds nothing of the harness, such as another one's, does not take the activation from whoever
        has it.
        """
        self.flush()
        report = self._report
        if self._session is None and not report.mapped:
            report.next_offset = self._head.next_offset
            return
        session = self._session or self._claim_unmoved()
        if report.session_id != self._named:  # Copilot names its session in its last record, which is no event
            self._note_session()
        self._settle(session)
        report.incarnation, report.next_offset = session.incarnation, session.next_offset
        report.beyond = session.next_offset - self._linker.next_offset

    # records

    def _is_due(self, record: Drafted) -> bool:
        if self._batch_events >= _MOST_EVENTS or self._batch_bytes >= _MOST_BYTES:
            return True
        # The world's commit is asked for at the boundary, not when its batch is full.
        return self._checkpoints is not None and any(self._checkpoints.is_boundary(draft) for draft in record.drafts)

    def _refuse_one_of(self, batch: list[Drafted], reason: str) -> None:
        """The log cannot hold an event of these: find whose it is, and append the others."""
        if len(batch) == 1:
            batch[0].refuse(reason)
            return
        for record in batch:
            self._batch = [record]
            self.flush()

    def _compare(self, record: Drafted, held: list[AppendedEvent]) -> None:
        """Pass over what the log holds of one record.

        Raises:
            LogMismatchError: it holds something else.
        """
        linker = self._linker
        before = linker.parent_id, linker.next_offset, linker.open_turns.copy(), self._next_turn
        try:
            payloads = [encode_event(event).payload for event in self._link(record, held)]
        except UnencodableEventError as error:
            linker.parent_id, linker.next_offset, linker.open_turns, self._next_turn = before
            record.refuse(str(error))
            return
        for at, payload in enumerate(payloads):
            if at == len(held) or encode_event(held[at].event).payload != payload:
                raise LogMismatchError(key=self._key, line=record.line, offset=held[0].offset + at)
        for _ in held:
            self._ahead.popleft()
        self._report.skipped += len(held)

    def _link(self, record: Drafted, held: list[AppendedEvent]) -> list[SessionEvent]:
        """The events of one record, with the turn numbers of `held` where the log has them."""
        self._record = record
        link = self._linker.link_one
        events: list[SessionEvent] = []
        for at, draft in enumerate(record.drafts):
            self._index = at
            self._turn_source = held[at] if at < len(held) else None
            events.append(link(draft))
        return events

    def _link_all(self, batch: list[Drafted]) -> list[SessionEvent]:
        """The events of records that the log does not hold."""
        self._turn_source = None
        link = self._linker.link_as
        events: list[SessionEvent] = []
        for record in batch:
            name = record.name
            for at, draft in enumerate(record.drafts):
                events.append(link(draft.id or f"{name}:{at}", draft))
        return events

    def _new_id(self) -> str:
        """The record's name and the draft's place in it, for a draft without an id of its own."""
        assert self._record is not None, "the linker only links inside _link"
        return f"{self._record.name}:{self._index}"

    def _number_turn(self) -> int:
        """The number that the log gave this turn, or the next one that it never used (I8).

        Not `session.next_turn()`: a kill between its commit and the event's would burn a number, and the log would
        not be the one of an undisturbed run. This process holds the fence and the event itself raises the counter.
        """
        if self._turn_source is not None:
            stored = self._turn_source.event
            return stored.turn if isinstance(stored, TurnStart | TurnEnd) else 0
        number, self._next_turn = self._next_turn, self._next_turn + 1
        return number

    # the log

    def _look_ahead(self, count: int) -> list[AppendedEvent]:
        """The next `count` events of the log that were not compared yet; fewer, or none, at its end."""
        while len(self._ahead) < count:
            appended = next(self._stored, None)
            if appended is not None:
                self._ahead.append(appended)
            elif self._session is None:
                self._claim_unmoved()  # and look again: the writer that is fenced now may have written meanwhile
            else:
                break
        return list(self._ahead)[:count]

    def _claim(self) -> Session:
        self._session = session = self._claimed or self._patiently(lambda: self._system.claim(self._key))
        self._head = self._ask_head()
        self._next_turn = self._head.next_turn
        return session

    def _claim_unmoved(self) -> Session:
        """Claim a log that was compared up to its head; what it has grown by since is compared next.

        Raises:
            HeadMovedError: it was rewound since, so what was compared may be gone.
        """
        before = self._head
        session = self._claim()
        if self._head.generation != before.generation:
            raise HeadMovedError(key=self._key, expected=before.expected, current=self._head.expected)
        self._stored = self._system.replay(self._key, before.next_offset, self._head.next_offset)
        return session

    def _append(self, events: list[SessionEvent]) -> None:
        session = self._session
        assert session is not None, "the log has ended, so it was claimed"
        self._settle(session)
        appended = self._patiently(lambda: session.emit_many(events))
        self._next_turn = next_turn_after(events, self._next_turn)
        self._report.appended += len(appended)
        if self._checkpoints is not None:
            checkpoints, session_id = self._checkpoints, self._report.session_id
            self._report.checkpoints += self._patiently(
                lambda: checkpoints.follow(session.incarnation, appended, session_id)
            )

    def _note_session(self) -> None:
        if self._checkpoints is None:  # nothing tells the session's name but the report
            self._named = self._report.session_id
            return
        self.flush()
        self._named, self._named_at = self._report.session_id, self._linker.next_offset
        if self._session is not None:
            self._settle(self._session)

    def _settle(self, session: Session) -> None:
        if self._checkpoints is not None:
            checkpoints = self._checkpoints
            self._report.checkpoints += self._patiently(
                lambda: checkpoints.settle(session.incarnation, self._report.session_id)
            )
            name, offset = self._named, self._named_at
            if name is not None and offset is not None:
                self._report.checkpoints += self._patiently(
                    lambda: checkpoints.note_session(session.incarnation, offset, name)
                )
            self._named_at = None

    def _ask_head(self) -> Head:
        head: Head = self._system.activation(self._key).ask(GetHead())
        return head


def _patiently(call: Callable[[], T]) -> T:
    """The answer of a call that may be repeated as it is, through a busy store and unknown outcomes.

    Raises:
        StoreBusyError: the last try failed; it tells the time of all.
    """
    begun = time.monotonic()
    for _ in range(_TRIES - 1):
        try:
            return call()
        except (StoreBusyError, OutcomeUnknownError):
            continue
    try:
        return call()
    except StoreBusyError as error:
        waited = counted(round(time.monotonic() - begun, 1), "second")
        raise StoreBusyError(f"{error}; gave up after {_TRIES} tries in {waited}") from error
