"""The message that an agent of Copilot is writing, as far as it was printed.

Standard output has it in pieces before it has it whole. A process that is killed leaves the pieces alone, and they are
nowhere else: the session on disk begins a message when it is whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.stamped import said, thought

if TYPE_CHECKING:
    from incarnate.domain.dialects.claude_blocks import Stamp
    from incarnate.domain.events import SessionEvent

__all__ = ["Partials"]


class _Partial:
    def __init__(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self.thoughts: list[str] = []
        self.words: list[str] = []


class Partials:
    """The messages that are being written, by agent; the main one's name is empty."""

    def __init__(self) -> None:
        self._open: dict[str, _Partial] = {}

    def grow(self, kind: str, data: dict[str, Any], agent: str, stamp: Stamp) -> None:
        """A piece of a message or of the thought before it."""
        piece = optional_text(data, "deltaContent")
        if piece is not None:
            partial = self._open.setdefault(agent, _Partial(stamp))
            (partial.thoughts if kind == "assistant.reasoning_delta" else partial.words).append(piece)

    def drop(self, agent: str) -> None:
        """The message is whole, or the request failed and is made again."""
        self._open.pop(agent, None)

    def flush(self) -> list[SessionEvent]:
        """What was printed of all of them, as nobody goes on with them."""
        found: list[SessionEvent] = []
        for partial in self._open.values():
            if partial.thoughts:
                found.append(thought("".join(partial.thoughts), None, partial.stamp))
            if partial.words:
                found.append(said("".join(partial.words), partial.stamp))
        self._open.clear()
        return found
