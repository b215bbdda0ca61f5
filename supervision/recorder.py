"""What a running harness prints, into the log as it is printed."""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec import UNSET
from msgspec.structs import replace

from incarnate.actors.ingest_log import IngestedLog, Mapped
from incarnate.actors.ingest_report import IngestReport, RefusedLine
from incarnate.actors.ingest_source import StreamSource
from incarnate.actors.logs import log
from incarnate.domain.dialects.base import Finishing, HearsText, Normalized
from incarnate.domain.dialects.prompted import Prompted
from incarnate.domain.dialects.records import Found, Text
from incarnate.domain.errors import DialectError
from incarnate.domain.events import ToolCall, ToolResult, TurnEnd, TurnStart, UserMessage
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.actors.ingest_log import Patience
    from incarnate.actors.ingest_source import Sourced
    from incarnate.actors.runtime import Runtime
    from incarnate.actors.session import Session
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.dialects.base import Dialect
    from incarnate.domain.events import SessionEvent
    from incarnate.supervision.boundaries import SupervisedBoundaries
    from incarnate.supervision.mind import Mind

__all__ = ["Asked", "Output", "Recorder"]

_MOST_BYTES = 8 * 1024 * 1024
"""What may wait to be recorded: then the harness's pipe fills, and the harness waits. Memory stays flat."""


_MOST_TOLD = 5
"""So many lines of one life are told when they are refused, and the others counted: it may print damage for days."""


_TORN = "%s: the output ends inside the record of line %s: %s"


class Output:
    """What was read and is to be recorded, in order, as a stream. One thread puts, another one reads."""

    def __init__(self, runtime: Runtime) -> None:
        self._changed = runtime.condition()
        self._chunks: deque[bytes] = deque()
        self._bytes = 0
        self._is_over = self._is_given_up = False

    def put(self, chunk: bytes) -> None:
        """Add what was read; waits while too much waits already."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _MOST_BYTES or self._is_given_up)
            if not self._is_given_up:
                self._chunks.append(chunk)
                self._bytes += len(chunk)
                self._changed.notify_all()

    def end(self) -> None:
        """Nothing will come any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Nobody will read any more: what comes is let go of."""
        with self._changed:
            self._is_given_up = self._is_over = True
            self._chunks.clear()
            self._changed.notify_all()

    def read1(self, _size: int = -1) -> bytes:
        """What was put, as soon as there is some, all that waits; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._is_over)
            data = b"".join(self._chunks)
            self._chunks.clear()
            self._bytes = 0
            self._changed.notify_all()
            return data


class Asked:
    """What a harness was asked, and what the log says instead, where the harness prints it.

    They differ where a new session was told all of an old one: the log has that already.
    """

    def __init__(self, prompt: str | None, logged: str | None = None) -> None:
        self.prompt = prompt
        self.logged = prompt if logged is None else logged

    def is_echo(self, text: str) -> bool:
        """Whether this is the long prompt, in whose place the log has the short one already."""
        return self.prompt != self.logged and text == self.prompt


class Recorder:
    """Appends the records of one life to the log that `session` holds.

    Ids begin with the incarnation and the number of the record: a harness that counts its lines or calls from 0 in each
    process would else give one id twice, and so would a model that numbers its calls anew in each answer. A result of a
    call that is closed already, and an end of a turn that is, are left out and counted.
    """

    def __init__(
        self,
        system: SessionSystem,
        session: Session,
        dialect: Dialect,
        asked: Asked,
        boundaries: SupervisedBoundaries,
        mind: Mind,
        patiently: Patience,
    ) -> None:
        self.report = IngestReport(key=str(session.key), harness=dialect.name)
        self._dialect = dialect
        self._life = _Life(dialect, asked, mind, self.report, session.incarnation)
        self._log = IngestedLog(system, session.key, self.report, boundaries, session=session, patiently=patiently)
        self._log.begin(at_head=True)

    def run(self, output: Output) -> None:
        """Record to the end of `output`.

        Raises:
            StaleIncarnationError: somebody has taken over; nothing after that is in the log.
            IncarnateError: the log cannot be written.
        """
        source = StreamSource(cast("BinaryIO", output), self._dialect.likeness)
        for sourced in source:
            self._take(sourced)
            if not sourced.more:
                self._log.flush()
        self._add(0, 0, self._life.finish())
        self.report.lines = source.lines
        self._log.finish()
        more = self.report.refused - _MOST_TOLD
        if more > 0:
            log(logging.WARNING, "refused", "%s: refused %s more", self.report.key, counted(more, "line"))

    def _take(self, sourced: Sourced) -> None:
        piece, report = sourced.piece, self.report
        if isinstance(piece, Found):
            try:
                normalized = self._life.feed(piece.value)
            except DialectError as error:
                self._refuse(piece.line, str(error))
                return
            report.session_id = self._dialect.session_id(piece.value) or report.session_id
        elif isinstance(piece, Text):
            normalized = self._life.text(piece.text)
        else:
            self._refuse(piece.line, piece.reason, torn=piece.torn)
            return
        if normalized.ignored is not None:
            report.ignore(normalized.ignored)
        self._add(piece.line, len(piece.data), normalized.drafts)

    def _add(self, line: int, size: int, drafts: tuple[SessionEvent, ...]) -> None:
        if drafts:
            self.report.mapped += 1
            self._log.add(Mapped(line, size, drafts, "", partial(self._unmap, line)))

    def _unmap(self, line: int, reason: str) -> None:
        """The log cannot hold what the record became."""
        self.report.mapped -= 1
        self._refuse(line, reason)

    def _refuse(self, line: int, reason: str, *, torn: bool = False) -> None:
        report = self.report
        report.refuse(RefusedLine(line, reason), torn=torn)
        if torn:
            log(logging.WARNING, "refused", _TORN, report.key, line, reason, line=line)
        elif report.refused <= _MOST_TOLD:
            told = report.refused_lines[-1].reason  # of a bounded length
            log(logging.WARNING, "refused", "%s: refused line %s: %s", report.key, line, told, line=line)


class _Life:
    """The records of one process to drafts that fit the log as it is."""

    def __init__(self, dialect: Dialect, asked: Asked, mind: Mind, report: IngestReport, incarnation: int) -> None:
        self._record_id = dialect.record_id
        self._inner = dialect.normalizer()
        self._main = Prompted(self._inner, [asked.logged]) if asked.logged else self._inner
        self._asked = asked
        self._report = report
        self._prefix = f"i{incarnation}:"
        self._records = 0
        # Calls that wait for a result, by their ids, and turns that wait for their end. What is in the log and not yet
        # answered counts too.
        self._waiting: dict[str, int] = {}
        for call in mind.open_calls:
            self._waiting[call.call_id] = self._waiting.get(call.call_id, 0) + 1
        self._is_open = mind.is_open

    def feed(self, value: object) -> Normalized:
        return self._fit(self._main.feed(value), self._record_id(value))

    def text(self, line: str) -> Normalized:
        heard = self._inner.text(line) if isinstance(self._inner, HearsText) else Normalized((), "(text)")
        return self._fit(heard, None)

    def finish(self) -> tuple[SessionEvent, ...]:
        if not isinstance(self._main, Finishing):
            return ()
        return self._fit(self._main.finish(), None).drafts

    def _fit(self, normalized: Normalized, own: str | None) -> Normalized:
        if not normalized.drafts:
            return normalized
        self._records += 1
        name = f"{self._prefix}{self._records}:"
        mine = f"{name}{own}:" if own else name
        drafts: list[SessionEvent] = []
        for at, draft in enumerate(normalized.drafts):
            fitting = self._fitting(draft)
            if fitting is None:
                self._report.ignore("known already")
                continue
            drafts.append(replace(fitting, id=f"{name}{draft.id}" if draft.id else f"{mine}{at}"))
        return Normalized(tuple(drafts), normalized.ignored)

    def _fitting(self, draft: SessionEvent) -> SessionEvent | None:
        if isinstance(draft, ToolCall):
            self._waiting[draft.call_id] = self._waiting.get(draft.call_id, 0) + 1
        elif isinstance(draft, ToolResult):
            return draft if self._answer(draft.call_id) else None
        elif isinstance(draft, UserMessage) and self._asked.is_echo(draft.text):
            return None
        elif draft.parent_call_id is UNSET and isinstance(draft, TurnStart):
            self._is_open = True
        elif draft.parent_call_id is UNSET and isinstance(draft, TurnEnd):
            was_open, self._is_open = self._is_open, False
            return draft if was_open else None
        return draft

    def _answer(self, call_id: str) -> bool:
        left = self._waiting.get(call_id, 0) - 1
        if left > 0:
            self._waiting[call_id] = left
        elif left == 0:
            del self._waiting[call_id]
        return left >= 0
