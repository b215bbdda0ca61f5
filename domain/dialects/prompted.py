"""The supervisor's own prompts as the user events that most harnesses never print."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import UNSET

from incarnate.domain.dialects.base import Finishing, Normalized
from incarnate.domain.events import (
    AssistantMessage,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    TurnStart,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from incarnate.domain.dialects.base import Normalizer

__all__ = ["Prompted"]

_WORDS = (SystemMessage, UserMessage, AssistantMessage, Reasoning, ToolCall)
"""What a turn consists of; a result that a resumed process begins with belongs to the turn that was cut."""


class Prompted:
    """A normalizer that puts the prompts of a stream behind its turn starts, the first behind the first.

    An empty prompt stands for a turn that the harness began by itself. A harness that echoes a prompt says it twice
    then: the echo, the same text in the turn before anything else was said, is left out, and counted as `prompt/echo`
    where its record holds nothing more.
    """

    def __init__(self, normalizer: Normalizer, prompts: Iterable[str]) -> None:
        self._inner = normalizer
        self._prompts = deque(prompts)
        self._echo: str | None = None
        self._begun = False
        self._asked_more = 0

    @property
    def unused(self) -> int:
        """Prompts that no turn has begun for."""
        return len(self._prompts)

    @property
    def unprompted(self) -> int:
        """Turns that began when no prompt was left."""
        return self._asked_more

    def feed(self, value: object) -> Normalized:
        """What this record means, with the prompt of the turn that begins in it.

        Raises:
            DialectError: it is no record of the harness.
        """
        return self._with_prompts(self._inner.feed(value))

    def finish(self) -> Normalized:
        """What the normalizer holds at the end of its stream."""
        return self._with_prompts(self._inner.finish() if isinstance(self._inner, Finishing) else Normalized(()))

    def _with_prompts(self, found: Normalized) -> Normalized:
        if not found.drafts or not (self._prompts or self._echo):
            self._asked_more += sum(_begins_turn(draft) for draft in found.drafts)
            return found
        drafts: list[SessionEvent] = []
        for draft in found.drafts:
            drafts += self._told(draft)
        return Normalized(tuple(drafts), found.ignored) if drafts else Normalized((), found.ignored or "prompt/echo")

    def _told(self, draft: SessionEvent) -> list[SessionEvent]:
        if draft.parent_call_id is not UNSET:
            return [draft]
        if isinstance(draft, TurnStart):
            self._begun = True
            return [draft, *self._ask()]
        if not isinstance(draft, _WORDS):
            return [draft]
        begun, self._begun = self._begun, True
        before = [] if begun else self._ask()  # a form without turns, or one that lost its head
        if isinstance(draft, SystemMessage):
            return [*before, draft]
        echo, self._echo = self._echo, None
        return before if isinstance(draft, UserMessage) and draft.text == echo else [*before, draft]

    def _ask(self) -> list[SessionEvent]:
        self._asked_more += not self._prompts
        prompt = self._prompts.popleft() if self._prompts else ""
        self._echo = prompt or None
        return [UserMessage(id="", parent_id=None, text=prompt)] if prompt else []


def _begins_turn(draft: SessionEvent) -> bool:
    return isinstance(draft, TurnStart) and draft.parent_call_id is UNSET
