"""Copilot's session events, as `copilot --output-format json` prints them and `events.jsonl` keeps them.

Standard output has pieces of messages and many signs of life beside them, the disk has usage and the system's words.
A turn begins with the user's message and ends with the model call that asks for no tool, in both forms alike; what
Copilot itself calls a turn is one model call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.copilot_blocks import NAME, calls_of, message_of, reasoning_of, result_of, usage_of
from incarnate.domain.dialects.copilot_partials import Partials
from incarnate.domain.dialects.fields import optional_text, require
from incarnate.domain.dialects.implied_turns import ImpliedTurns
from incarnate.domain.dialects.stamped import called, failure, prompted, thought
from incarnate.domain.events import Compaction, SessionEvent, SystemMessage, ToolCall, TurnOutcome

__all__ = ["SessionNormalizer"]

_PIECES = frozenset({"assistant.reasoning_delta", "assistant.message_delta"})

_STEERING = frozenset({"steer", "steering", "immediate"})
"""How a message is delivered that is put before the model in the middle of its turn."""

_Handler = Callable[[dict[str, Any], Stamp], list[SessionEvent]]


class SessionNormalizer:
    """The events of one session, of all its runs."""

    def __init__(self) -> None:
        self._turns = ImpliedTurns()
        self._partials = Partials()
        self._calls_of_agents: dict[str, str] = {}
        self._called: set[str] = set()
        self._thoughts: set[str] = set()
        self._is_metered = False
        self._agent = ""
        self._drafted = 0
        self._places: dict[str, int] = {}
        self._handlers: dict[str, _Handler] = {
            "user.message": self._user,
            "system.message": self._system,
            "system.notification": self._system,
            "assistant.message": self._message,
            "assistant.reasoning": self._reasoning,
            "assistant.turn_end": self._model_call_ended,
            "assistant.turn_retry": self._retried,
            "assistant.usage": self._spent,
            "model.call_failure": self._retried,
            "tool.execution_start": self._start,
            "tool.execution_complete": self._complete,
            "subagent.started": self._spawned,
            "abort": self._aborted,
            "session.error": self._failed,
            "session.resume": self._resumed,
            "session.shutdown": self._left,
            "session.usage_record": self._spent,
            "session.compaction_complete": self._compacted,
            "session.context_cleared": self._cleared,
            "session.snapshot_rewind": self._rewound,
        }

    def feed(self, kind: str, record: dict[str, Any], data: dict[str, Any]) -> Normalized:
        """What this event means.

        Raises:
            DialectError: it lacks what its kind must have.
        """
        self._agent = optional_text(record, "agentId") or ""
        stamp = Stamp(self._call_of(data), optional_text(record, "timestamp") or UNSET)
        if kind in _PIECES:
            self._partials.grow(kind, data, self._agent, stamp)
            return Normalized(())  # taken in: its message shows it
        handle = self._handlers.get(kind)
        drafts = [] if handle is None else handle(data, stamp)
        name = optional_text(record, "id")
        if name is not None and drafts:
            self._places[name] = self._drafted
        return self._told(drafts, kind)

    def result(self, record: dict[str, Any]) -> Normalized:
        """The last line of standard output."""
        exit_code = record.get("exitCode")
        outcome: TurnOutcome = "completed" if exit_code in (0, None) else failure("exit", f"exit code {exit_code}")
        stamp = Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
        return self._told(self._turns.end(outcome, stamp), "result")

    def finish(self) -> Normalized:
        """The pieces of a message that nobody will complete."""
        return self._told(self._partials.flush(), "")

    def _told(self, drafts: list[SessionEvent], kind: str) -> Normalized:
        self._drafted += len(drafts)
        return Normalized(tuple(drafts), None if drafts else kind)

    def _call_of(self, data: dict[str, Any]) -> Any:
        """The call inside which it happened: an event names it, or only the sub-agent that the call started."""
        named = optional_text(data, "parentToolCallId")
        if named is None and self._agent:
            named = self._calls_of_agents.get(self._agent, f"agent:{self._agent}")
        return UNSET if named is None else named

    # messages

    def _user(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        asked = prompted(require(NAME, data, "content", "user.message"), stamp)
        if self._agent or (self._turns.is_open and optional_text(data, "delivery") in _STEERING):
            return [asked]
        return [*self._partials.flush(), *self._turns.marked(stamp), asked]

    def _system(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        text = optional_text(data, "content")
        return [] if text is None else [SystemMessage(**stamp.fields(), text=text)]

    def _message(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        words, calls = message_of(data, stamp), calls_of(data, stamp)
        thoughts = reasoning_of(data, self._thoughts, stamp)
        self._partials.drop(self._agent)
        self._thoughts = {text} if (text := optional_text(data, "reasoningText")) is not None else set()
        self._called.update(draft.call_id for draft in calls if isinstance(draft, ToolCall))
        return [*self._ensured(stamp, answered=not calls), *thoughts, *words, *calls]

    def _reasoning(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """A thought by itself; most say what their message says."""
        text = optional_text(data, "content")
        if text is None or text in self._thoughts:
            return []
        self._thoughts.add(text)
        return [*self._ensured(stamp), thought(text, None, stamp)]

    def _ensured(self, stamp: Stamp, *, answered: bool = False) -> list[SessionEvent]:
        if self._agent:
            return []
        begun = self._turns.ensured(stamp)
        self._turns.is_answered = answered
        return begun

    # tools

    def _start(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """A call begins to run; its message has told it, unless its beginning is lost."""
        call_id = require(NAME, data, "toolCallId", "tool.execution_start")
        if call_id in self._called:
            return []
        call = called(call_id, require(NAME, data, "toolName", "tool.execution_start"), data.get("arguments"), stamp)
        self._called.add(call_id)
        return [*self._ensured(stamp), call]

    def _complete(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        result = result_of(data, stamp)
        self._called.discard(data["toolCallId"])
        return [result]

    def _spawned(self, data: dict[str, Any], _: Stamp) -> list[SessionEvent]:
        call_id = optional_text(data, "toolCallId")
        if self._agent and call_id is not None:
            self._calls_of_agents[self._agent] = call_id
        return []

    # turns

    def _model_call_ended(self, _: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        if self._agent or not self._turns.is_answered:
            return []
        return self._turns.end("completed", stamp)

    def _aborted(self, _: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        return [] if self._agent else [*self._partials.flush(), *self._turns.end("interrupted", stamp)]

    def _failed(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        if self._agent:
            return []
        kind, text = optional_text(data, "errorType") or "error", optional_text(data, "message") or "error"
        return self._turns.end(failure(kind, text), stamp)

    def _resumed(self, _: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """Another process: what the last one left open it left open for ever."""
        return [*self._partials.flush(), *self._turns.end("interrupted", stamp)]

    def _left(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """The process ends, and tells the tokens of all its answers by model."""
        metrics = data.get("modelMetrics")
        totals = [] if self._is_metered or not isinstance(metrics, dict) else list(metrics.items())
        usages = [usage_of(found["usage"], model, stamp, "session") for model, found in totals if _is_counted(found)]
        return [*usages, *self._partials.flush(), *self._turns.end("interrupted", stamp)]

    # usage and history

    def _spent(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        told = data.get("usage", data)
        if not isinstance(told, dict):
            return []
        self._is_metered = True
        return [usage_of(told, optional_text(told, "model") or UNSET, stamp)]

    def _compacted(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        if data.get("success") is False:
            return []
        return [self._replaced("auto", UNPLACED, stamp, optional_text(data, "summaryContent"))]

    def _cleared(self, _: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        return [self._replaced("cleared", UNPLACED, stamp)]

    def _rewound(self, data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """The session went back to before an event."""
        place = self._places.get(optional_text(data, "upToEventId") or "")
        return [] if place is None else [self._replaced("rewind", kept(self._drafted - place), stamp)]

    def _replaced(self, reason: str, begin: int, stamp: Stamp, summary: str | None = None) -> SessionEvent:
        return Compaction(
            **stamp.fields(), reason=reason, replaces_from=begin, replaces_to=kept(0), summary=summary or UNSET
        )

    def _retried(self, _: dict[str, Any], __: Stamp) -> list[SessionEvent]:
        self._partials.drop(self._agent)
        return []


def _is_counted(found: object) -> bool:
    return isinstance(found, dict) and isinstance(found.get("usage"), dict)
