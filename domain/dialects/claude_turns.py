"""Where Claude's turns begin and end, and how they end.

The stream has an `init` line at the start of every turn and a `result` at its end. The transcript on disk has neither:
there a prompt begins a turn, and the turn ends with an interruption, an error, the step limit, the line that the
harness writes when it leaves, or the next prompt.
"""

from __future__ import annotations

from typing import Any

from incarnate.domain.dialects.base import UNNUMBERED
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.events import FailedOutcome, SessionEvent, TurnEnd, TurnError, TurnOutcome, TurnStart

__all__ = ["TurnTracker", "error_outcome", "is_interruption", "result_outcome"]

_INTERRUPTION = "[Request interrupted by user"

_FINISHED = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded"})
"""Stop reasons after which Claude Code waits for the next prompt."""


def is_interruption(text: str) -> bool:
    """The note that Claude Code leaves for the model where the user stopped it."""
    return text.startswith(_INTERRUPTION)


def error_outcome(record: dict[str, Any], message: str) -> FailedOutcome:
    """Why a turn failed, from a record that says so: the most exact name that it has, and its words."""
    kind = optional_text(
        record, "api_error_type", "apiErrorType", "api_error", "apiError", "error", "terminal_reason", "subtype"
    )
    return FailedOutcome(TurnError(kind or "error", message))


def result_outcome(record: dict[str, Any], *, interrupted: bool) -> TurnOutcome:
    """The outcome that a `result` line tells; a failed request says `subtype: success` beside `is_error: true`."""
    subtype, reason = record.get("subtype"), record.get("terminal_reason")
    if subtype == "error_max_turns":
        return "step_limit"
    if isinstance(reason, str) and reason.startswith("aborted"):
        return "interrupted"
    if subtype == "success" and record.get("is_error") is not True:
        return "completed"
    if interrupted and subtype == "error_during_execution":
        return "interrupted"
    errors = record.get("errors")
    texts = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
    return error_outcome(record, optional_text(record, "result") or "; ".join(texts) or str(subtype))


class TurnTracker:
    """The state of the turn that is open, if one is."""

    def __init__(self) -> None:
        self.is_open = False
        self.interrupted = False
        self._finished = False
        self._notified = False
        self._owed_results = 0
        self._awaits_init = False

    def begin(self, stamp: Stamp) -> list[SessionEvent]:
        """A turn begins, unless one is open."""
        if self.is_open:
            return []
        self.is_open, self.interrupted, self._finished, self._awaits_init = True, False, False, False
        inside, at = stamp.parent_call_id, stamp.occurred_at
        return [TurnStart(id="", parent_id=None, parent_call_id=inside, occurred_at=at, turn=UNNUMBERED)]

    def end(self, outcome: TurnOutcome, stamp: Stamp) -> list[SessionEvent]:
        """The open turn ends, if one is open."""
        if not self.is_open:
            return []
        self.is_open = False
        return [TurnEnd(id="", parent_id=None, occurred_at=stamp.occurred_at, turn=UNNUMBERED, outcome=outcome)]

    def asked(self, stamp: Stamp) -> list[SessionEvent]:
        """A prompt in the stream, which may echo it before the `init` of its turn."""
        begun = self.begin(stamp)
        self._awaits_init = self._awaits_init or bool(begun)
        return begun

    def answered(self, stop_reason: object) -> None:
        """The model wrote a line of the main conversation."""
        self._awaits_init = False
        self._finished = isinstance(stop_reason, str) and stop_reason in _FINISHED

    def went_on(self) -> None:
        """Something was put before the model that it has not answered."""
        self._finished = False

    def notified(self) -> None:
        """A background task of the process that writes here is done: the next `init` is of the same process."""
        self._notified = True

    def init(self, stamp: Stamp) -> list[SessionEvent]:
        """The first line of a turn in the stream.

        With an answered turn still open there are two cases. A background task has reported: the harness begins a
        turn of its own, after the open one was answered; the open one's `result` is held back until then, and comes
        later. Otherwise the process that opened the turn died.
        """
        ended: list[SessionEvent] = []
        if self.is_open and self._awaits_init:
            self._awaits_init = False
            return []
        if self.is_open and self._notified:
            self._owed_results += 1
            ended = self.end("completed", stamp)
        elif self.is_open:
            self._owed_results = 0
            ended = self.end("interrupted", stamp)
        self._notified = False
        return ended + self.begin(stamp)

    def result(self, record: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """The last line of a turn in the stream."""
        if self._owed_results:
            self._owed_results -= 1
            return []
        started = self.begin(stamp)
        return started + self.end(result_outcome(record, interrupted=self.interrupted), stamp)

    def prompt(self, stamp: Stamp) -> list[SessionEvent]:
        """A prompt on disk begins a turn; the one before ended there at the latest."""
        return self.end("completed" if self._finished else "interrupted", stamp) + self.begin(stamp)

    def left(self, stamp: Stamp) -> list[SessionEvent]:
        """The harness went to rest; the turn is over if the model had finished."""
        return self.end("completed", stamp) if self._finished else []
