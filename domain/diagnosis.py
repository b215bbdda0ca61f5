"""What is wrong with a log: findings, and the pure reducer that makes them of what could be read.

Three severities. `damage`: the store does not hold what an invariant promises. `warning`: it holds what was written,
and that is odd. `note`: what every log of a running or killed agent shows.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET

from incarnate.domain.codec import encode_json
from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent, ToolCall, ToolResult, TurnEnd, TurnStart
from incarnate.domain.fingerprints import Fingerprints
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.turns import next_turn_after
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.rewinds import Rewind

__all__ = ["Diagnosis", "Examiner", "Finding", "Severity", "Stretch", "payload_bytes"]

Severity = Literal["damage", "warning", "note"]

_MOST_OF_A_KIND = 20
_MOST_STRETCHES = 1000
_NOTHING = (-1, -1, "")
_ORDER: tuple[Severity, ...] = ("damage", "warning", "note")


class Finding(msgspec.Struct, frozen=True):
    """One thing to know about a log. `kind` is a word for programs, `repair` what would mend it.

    `key` is None where not even that is known, `offset` where it is about no place in the log.
    """

    severity: Severity
    kind: str
    key: ActivationKey | None
    offset: int | None
    text: str
    repair: str = ""


class Stretch(msgspec.Struct, frozen=True):
    """The events from `start` up to, not including, `stop` were written by `incarnation`."""

    incarnation: int
    start: int
    stop: int


class Diagnosis(msgspec.Struct, frozen=True):
    """What was found out about one activation.

    `events` are those that could be read, `payload_bytes` their JSON; `superseded_events` and `superseded_bytes` are
    those in the archives of its `rewinds`. `history` tells who wrote what (its first thousand stretches). Of one kind
    at most twenty findings are told one by one, and the rest as a number.
    """

    key: ActivationKey | None
    head: Head | None
    findings: tuple[Finding, ...]
    history: tuple[Stretch, ...] = ()
    events: int = 0
    payload_bytes: int = 0
    checkpoints: int = 0
    rewinds: int = 0
    swept_rewinds: int = 0
    superseded_events: int = 0
    superseded_bytes: int = 0


def payload_bytes(event: SessionEvent | Opaque) -> int:
    """How long the JSON of an event is."""
    return len(event.raw) if isinstance(event, Opaque) else len(encode_json(event))


class Examiner:
    """Takes in one log, its archives and its checkpoints, in the order of their offsets, and finds what is wrong.

    It keeps eight bytes of each id, and calls and turns only while they are open.
    """

    def __init__(self, key: ActivationKey, head: Head) -> None:
        self.key = key
        self.head = head
        self._findings: list[Finding] = []
        self._kinds: Counter[tuple[Severity, str]] = Counter()
        self._expected = 0
        self._events = self._bytes = 0
        self._checkpoints = 0
        self._history: list[Stretch] = []
        self._incarnation = self._highest = -1
        self._since = 0
        self._ids = Fingerprints()
        self._work = _Work()
        self._next_turn = 0
        self._unreadable = _NOTHING  # not told yet, since it may go on
        self._rewinds = self._swept = 0
        self._superseded_events = self._superseded_bytes = 0

    def take(self, appended: AppendedEvent) -> None:
        """Take in the next event that could be read."""
        self._reach(appended.offset)
        self._expected += 1
        self._events += 1
        event = appended.event
        self._bytes += payload_bytes(event)
        if appended.incarnation != self._incarnation:
            self._written_by(appended.incarnation, appended.offset)
        if not self._ids.add(event.id):
            text = f"the event id {event.id!r} stands at a lower offset too"
            self._find("warning", "doubled-id", appended.offset, text, "views that go by ids show one of them")
        if isinstance(event, (TurnStart, TurnEnd)):
            self._next_turn = next_turn_after((event,), self._next_turn)
        self._work.take(appended.offset, event)

    def take_unreadable(self, offset: int, reason: str) -> None:
        """Take in that the event at `offset` cannot be read; neighbours of one reason are one finding."""
        self._reach(offset)
        self._expected += 1
        start, stop, told = self._unreadable
        if offset == stop and reason == told:
            self._unreadable = (start, offset + 1, reason)
        else:
            self._tell_unreadable()
            self._unreadable = (offset, offset + 1, reason)

    def take_end(self) -> None:
        """There are no more events."""
        self._reach(self.head.next_offset)
        self._close_stretch(self.head.next_offset)
        if self._next_turn > self.head.next_turn:
            text = f"the next turn would be {self.head.next_turn}; the log holds turns up to {self._next_turn - 1}"
            repair = f"let its writer begin a turn of number {self._next_turn} or above"
            self._find("damage", "turns", None, text, repair)
        self._take_open_work()

    def take_checkpoint(self, checkpoint: Checkpoint, head: Head) -> None:
        """Take in a checkpoint of the log, which stood at `head` when it was read."""
        self._checkpoints += 1
        offset = checkpoint.offset
        if offset > head.next_offset:
            text = f"the checkpoint {checkpoint.id!r} lies at {offset}, above the head at {head.next_offset}"
            repair = f"incarnate fork {self.key} NEW_KEY leaves it out"
            self._find("damage", "checkpoint", offset, text, repair)
        if head.fence is None or checkpoint.incarnation > head.fence:
            text = f"the checkpoint {checkpoint.id!r} is of incarnation {checkpoint.incarnation}, above the fence"
            self._find("damage", "fence", offset, text, self._lease_above(checkpoint.incarnation))

    def take_unreadable_checkpoint(self, checkpoint_id: str, reason: str) -> None:
        """Take in that a checkpoint cannot be read."""
        self._checkpoints += 1
        text = f"the checkpoint {checkpoint_id!r} cannot be read: {reason}"
        self._find("damage", "checkpoint", None, text, "restore another one by its id")

    def take_rewinds(self, rewinds: list[Rewind]) -> None:
        """Take in the list of rewinds."""
        self._rewinds = len(rewinds)
        self._swept = sum(rewind.swept for rewind in rewinds)
        missing = set(range(1, self.head.generation + 1)) - {rewind.generation for rewind in rewinds}
        for generation in sorted(missing)[: _MOST_OF_A_KIND + 1]:
            text = f"nothing tells what rewind {generation} of {self.head.generation} cut"
            self._find("damage", "archive", None, text, "the log itself is whole; views that come back late may be not")

    def take_superseded(self, appended: AppendedEvent) -> None:
        """Take in an event that a rewind superseded."""
        self._superseded_events += 1
        self._superseded_bytes += payload_bytes(appended.event)

    def take_archive_damage(self, rewind: Rewind, offset: int, reason: str) -> None:
        """Take in that what `rewind` superseded at `offset` cannot be read."""
        text = f"what rewind {rewind.generation} superseded: {reason}"
        self._find("damage", "archive", offset, text, "the log itself is whole; a sweep removes old archives")

    def take_unreadable_log(self, reason: str) -> None:
        """Take in that nothing more can be found out."""
        self._find("damage", "unreadable", None, reason, "bring the store back from a copy, or from another place")

    @property
    def diagnosis(self) -> Diagnosis:
        """What was found, the worst first and then in the order of the offsets."""
        self._tell_unreadable()
        findings = self._findings.copy()
        if self.head.retired:
            findings.append(Finding("note", "retired", self.key, None, "it is retired: incarnate sweep removes it"))
        for (severity, kind), count in self._kinds.items():
            if count > _MOST_OF_A_KIND:
                text = f"{count - _MOST_OF_A_KIND} more of the kind {kind}"
                findings.append(Finding(severity, kind, self.key, None, text))
        return Diagnosis(
            self.key,
            self.head,
            tuple(sorted(findings, key=_place)),
            tuple(self._history),
            self._events,
            self._bytes,
            self._checkpoints,
            self._rewinds,
            self._swept,
            self._superseded_events,
            self._superseded_bytes,
        )

    def _find(self, severity: Severity, kind: str, offset: int | None, text: str, repair: str) -> None:
        self._kinds[severity, kind] += 1
        if self._kinds[severity, kind] <= _MOST_OF_A_KIND:
            self._findings.append(Finding(severity, kind, self.key, offset, text, repair))

    def _tell_unreadable(self) -> None:
        start, stop, reason = self._unreadable
        if stop > start:
            text = reason if stop == start + 1 else f"{stop - start} events cannot be read: {reason}"
            self._find("damage", "unreadable", start, text, self._fork_at(start))
        self._unreadable = _NOTHING

    def _reach(self, offset: int) -> None:
        if offset > self._expected:
            missing = counted(offset - self._expected, "event")
            text = f"{missing} missing: nothing stands at {self._expected} up to {offset}"
            self._find("damage", "gap", self._expected, text, self._fork_at(self._expected))
            self._expected = offset

    def _written_by(self, incarnation: int, offset: int) -> None:
        self._close_stretch(offset)
        self._incarnation, self._since = incarnation, offset
        if incarnation < self._highest:
            text = f"incarnation {incarnation} wrote above what incarnation {self._highest} wrote"
            self._find("damage", "fence", offset, text, self._fork_at(offset))
        fence = self.head.fence
        if fence is None or incarnation > fence:
            text = f"incarnation {incarnation} wrote it, and the fence stands at {'none' if fence is None else fence}"
            self._find("damage", "fence", offset, text, self._lease_above(incarnation))
        self._highest = max(self._highest, incarnation)

    def _close_stretch(self, offset: int) -> None:
        if self._incarnation >= 0 and len(self._history) < _MOST_STRETCHES:
            self._history.append(Stretch(self._incarnation, self._since, offset))

    def _take_open_work(self) -> None:
        work = self._work
        for id, offset in work.orphans.items():
            self._find("warning", "orphan-result", offset, f"a result for {id!r}, which nobody called", "")
        for id, (offset, name) in work.open.items():
            self._find("note", "unmatched-call", offset, f"the call {id!r} of {name!r} has no result", "")
        if work.open_turns:
            offset = work.last_start
            self._find("note", "open-turn", offset, f"{counted(work.open_turns, 'turn')} began and did not end", "")

    def _fork_at(self, offset: int) -> str:
        return f"incarnate fork {self.key} NEW_KEY --at {offset} goes on from what lies before it"

    def _lease_above(self, incarnation: int) -> str:
        return f"lease it at incarnation {incarnation + 1} or above, which raises the fence"


def _place(finding: Finding) -> tuple[int, bool, int]:
    return _ORDER.index(finding.severity), finding.offset is None, finding.offset or 0


class _Work:
    """Calls without a result, results without a call, turns without an end, as `ReplayAnalysis` counts them."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[int, str]] = {}
        self.orphans: dict[str, int] = {}
        self.last_start = 0
        self._called = Fingerprints()
        self._turns = 0

    @property
    def open_turns(self) -> int:
        """How many more turns began than ended."""
        return max(0, self._turns)

    def take(self, offset: int, event: SessionEvent | Opaque) -> None:
        """Take in an event."""
        if isinstance(event, ToolCall):
            self._call(offset, event)
        elif isinstance(event, ToolResult):
            if self.open.pop(event.call_id, None) is None and event.call_id not in self._called:
                self.orphans.setdefault(event.call_id, offset)
        elif isinstance(event, (TurnStart, TurnEnd)) and event.parent_call_id is UNSET:
            if isinstance(event, TurnStart):
                self.last_start = offset
                self._turns += 1
            else:
                self._turns -= 1

    def _call(self, offset: int, event: ToolCall) -> None:
        id = event.call_id
        if self._called.add(id):
            if self.orphans.pop(id, None) is None:
                self.open[id] = (offset, event.name)
        elif id in self.open:
            self.open[id] = (self.open[id][0], event.name)
