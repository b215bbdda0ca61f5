"""What a log says of the mind in it: a fold, small however long the log is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import UNSET

from incarnate.domain.events import (
    AssistantMessage,
    FailedOutcome,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from incarnate.domain.turns import next_turn_after
from incarnate.supervision.commands import is_go_on, legible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from incarnate.domain.events import AppendedEvent, Opaque
    from incarnate.supervision.knowledge import TurnState

__all__ = ["Mind", "prompt_key"]


def prompt_key(text: str) -> bytes:
    """What tells one prompt from another, however a harness quotes it and whatever it does to the blanks around it."""
    plain = " ".join(legible(text).split()).strip("\"' ")
    return hashlib.blake2b(plain.encode(), digest_size=8).digest()


class Mind:
    """The fold of one log. What sub-agents do counts for their calls alone.

    Attributes:
        next_offset, last_id, next_turn: where the log ends.
        open_calls: calls without a result, sub-agents' too, in their order.
        turn_start: the last turn's start, None before the first; `turn_offset` is where it stands.
        is_open: whether that turn has no end.
        turn: how it ended; `reason` is why it failed.
        prompts: keys of all that was asked.
        asked: the key of what the last turn was asked; `task` is that of what the user asked last, which is another one
            where a turn was only told to go on.
        is_answered: whether the last word of the last turn is the model's.
    """

    def __init__(self) -> None:
        self.next_offset = 0
        self.next_turn = 0
        self.last_id: str | None = None
        self.open_calls: list[ToolCall] = []
        self.turn_start: TurnStart | None = None
        self.turn_offset = 0
        self.is_open = False
        self.turn: TurnState = "none"
        self.reason = ""
        self.prompts: set[bytes] = set()
        self.asked: bytes | None = None
        self.task: bytes | None = None
        self._is_prompted = False
        self.is_answered = False

    def take(self, events: Iterable[AppendedEvent]) -> None:
        """Fold what the log has grown by."""
        for appended in events:
            event = appended.event
            self.next_offset = appended.offset + 1
            self.last_id = event.id
            self.next_turn = next_turn_after((event,), self.next_turn)
            self._take(event, appended.offset)

    def is_waiting(self, call_id: str) -> bool:
        """Whether a call of this id has no result."""
        return any(call.call_id == call_id for call in self.open_calls)

    def _take(self, event: SessionEvent | Opaque, offset: int) -> None:
        if isinstance(event, ToolCall):
            self.open_calls.append(event)
        elif isinstance(event, ToolResult):
            self._answer(event.call_id)
        if getattr(event, "parent_call_id", UNSET) is not UNSET:
            return
        if isinstance(event, TurnStart):
            self.turn_start, self.turn_offset, self.is_open, self.turn = event, offset, True, "interrupted"
            self.is_answered = self._is_prompted = False
        elif isinstance(event, TurnEnd):
            self._end(event)
        elif isinstance(event, UserMessage):
            self._ask(event.text)
        if isinstance(event, AssistantMessage | ToolCall | ToolResult):
            self.is_answered = isinstance(event, AssistantMessage)

    def _ask(self, text: str) -> None:
        key = prompt_key(text)
        self.prompts.add(key)
        if not self._is_prompted:  # what comes later in a turn is the harness's, such as a note that it was interrupted
            self._is_prompted = True
            self.asked = key
            self.task = self.task if is_go_on(text) else key

    def _answer(self, call_id: str) -> None:
        for at in range(len(self.open_calls) - 1, -1, -1):
            if self.open_calls[at].call_id == call_id:
                del self.open_calls[at]  # the latest unanswered call of its id, as every view pairs them
                return

    def _end(self, event: TurnEnd) -> None:
        self.is_open, self.reason = False, ""
        outcome = event.outcome
        if isinstance(outcome, FailedOutcome):
            self.turn, self.reason = "failed", outcome.error.message
        else:
            self.turn = "completed" if outcome is UNSET else outcome
