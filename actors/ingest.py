"""A harness's output into a log: every record once, however often the process dies.

Ids and parents come from the records alone, so a second run over the same file works out the same events, finds how
far the log holds them, and goes on from there.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import msgspec

from incarnate.actors.ingest_log import IngestedLog, Mapped
from incarnate.actors.ingest_report import TEXT, IngestReport, NotedLine, RefusedLine
from incarnate.actors.ingest_source import Records, Sourced, StreamSource, decoder_of
from incarnate.actors.turn_checkpoints import TurnCheckpoints
from incarnate.domain.dialects.base import Finishing, FollowsAgents, HearsText
from incarnate.domain.dialects.prompted import Prompted
from incarnate.domain.dialects.records import Broken, Found, Text
from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from incarnate.actors.ingest_source import Source
    from incarnate.actors.lines import ByteStream
    from incarnate.actors.raw_records import RawRecords
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.dialects.base import Dialect, Normalized, Normalizer
    from incarnate.domain.dialects.records import Piece
    from incarnate.domain.events import SessionEvent
    from incarnate.domain.keys import ActivationKey

__all__ = ["ingest", "ingest_source"]

_NO_HASH = hashlib.blake2b(digest_size=6)  # copied for each record: a new one takes twice as long


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def ingest(
    system: SessionSystem,
    key: ActivationKey,
    dialect: Dialect,
    stream: BinaryIO | ByteStream,
    *,
    at_head: bool = False,
    prompts: Sequence[str] = (),
    ended: bool | None = None,
    commit_sha: Callable[[], str] | None = None,
    clock: Callable[[], int] = _now_ms,
    on_line: Callable[[int], object] | None = None,
    raw: RawRecords | None = None,
) -> IngestReport:
    """Claim `key` and append the records of `stream` as they arrive; what arrives together is one commit.

    The log must begin as the stream does; what it already holds is skipped. Damaged records are mended where they can
    be, else counted with their lines, and the rest goes on. Where no record maps, nothing is claimed, unless `at_head`.

    Args:
        system: the store's system.
        key: the activation.
        dialect: how the harness writes.
        stream: the harness's output; `read1` is used where it has one, so that nothing waits for a full buffer.
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
        raw: keeps the records, and parts of them, that map to nothing.

    Raises:
        LogMismatchError: with the line where stream and log part; nothing was appended and nothing claimed.
        StaleIncarnationError: someone else claimed the activation meanwhile.
        HeadMovedError: the log was rewound while it was compared.
        StoreBusyError, OutcomeUnknownError: run it again; it goes on where it stopped.
    """
    return ingest_source(
        system,
        key,
        dialect,
        StreamSource(stream, dialect.likeness, on_line, decode=decoder_of(dialect)),
        at_head=at_head,
        prompts=prompts,
        ended=ended,
        commit_sha=commit_sha,
        clock=clock,
        raw=raw,
    )


def ingest_source(
    system: SessionSystem,
    key: ActivationKey,
    dialect: Dialect,
    source: Source,
    *,
    session_id: str | None = None,
    at_head: bool = False,
    prompts: Sequence[str] = (),
    ended: bool | None = None,
    commit_sha: Callable[[], str] | None = None,
    clock: Callable[[], int] = _now_ms,
    raw: RawRecords | None = None,
) -> IngestReport:
    """As `ingest`, from whatever gives pieces: a stream, or the files of a session and its sub-agents.

    `session_id` is the harness's session until a record names another: some harnesses never print theirs.
    """
    checkpoints = (
        None if commit_sha is None else TurnCheckpoints(system, key, dialect.name, commit_sha=commit_sha, clock=clock)
    )
    report = IngestReport(key=str(key), harness=dialect.name, session_id=session_id)
    log = IngestedLog(system, key, report, checkpoints)
    run = _Ingest(log, report, dialect, prompts, raw)
    log.begin(at_head=at_head)
    for part in source.together() if isinstance(source, StreamSource) else source:
        if isinstance(part, Records):
            run.records(part)
        else:
            run.take(part)
        if not part.more:
            log.flush()
    run.end(ended=at_head if ended is None else ended)
    report.lines = source.lines
    log.finish()
    return report


class _Ingest:
    """The pieces of one run to records of its log."""

    def __init__(
        self, log: IngestedLog, report: IngestReport, dialect: Dialect, prompts: Sequence[str], raw: RawRecords | None
    ) -> None:
        self._log = log
        self._report = report
        self._dialect = dialect
        self._raw = raw
        normalizer = dialect.normalizer()
        self._main: Normalizer = Prompted(normalizer, prompts) if prompts else normalizer
        self._unprompted = normalizer
        self._session_id = dialect.session_id
        self._agents: dict[str, Normalizer] = {}
        self._last_line = 0

    def records(self, part: Records) -> None:
        """Deal with sound records, in one frame: nearly every line of a file is one."""
        report, add, kept, agent, file = self._report, self._log.add, self._raw is not None, part.agent, part.file
        feed, session_id_of, own_id = self._normalizer(agent).feed, self._session_id, self._dialect.record_id
        self._last_line = part.line + len(part.lines) - 1
        for line, byte, data, value in part.each():
            try:
                normalized = feed(value)
            except DialectError as error:
                self._refuse(Found(line, byte, data, value), str(error), file)
                continue
            if agent is None and (session_id := session_id_of(value)) is not None:
                report.session_id = session_id
            drafts, ignored = normalized.drafts, normalized.ignored
            if drafts and ignored is None:
                report.mapped += 1
                # A call or a result has its own name: to hash a long output takes as long as to read it.
                named = len(drafts) == 1 and drafts[0].id
                name = "" if named else own_id(value) or _line_name(line, data, agent)
                add(_Taken(line, len(data), drafts, name, self, byte, data if kept else b"", file))
            elif ignored is not None and not drafts and not kept:
                report.ignore(ignored)
            else:
                self._take_in(Sourced(Found(line, byte, data, value), part.more, agent, file), normalized)

    def take(self, sourced: Sourced) -> None:
        """Deal with a piece by itself, which may have been mended, or be no record."""
        piece = sourced.piece
        self._last_line = piece.line
        if isinstance(piece, Found):
            self._record(sourced, piece)
        elif isinstance(piece, Text):
            self._text(sourced, piece)
        else:
            self._refuse(piece, piece.reason, sourced.file, torn=piece.torn)

    def end(self, *, ended: bool) -> None:
        """Append what the normalizer still holds, where no record will complete it."""
        if not isinstance(self._main, Finishing):
            return
        drafts = self._main.finish().drafts
        if isinstance(self._main, Prompted):
            self._report.unused_prompts, self._report.unprompted_turns = self._main.unused, self._main.unprompted
        if not (drafts and ended):
            self._report.held = len(drafts)
            return
        line = self._last_line
        refuse = lambda reason: self._report.refuse(RefusedLine(line, reason))  # noqa: E731 - one use
        self._log.add(Mapped(line, 0, drafts, f"end-{line}", refuse))

    # pieces

    def _record(self, sourced: Sourced, found: Found) -> None:
        try:
            normalized = self._normalizer(sourced.agent).feed(found.value)
        except DialectError as error:
            self._refuse(found, str(error), sourced.file)
            return
        if found.mended or found.repair is not None:
            places = found.mended + (found.repair is not None)
            self._report.mend(_noted(sourced, found.repair or "characters that no text can hold"), places)
        if sourced.agent is None and (session_id := self._session_id(found.value)) is not None:
            self._report.session_id = session_id
        self._take_in(sourced, normalized)

    def _text(self, sourced: Sourced, text: Text) -> None:
        normalizer = self._unprompted if sourced.agent is None else self._normalizer(sourced.agent)
        heard = normalizer.text(text.text) if isinstance(normalizer, HearsText) else None
        if heard is not None and (heard.drafts or heard.ignored is None):
            self._take_in(sourced, heard)
            return
        self._report.hear(_noted(sourced, text.text))
        self._keep(text, TEXT, sourced.file)

    def _take_in(self, sourced: Sourced, normalized: Normalized) -> None:
        report, piece = self._report, sourced.piece
        if normalized.ignored is not None:
            report.ignore(normalized.ignored)
            self._keep(piece, normalized.ignored, sourced.file)
        if normalized.drafts or normalized.ignored is None:
            report.mapped += 1
        if normalized.drafts:
            kept = piece.data if self._raw is not None else b""
            name, size = self._name(sourced), len(piece.data)
            self._log.add(_Taken(piece.line, size, normalized.drafts, name, self, piece.byte, kept, sourced.file))

    def _normalizer(self, agent: str | None) -> Normalizer:
        if agent is None or not isinstance(self._unprompted, FollowsAgents):
            return self._main
        known = self._agents.get(agent)
        if known is None:
            known = self._agents[agent] = self._unprompted.agent(agent)
        return known

    def _name(self, sourced: Sourced) -> str:
        """What names a record in the ids of its events: its own id, else its line and its bytes."""
        piece = sourced.piece
        own = self._dialect.record_id(piece.value) if isinstance(piece, Found) else None
        if own:
            return own
        place = piece.place if isinstance(piece, Found) else 0
        return _line_name(piece.line, piece.data, sourced.agent, f".{place}" if place else "")

    def unmap(self, piece: Broken, file: str | None) -> None:
        """The log cannot hold what the record became."""
        self._report.mapped -= 1
        self._refuse(piece, piece.reason, file)

    def _refuse(self, piece: Piece, reason: str, file: str | None, *, torn: bool = False) -> None:
        self._report.refuse(RefusedLine(piece.line, reason, piece.byte, file), torn=torn)
        if not torn:
            self._keep(piece, "(refused)", file)

    def _keep(self, piece: Piece, kind: str, file: str | None) -> None:
        if self._raw is not None:
            self._report.kept += self._raw.keep(piece, kind, file)


def _noted(sourced: Sourced, note: str) -> NotedLine:
    return NotedLine(sourced.piece.line, note, sourced.piece.byte, sourced.file)


def _line_name(line: int, data: bytes, agent: str | None, place: str = "") -> str:
    digest = _NO_HASH.copy()
    digest.update(data.rstrip(b"\r\n"))
    name = f"{line}{place}-{digest.hexdigest()}"
    return name if agent is None else f"{agent}:{name}"


class _Taken(msgspec.Struct, frozen=True):
    """A record with its drafts, on its way into the log of `run`; see `Drafted`.

    Without the record's value: the parts of thousands that wait to be appended are what the collector looks at. `data`
    are its bytes where it may be kept raw.
    """

    line: int
    size: int
    drafts: tuple[SessionEvent, ...]
    name: str
    run: _Ingest
    byte: int
    data: bytes
    file: str | None

    def refuse(self, reason: str) -> None:
        self.run.unmap(Broken(self.line, self.byte, self.data, reason), self.file)
