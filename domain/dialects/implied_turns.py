"""Turns of a form that marks them, and of its older versions, in which nothing but the prompt tells of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.stamped import OpenTurn

if TYPE_CHECKING:
    from incarnate.domain.events import SessionEvent, TurnOutcome

__all__ = ["ImpliedTurns"]

_UNSTAMPED = Stamp()


class ImpliedTurns(OpenTurn):
    """The turn that is open, if one is.

    Attributes:
        is_answered: the model has said its last word in it, as far as can be seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_answered = False
        self._is_implied = False

    def marked(self, stamp: Stamp = _UNSTAMPED) -> list[SessionEvent]:
        """A mark that a turn begins; one that is open was cut off."""
        outcome: TurnOutcome = "completed" if self._is_implied and self.is_answered else "interrupted"
        self._is_implied = self.is_answered = False
        return self.begin(stamp, outcome)

    def prompted(self, stamp: Stamp = _UNSTAMPED) -> list[SessionEvent]:
        """A prompt: it begins a turn where none is open, or where the open one is known by its prompt alone."""
        if self.is_open and not self._is_implied:
            return []
        begun = self.marked(stamp)
        self._is_implied = True
        return begun

    def ensured(self, stamp: Stamp = _UNSTAMPED) -> list[SessionEvent]:
        """What the model does happens inside a turn, even in a stream that lost its head."""
        return [] if self.is_open else self.marked(stamp)
