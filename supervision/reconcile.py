"""Two truths: after a death the log, made of what a harness printed, and its own session files know different things.

What either knows is kept. What neither knows is closed, once, by whoever holds the fence: an open call gets one result
that says that its outcome is unknown, the open turn ends as interrupted. Both are marked by their ids as guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Reasoning,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.supervision.mind import prompt_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from incarnate.domain.events import Opaque
    from incarnate.supervision.mind import Mind

__all__ = ["FOUND", "GUESSED", "OUTCOME_UNKNOWN", "Levelling", "asked_in", "last_turn", "level"]

OUTCOME_UNKNOWN = "interrupted: no result of this call was recorded; whether it ran, or how far, is unknown"
"""The error of a result that is only guessed. No time and no number in it, so that it is the same at every run."""

GUESSED = "guessed:"
"""What the id of a guessed event begins with; the rest is the id of the event that it closes."""

_TELLING = 12  # a text as short as "Done." is in every turn

FOUND = "disk"
"""What the id of an event begins with that only the harness's files knew."""


class Levelling(NamedTuple):
    """Drafts to append, in one commit, in this order.

    `before` closes a turn that the files do not end with, `found` is what they knew, `guessed` closes the rest.
    `other` counts what the files hold for which there is no place in the log: a compaction that reaches behind the
    turn, or a result of a call that nobody knows.
    """

    before: tuple[SessionEvent, ...]
    found: tuple[SessionEvent, ...]
    guessed: tuple[SessionEvent, ...]
    other: int = 0

    @property
    def drafts(self) -> tuple[SessionEvent, ...]:
        """All of them."""
        return self.before + self.found + self.guessed


def last_turn(events: Iterable[SessionEvent]) -> list[SessionEvent]:
    """The events from the last start of a turn on, in bounded memory but for that turn; none without a turn."""
    turn: list[SessionEvent] = []
    for event in events:
        if isinstance(event, TurnStart) and event.parent_call_id is UNSET:
            turn = [event]
        elif turn:
            turn.append(event)
    return turn


def level(
    mind: Mind, turn: Sequence[SessionEvent | Opaque], disk: Sequence[SessionEvent], incarnation: int
) -> Levelling:
    """What to append to the log whose fold is `mind` and whose last turn is `turn`.

    `disk` is the last turn of the harness's own files, drafts or events. Of a turn that was closed already nothing is
    taken: another run has decided about it, and a model may have seen that.
    """
    ours = [event for event in turn if isinstance(event, SessionEvent)]
    open_start = mind.turn_start if mind.is_open else None
    found: list[SessionEvent] = []
    before: list[SessionEvent] = []
    calls, other = mind.open_calls, 0
    if disk and _is_same(ours, disk):
        if mind.is_open:
            found, other = _tail(ours, disk)
    elif disk and _is_unknown(mind, disk):
        before, calls, open_start = _closed(calls, open_start), [], None
        found = [event for event in disk if not isinstance(event, Compaction)]
        other = len(disk) - len(found)
    found = _named(found, incarnation, mind.next_offset + len(before))
    guessed = _closed(_unanswered(calls, found), _open_start(open_start, found))
    return Levelling(tuple(before), tuple(found), tuple(guessed), other)


def _is_same(ours: Sequence[SessionEvent], disk: Sequence[SessionEvent]) -> bool:
    """Whether both tell of one turn: the same prompt, or else a call or a text of the model that both have."""
    mine, theirs = asked_in(ours), asked_in(disk)
    if mine is not None and mine == theirs:
        return True
    calls = {event.call_id for event in ours if isinstance(event, ToolCall)}
    texts = _texts(ours, AssistantMessage)
    return any(
        (isinstance(event, ToolCall) and event.call_id in calls)
        or (isinstance(event, AssistantMessage) and len(event.text) > _TELLING and _plain(event.text) in texts)
        for event in disk
    )


def _is_unknown(mind: Mind, disk: Sequence[SessionEvent]) -> bool:
    """Whether the log has never heard of this turn; one without a prompt cannot be told from an older one."""
    asked = asked_in(disk)
    return asked is not None and asked not in mind.prompts


def asked_in(events: Sequence[SessionEvent]) -> bytes | None:
    """The key of the prompt of a turn; None where it has none."""
    for event in events:
        if isinstance(event, UserMessage) and event.parent_call_id is UNSET:
            return prompt_key(event.text)
    return None


def _plain(text: str) -> str:
    return "".join(text.split())


def _texts(events: Sequence[SessionEvent], kind: type[AssistantMessage | Reasoning]) -> str:
    """All that was said, without blanks: the two forms cut it into events at different places."""
    return "".join([_plain(event.text) for event in events if isinstance(event, kind) and isinstance(event.text, str)])


# what the files know of a turn that the log has begun


def _tail(ours: Sequence[SessionEvent], disk: Sequence[SessionEvent]) -> tuple[list[SessionEvent], int]:
    walk = _Walk(ours, disk)
    known = [walk.is_known(event) for event in disk]
    last = max((at for at, is_known in enumerate(known) if is_known), default=-1)
    found: list[SessionEvent] = []
    other = 0
    for at, event in enumerate(disk):
        if isinstance(event, ToolResult):
            mended = None if known[at] else walk.pair(event)
            other += mended is None and not known[at]
            found += [] if mended is None else [mended]
        elif known[at] or isinstance(event, TurnStart):
            continue
        elif isinstance(event, Compaction):
            other += 1
        elif at > last or isinstance(event, Usage | TurnEnd):
            found.append(walk.rest(event))
    return found, other


class _Walk:
    """Pairs what the files hold with what the log holds, in the order of the files."""

    def __init__(self, ours: Sequence[SessionEvent], disk: Sequence[SessionEvent]) -> None:
        self._calls = [event.call_id for event in ours if isinstance(event, ToolCall)]
        self._answered = {event.call_id for event in ours if isinstance(event, ToolResult)}
        theirs = [event.call_id for event in disk if isinstance(event, ToolCall)]
        # Codex numbers what it prints and names what it saves: the third call of one is the third of the other.
        foreign = bool(self._calls) and bool(theirs) and not set(self._calls) & set(theirs)
        self._names = dict(zip(theirs, self._calls, strict=False)) if foreign else {}
        self._new: set[str] = set()
        self._said = _texts(ours, AssistantMessage)
        self._thought = _texts(ours, Reasoning)
        usages = sum(isinstance(event, Usage) for event in ours)
        self._usages = usages
        self._is_ended = any(isinstance(event, TurnEnd) and event.parent_call_id is UNSET for event in ours)
        self._cut = self._unfinished(ours)

    @staticmethod
    def _unfinished(ours: Sequence[SessionEvent]) -> str:
        """The last text of the log, where nothing came after it: it may be only the begin of what was said."""
        for event in reversed(ours):
            if isinstance(event, AssistantMessage):
                return event.text
            if not isinstance(event, Usage):
                break
        return ""

    def is_known(self, event: SessionEvent) -> bool:
        """Whether the log has it."""
        if isinstance(event, ToolCall):
            known = self._name(event.call_id) in self._calls
            self._new |= set() if known else {event.call_id}
            return known
        if isinstance(event, ToolResult):
            return self._name(event.call_id) in self._answered
        if isinstance(event, AssistantMessage):
            return _plain(event.text) in self._said
        if isinstance(event, Reasoning):
            return not isinstance(event.text, str) or _plain(event.text) in self._thought
        if isinstance(event, Usage):
            self._usages -= 1
            return self._usages >= 0
        if isinstance(event, TurnEnd):
            return self._is_ended
        return isinstance(event, UserMessage)

    def pair(self, result: ToolResult) -> ToolResult | None:
        """The result under the log's name of its call; None for a call that neither side has."""
        name = self._name(result.call_id)
        if name not in self._calls and result.call_id not in self._new:
            return None
        self._answered.add(name)
        return replace(result, call_id=name)

    def rest(self, event: SessionEvent) -> SessionEvent:
        """The event; of a text that the log has begun, what is missing of it."""
        cut = self._cut
        if isinstance(event, AssistantMessage) and cut and event.text.startswith(cut):
            self._cut = ""
            return replace(event, text=event.text[len(cut) :])
        return event

    def _name(self, call_id: str) -> str:
        return self._names.get(call_id, call_id)


def _named(found: Sequence[SessionEvent], incarnation: int, offset: int) -> list[SessionEvent]:
    """Each with an id of its own: by who found it, and where it will stand in the log."""
    return [replace(event, id=f"{FOUND}{incarnation}:{at}:{event.id}") for at, event in enumerate(found, offset)]


# what nobody knows


def _unanswered(calls: Sequence[ToolCall], found: Sequence[SessionEvent]) -> list[ToolCall]:
    waiting = [*calls, *[event for event in found if isinstance(event, ToolCall)]]
    for event in found:
        if isinstance(event, ToolResult):
            for at in range(len(waiting) - 1, -1, -1):
                if waiting[at].call_id == event.call_id:
                    del waiting[at]
                    break
    return waiting


def _open_start(start: TurnStart | None, found: Sequence[SessionEvent]) -> TurnStart | None:
    """The start of the turn that is still open once `found` is appended."""
    for event in found:
        if event.parent_call_id is not UNSET:
            continue
        if isinstance(event, TurnStart):
            start = event
        elif isinstance(event, TurnEnd):
            start = None
    return start


def _closed(calls: Sequence[ToolCall], start: TurnStart | None) -> list[SessionEvent]:
    results: list[SessionEvent] = [_unknown_result(call) for call in calls]
    if start is None:
        return results
    end = TurnEnd(id=GUESSED + start.id, parent_id=None, turn=start.turn, outcome="interrupted", label=start.label)
    return [*results, end]


def _unknown_result(call: ToolCall) -> ToolResult:
    """Inside the same call as the one that it answers, so that a sub-agent's stays with the sub-agent."""
    return ToolResult(
        id=GUESSED + call.id,
        parent_id=None,
        call_id=call.call_id,
        parent_call_id=call.parent_call_id,
        ok=False,
        error=OUTCOME_UNKNOWN,
    )
