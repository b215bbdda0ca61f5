"""A harness's output into a log: every record once, however often the process dies.

A record becomes one `emit_many`, so the log ends between two records at any moment. Ids and parents come from the
records alone, so a second run over the same file works out the same events, finds how far the log holds them, and
goes on from there.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

import msgspec

from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.lines import MAX_LINE_BYTES, Line, read_lines
from incarnate.actors.turn_checkpoints import TurnCheckpoints
from incarnate.domain.codec import encode_event
from incarnate.domain.commands import GetHead
from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.prompted import Prompted
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.errors import (
    DialectError,
    EventShapeError,
    HeadMovedError,
    LogMismatchError,
    OutcomeUnknownError,
    StoreBusyError,
    UnencodableEventError,
)
from incarnate.domain.events import TurnEnd, TurnStart
from incarnate.domain.turns import next_turn_after
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from incarnate.actors.session import Session
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.dialects.base import Dialect, Normalizer
    from incarnate.domain.dialects.reader import Record
    from incarnate.domain.events import AppendedEvent, SessionEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey

__all__ = ["ingest"]

T = TypeVar("T")

_TRIES = 5  # of a busy store, each of which waits the store's own time: giving up would break the harness's pipe


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def ingest(
    system: SessionSystem,
    key: ActivationKey,
    dialect: Dialect,
    stream: BinaryIO,
    *,
    at_head: bool = False,
    prompts: Sequence[str] = (),
    ended: bool | None = None,
    commit_sha: Callable[[], str] | None = None,
    clock: Callable[[], int] = _now_ms,
    on_line: Callable[[int], object] | None = None,
) -> IngestReport:
    """Claim `key` and append the records of `stream` as they arrive.

    The log must begin as the stream does; what it already holds is skipped. Damaged records are counted with their
    lines and the rest goes on. Where no record maps, nothing is claimed, unless `at_head`.

    Args:
        system: the store's system.
        key: the activation.
        dialect: how the harness writes.
        stream: the harness's output, read by lines.
        at_head: append everything at the head, as for a pipe that cannot be read again.
        prompts: what the harness was asked, which most never print: the user's events behind the turn starts of the
            stream, the first behind the first; an empty one for a turn that it began by itself. A later run over the
            same file needs the same ones.
        ended: the harness is dead: what its last records began is appended too, such as a message of which only a part
            came. Without it that is counted as held, so that a file which has grown is continued. As `at_head` where
            it is not given.
        commit_sha: gives the world's commit at each turn end, and where a session begins; None makes no checkpoints.
        clock: milliseconds since the epoch, for checkpoints.
        on_line: told the size of each line once it is dealt with.

    Raises:
        LogMismatchError: with the line where stream and log part; nothing was appended and nothing claimed.
        StaleIncarnationError: someone else claimed the activation meanwhile.
        HeadMovedError: the log was rewound while it was compared.
        StoreBusyError, OutcomeUnknownError: run it again; it goes on where it stopped.
    """
    checkpoints = (
        None if commit_sha is None else TurnCheckpoints(system, key, dialect.name, commit_sha=commit_sha, clock=clock)
    )
    run = _Ingest(system, key, dialect, checkpoints, prompts)
    run.begin(at_head=at_head)
    for line in read_lines(stream):
        run.take(line)
        if on_line is not None:
            on_line(line.size)
    run.end(ended=at_head if ended is None else ended)
    return run.finish()


class _Ingest:
    """One run. It compares until the log ends, claims, and then appends."""

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey,
        dialect: Dialect,
        checkpoints: TurnCheckpoints | None,
        prompts: Sequence[str],
    ) -> None:
        self._system = system
        self._key = key
        self._dialect = dialect
        normalizer = dialect.normalizer()
        self._normalizer: Normalizer = Prompted(normalizer, prompts) if prompts else normalizer
        self._checkpoints = checkpoints
        self._report = IngestReport(key=str(key), harness=dialect.name)
        self._head: Head = self._ask_head()
        self._stored: Iterator[AppendedEvent] = iter(())
        self._ahead: deque[AppendedEvent] = deque()  # read from the log and not yet compared
        self._turn_source: AppendedEvent | None = None
        self._next_turn = 0
        self._session: Session | None = None
        self._named: str | None = None  # the harness's session that was last seen
        self._named_at: int | None = None  # where its first events end, until a checkpoint names it
        self._linker = Linker(None, 0, _no_id, self._number_turn)

    def begin(self, *, at_head: bool) -> None:
        """Start at the log's first event, or at its head."""
        if not at_head:
            self._stored = self._system.replay(self._key, 0, self._head.next_offset)
            return
        self._claim()
        self._stored = iter(())
        offset = self._head.next_offset
        for last in self._system.replay(self._key, max(0, offset - 1), offset):
            self._linker.parent_id = last.event.id
        self._linker.next_offset = offset

    def take(self, line: Line) -> None:
        """Deal with one line."""
        report = self._report
        report.lines += 1
        try:
            if line.data is None:
                raise EventShapeError(f"a line of {line.size} bytes; at most {MAX_LINE_BYTES} are read")
            record = read_record(line.data)
            if record is not None:
                self._record(line.number, line.data, record)
        except EventShapeError as error:
            report.refuse(line.number, str(error), torn=not line.whole)
        except (DialectError, UnencodableEventError) as error:
            report.refuse(line.number, str(error))

    def end(self, *, ended: bool) -> None:
        """Append what the normalizer still holds, where no record will complete it."""
        if not isinstance(self._normalizer, Finishing):
            return
        drafts = self._normalizer.finish().drafts
        if drafts and ended:
            self._place(self._report.lines, _named(drafts, f"end-{self._report.lines}"))
        else:
            self._report.held = len(drafts)

    def finish(self) -> IngestReport:
        """Claim where nothing was to be appended, make the checkpoint that is owed, and tell.

        A stream that holds nothing of the harness, such as another one's, does not take the activation from whoever
        has it.
        """
        report = self._report
        if self._session is None and not report.mapped:
            report.next_offset = self._head.next_offset
            return report
        session = self._session or self._claim_unmoved()
        self._settle(session)
        report.incarnation, report.next_offset = session.incarnation, session.next_offset
        report.beyond = session.next_offset - self._linker.next_offset
        return report

    # records

    def _record(self, number: int, data: bytes, record: Record) -> None:
        normalized = self._normalizer.feed(record.value)
        report = self._report
        report.mended += record.mended
        report.session_id = self._dialect.session_id(record.value) or report.session_id
        if normalized.ignored is not None:
            report.ignore(normalized.ignored)
        if normalized.drafts:
            name = self._dialect.record_id(record.value) or f"{number}-{_short_hash(data)}"
            self._place(number, _named(normalized.drafts, name))
        if normalized.drafts or normalized.ignored is None:
            report.mapped += 1

    def _place(self, number: int, drafts: list[SessionEvent]) -> None:
        held = self._look_ahead(len(drafts))
        events, payloads = self._link(drafts, held)
        if held:
            self._compare(number, payloads, held)
        else:
            self._append(events)
        if self._report.session_id != self._named:
            self._named, self._named_at = self._report.session_id, self._linker.next_offset
            if self._session is not None:
                self._settle(self._session)

    def _compare(self, number: int, payloads: list[bytes], held: list[AppendedEvent]) -> None:
        """Pass over what the log holds of one record.

        Raises:
            LogMismatchError: it holds something else.
        """
        for at, payload in enumerate(payloads):
            if at == len(held) or encode_event(held[at].event).payload != payload:
                offset = held[0].offset + at
                raise LogMismatchError(key=self._key, line=number, offset=offset)
        for _ in held:
            self._ahead.popleft()
        self._report.skipped += len(held)

    def _link(
        self, drafts: Iterable[SessionEvent], held: list[AppendedEvent]
    ) -> tuple[tuple[SessionEvent, ...], list[bytes]]:
        """The events of one record and their bytes, with the turn numbers of `held` where the log has them.

        Raises:
            UnencodableEventError: the log refuses one of them; the linker is as before.
        """
        linker, next_turn = self._linker, self._next_turn
        before = linker.parent_id, linker.next_offset, linker.open_turns.copy()
        events: list[SessionEvent] = []
        try:
            for at, draft in enumerate(drafts):
                self._turn_source = held[at] if at < len(held) else None
                events += linker.link((draft,))
            return tuple(events), [encode_event(event).payload for event in events]
        except UnencodableEventError:
            linker.parent_id, linker.next_offset, linker.open_turns = before
            self._next_turn = next_turn
            raise

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
        self._session = session = _patiently(lambda: self._system.claim(self._key))
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

    def _append(self, events: tuple[SessionEvent, ...]) -> None:
        session = self._session
        assert session is not None, "the log has ended, so it was claimed"
        self._settle(session)
        appended = _patiently(lambda: session.emit_many(events))
        self._next_turn = next_turn_after(events, self._next_turn)
        self._report.appended += len(appended)
        if self._checkpoints is not None:
            checkpoints, session_id = self._checkpoints, self._report.session_id
            self._report.checkpoints += _patiently(
                lambda: checkpoints.follow(session.incarnation, appended, session_id)
            )

    def _settle(self, session: Session) -> None:
        if self._checkpoints is not None:
            checkpoints = self._checkpoints
            self._report.checkpoints += _patiently(
                lambda: checkpoints.settle(session.incarnation, self._report.session_id)
            )
            name, offset = self._named, self._named_at
            if name is not None and offset is not None:
                self._report.checkpoints += _patiently(
                    lambda: checkpoints.note_session(session.incarnation, offset, name)
                )
            self._named_at = None

    def _ask_head(self) -> Head:
        head: Head = self._system.activation(self._key).ask(GetHead())
        return head


def _named(drafts: Iterable[SessionEvent], name: str) -> list[SessionEvent]:
    """The drafts, each with an id: its own, else the record's and its place in the record."""
    return [
        draft if draft.id else msgspec.structs.replace(draft, id=f"{name}:{index}")
        for index, draft in enumerate(drafts)
    ]


def _short_hash(data: bytes) -> str:
    return hashlib.blake2b(data.rstrip(b"\r\n"), digest_size=6).hexdigest()


def _no_id() -> str:
    raise AssertionError("every draft was named before it was linked")


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
