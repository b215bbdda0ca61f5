"""pi's records to drafts: the stream of `--mode json` and the session file, told apart record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import as_object, either, optional_text, require
from incarnate.domain.dialects.pi_entries import Entries
from incarnate.domain.dialects.pi_messages import (
    NAME,
    assistant_drafts,
    message_of,
    outcome_of,
    plain,
    role_of,
    stamp_of,
    told_by,
)
from incarnate.domain.dialects.pi_notifications import NOTIFICATIONS
from incarnate.domain.dialects.pi_partial import PartialAnswer
from incarnate.domain.dialects.stamped import OpenTurn, answered, called

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.events import SessionEvent, TurnOutcome

__all__ = ["PiNormalizer"]

_FAILED = ("error", "aborted")
_AFTER_AGENT_END = frozenset(
    {
        "agent_settled",
        "auto_compaction_end",
        "auto_compaction_start",
        "auto_retry_end",
        "auto_retry_start",
        "compaction_end",
        "compaction_start",
        "entry_appended",
        "queue_update",
    }
)
"""What old versions write between an `agent_end` and the retry that says that it was none."""


class _Failed(NamedTuple):
    """An answer that failed and may be taken back for another try."""

    entry: str | None
    drafts: list[SessionEvent]
    outcome: TurnOutcome
    stamp: Stamp


class PiNormalizer:
    """One stream or session file.

    A failed answer waits for what pi does next: it is dropped where pi takes it back and tries again, and stands where
    it does not. An answer that is being streamed is kept until it has come whole, for a process that is killed then.
    """

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._partial = PartialAnswer()
        self._entries = Entries()
        self._failed: _Failed | None = None
        self._outcome: TurnOutcome = "interrupted"  # of the turn, if it ended now
        self._is_answered = False  # since the last `turn_start`
        self._is_ending = False  # an `agent_end` of an old version, which does not say whether it tries again
        self._open_calls: dict[str, int] = {}
        self._results_ahead: dict[str, int] = {}  # told by a `tool_execution_end`, and to be told again
        self._handlers: dict[str, Callable[[str, dict[str, Any]], Normalized]] = {
            "session": self._session,
            "message_update": self._update,
            "auto_retry_start": self._retry,
            "custom_message": self._custom,
            **dict.fromkeys(("message", "message_end"), self._message),
            **dict.fromkeys(("tool_execution_start", "tool_execution_end"), self._execution),
            **dict.fromkeys(("agent_start", "turn_start", "turn_end", "agent_end", "agent_settled"), self._mark),
            **dict.fromkeys(("context_edit", "entry_appended"), self._edit),
            **dict.fromkeys(("compaction", "compaction_end", "auto_compaction_end", "branch_summary"), self._replaced),
        }

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or a message without what it must have.
        """
        record = as_object(NAME, value)
        kind = record.get("type")
        if not isinstance(kind, str) or isinstance(record.get("method"), str):
            return NOTIFICATIONS.feed(record)
        found = self._map(kind, record)  # refuses before anything is remembered
        self._entries.drafted(record, len(found.drafts))
        return found

    def finish(self) -> Normalized:
        """What is held when the harness is dead."""
        drafts = self._partial.drafts() + self._give_up()
        return Normalized(tuple(drafts + (self._end() if self._is_ending else [])))

    def _map(self, kind: str, record: dict[str, Any]) -> Normalized:
        handle = self._handlers.get(kind)
        return Normalized(tuple(self._early(kind)), kind) if handle is None else handle(kind, record)

    def _session(self, kind: str, _: dict[str, Any]) -> Normalized:
        return _mark(self._cut_off(), kind)

    def _retry(self, kind: str, _: dict[str, Any]) -> Normalized:
        self._failed, self._is_ending = None, False
        return Normalized((), kind)

    # messages

    def _message(self, kind: str, record: dict[str, Any]) -> Normalized:
        message = message_of(record)
        if message["role"] == "assistant":
            return self._answer(record, message)
        told = told_by(message)
        if message["role"] == "toolResult":
            return self._result(kind, record, message, told.drafts)
        early = self._early(kind) + self._entries.taken_back(record)
        if message["role"] == "user":
            early += self._asked(kind, stamp_of(message))
        if message["role"] == "system":
            self._entries.system(len(early) + len(told.drafts))
        return Normalized(tuple(early + told.drafts), told.ignored)

    def _asked(self, kind: str, stamp: Stamp) -> list[SessionEvent]:
        """A prompt begins a turn in a file; in the stream the turn has begun, and may have more than one."""
        if kind == "message_end" and self._turn.is_open:
            return []
        outcome, self._outcome = self._outcome, "interrupted"
        return self._turn.begin(stamp, outcome)

    def _answer(self, record: dict[str, Any], message: dict[str, Any]) -> Normalized:
        drafted, stamp = assistant_drafts(message), stamp_of(message)
        on_disk = record["type"] == "message"
        early = self._early(record["type"]) + self._entries.taken_back(record)
        early += [] if self._turn.is_open else self._turn.begin(stamp)
        self._is_answered = True
        self._partial.whole()
        if message.get("stopReason") in _FAILED:
            self._failed = _Failed(optional_text(record, "id"), drafted.drafts, outcome_of(message), stamp)
            return Normalized(tuple(early), drafted.ignored)
        for draft in drafted.drafts:
            self._called(getattr(draft, "args", None), getattr(draft, "call_id", None))
        is_last = message.get("stopReason") in ("stop", "length")
        self._outcome = "completed" if is_last else "interrupted"
        ended = self._end(stamp) if on_disk and is_last else []
        return Normalized(tuple(early + drafted.drafts + ended), drafted.ignored)

    def _called(self, _: object, call_id: object) -> None:
        if isinstance(call_id, str):
            self._open_calls[call_id] = self._open_calls.get(call_id, 0) + 1

    def _result(
        self, kind: str, record: dict[str, Any], message: dict[str, Any], drafts: list[SessionEvent]
    ) -> Normalized:
        call_id = message["toolCallId"]
        if kind == "message_end" and self._results_ahead.get(call_id):
            self._results_ahead[call_id] -= 1
            return Normalized((), "message_end/toolResult")
        early = self._early(kind) + self._entries.taken_back(record)
        self._answered(call_id)
        return Normalized(tuple(early + drafts))

    def _execution(self, kind: str, record: dict[str, Any]) -> Normalized:
        """The stream tells a call's result when it is there, and once more when those of all calls are."""
        call_id = require(NAME, record, "toolCallId")
        if kind == "tool_execution_start":
            if self._open_calls.get(call_id):
                return Normalized((), kind)
            name = require(NAME, record, "toolName")
            early = self._early(kind) + self._partial.drafts()  # the message that tells the call was lost
            self._called(None, call_id)
            return Normalized((*early, called(call_id, name, record.get("args"), Stamp())))
        result, failed = record.get("result"), record.get("isError") is True
        content = plain(result["content"]) if isinstance(result, dict) and "content" in result else result
        early = self._early(kind)
        self._answered(call_id)
        self._results_ahead[call_id] = self._results_ahead.get(call_id, 0) + 1
        return Normalized((*early, answered(call_id, content, Stamp(), ok=not failed)))

    def _answered(self, call_id: str) -> None:
        self._open_calls[call_id] = max(0, self._open_calls.get(call_id, 0) - 1)

    def _update(self, _: str, record: dict[str, Any]) -> Normalized:
        return Normalized((), self._partial.take(record))

    def _custom(self, kind: str, record: dict[str, Any]) -> Normalized:
        """Words that an extension put before the model."""
        told = told_by({"role": "custom", "content": record.get("content")})
        early = self._early(kind) + self._entries.taken_back(record)
        return Normalized(tuple(early + told.drafts), told.ignored)

    # turns

    def _mark(self, kind: str, record: dict[str, Any]) -> Normalized:
        if kind == "turn_end" and not self._is_answered and role_of(record) == "assistant":
            return self._answer(record, message_of(record))  # its own line was lost
        early = self._early(kind)
        if kind == "agent_start":
            return _mark(early + ([] if self._turn.is_open else self._turn.begin(Stamp())), kind)
        if kind == "turn_start":
            self._is_answered = False
        elif kind == "agent_end" and "willRetry" not in record:
            self._is_ending = True
            return Normalized(tuple(early))
        elif (kind == "agent_end" and record["willRetry"] is not True) or (kind == "agent_settled" and self._is_ending):
            return _mark(early + self._give_up() + self._end(), kind)
        elif kind == "agent_settled" and record.get("aborted") is True:
            self._outcome = "interrupted"
            return _mark(early + self._give_up() + self._end(), kind)
        return _mark(early, kind)

    def _early(self, kind: str) -> list[SessionEvent]:
        """What a record of this kind shows to be over."""
        if self._is_ending and kind not in _AFTER_AGENT_END:
            return self._give_up() + self._end()
        # In a file whatever follows a failed answer shows that it stands; in the stream the marks do.
        return self._give_up() if kind == "message" else []

    def _give_up(self) -> list[SessionEvent]:
        """A failed answer stands, and its turn is over."""
        failed, self._failed = self._failed, None
        if failed is None:
            return []
        return failed.drafts + self._turn.end(failed.outcome, failed.stamp)

    def _end(self, stamp: Stamp | None = None) -> list[SessionEvent]:
        self._is_ending = False
        outcome, self._outcome = self._outcome, "interrupted"
        return self._turn.end(outcome, stamp or Stamp())

    def _cut_off(self) -> list[SessionEvent]:
        """A process begins: one that was in the middle of something was killed."""
        if self._is_ending:
            return self._give_up() + self._end()
        left = self._partial.drafts() + self._give_up()
        self._outcome = "interrupted"
        return left + self._end()

    # what changes the past

    def _edit(self, kind: str, record: dict[str, Any]) -> Normalized:
        entry = record.get("entry") if kind == "entry_appended" else record
        if not isinstance(entry, dict) or entry.get("type") != "context_edit":
            name = optional_text(entry, "type") if isinstance(entry, dict) else None
            return Normalized((), f"{kind}/{name}" if name else kind)
        failed = self._failed
        if failed is not None and failed.entry in (None, entry.get("targetId")) and entry.get("replacement") is None:
            self._failed = None
        return Normalized((), "context_edit")

    def _replaced(self, kind: str, record: dict[str, Any]) -> Normalized:
        early = self._early("message" if kind in ("compaction", "branch_summary") else kind)
        if kind == "branch_summary":
            return _mark(early + self._entries.taken_back(record, optional_text(record, "summary")), kind)
        early += self._entries.taken_back(record)
        result = record if kind == "compaction" else record.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("summary"), str):
            return _mark(early, kind)
        reason = either(record, "reason") if kind != "compaction" else None
        stamp = Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
        return Normalized((*early, self._entries.compaction(result, reason, len(early), stamp)))


def _mark(drafts: list[SessionEvent], kind: str) -> Normalized:
    """What a record that is a mark between messages became; with no drafts it was ignored."""
    return Normalized(tuple(drafts), None if drafts else kind)
