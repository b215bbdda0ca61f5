"""The rollouts that Codex leaves on disk: the model's items, and events beside them that say how things went.

Items are what the model sees, so they alone become messages, calls and results; the events that tell the same again
are passed over. Turns, usage and the failures of tools are told by events alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.codex_items import (
    NAME,
    Outcome,
    call_of,
    failed_outcome,
    is_note,
    outcome_of,
    result_of,
    said,
    texts,
    thought,
)
from incarnate.domain.dialects.codex_usage import RolloutUsage
from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.implied_turns import ImpliedTurns
from incarnate.domain.errors import DialectError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Reasoning,
    SessionEvent,
    SystemMessage,
    TurnStart,
    UserMessage,
)

__all__ = ["ITEMS", "RolloutNormalizer"]

_CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call"}
    | {"image_generation_call"}
)
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_SUMMARIES = frozenset({"compaction", "compaction_summary", "context_compaction"})

ITEMS = frozenset({"message", "reasoning", "agent_message"}) | _CALLS | _RESULTS
"""Items of the model; rollouts of early versions hold them without an envelope."""

_OUTCOMES = frozenset({"item_completed", "exec_command_end", "patch_apply_end", "mcp_tool_call_end"})


class RolloutNormalizer:
    """The records of one rollout, which all runs of a session share."""

    def __init__(self) -> None:
        self._turns = ImpliedTurns()
        self._usage = RolloutUsage()
        self._outcomes: dict[str, Outcome] = {}
        self._drafted = 0
        self._turn_starts: list[int] = []
        self._events: dict[str, Callable[[dict[str, Any]], list[SessionEvent]]] = {
            "task_started": self._started,
            "turn_started": self._started,
            "task_complete": self._completed,
            "turn_complete": self._completed,
            "turn_aborted": self._aborted,
            "token_count": self._usage.running,
            "thread_rolled_back": self._rolled_back,
        }

    def feed(self, kind: str, record: dict[str, Any], payload: dict[str, Any]) -> Normalized:
        """What this record means.

        Raises:
            DialectError: an item or event without what it must have.
        """
        inner = payload.get("type")
        name = f"{kind}/{inner}" if isinstance(inner, str) else kind
        drafts = self._drafts(kind, name, payload)
        if not drafts:
            return Normalized((), name)
        when = record.get("timestamp")
        if isinstance(when, str) and when:
            drafts = [replace(draft, occurred_at=when) for draft in drafts]
        for place, draft in enumerate(drafts):
            if type(draft) is TurnStart:
                self._turn_starts.append(self._drafted + place)
        self._drafted += len(drafts)
        return Normalized(tuple(drafts))

    def _drafts(self, kind: str, name: str, payload: dict[str, Any]) -> list[SessionEvent]:
        if kind == "response_item":
            return self._item(payload)
        if kind == "event_msg":
            return self._event(payload)
        match kind:
            case "token_usage_record":
                return self._usage.response(payload)
            case "compacted":
                return self._compacted(payload)
            case "turn_context":
                self._usage.model = optional_text(payload, "model") or UNSET
                return []
            case _ if name in ITEMS:  # an item without an envelope
                return self._item(payload)
            case _:
                return []

    # items

    def _item(self, payload: dict[str, Any]) -> list[SessionEvent]:
        kind = payload.get("type")
        if not isinstance(kind, str):
            raise DialectError(NAME, "response_item without a type")
        if kind == "message":
            return self._message(payload)
        if kind in _CALLS:
            drafts = call_of(kind, payload, f"{kind}:{self._drafted}")
        elif kind in _RESULTS:
            drafts = [result_of(kind, payload, self._outcomes.get(str(payload.get("call_id"))))]
        elif kind == "reasoning":
            drafts = [thought(payload)]
        elif kind == "agent_message":  # of another agent to this one
            text = texts(payload.get("content"))
            return [SystemMessage(id="", parent_id=None, text=text)] if text else []
        else:
            return []
        self._turns.is_answered = False
        return drafts if self._turns.is_open else self._turns.ensured() + drafts

    def _message(self, payload: dict[str, Any]) -> list[SessionEvent]:
        found = said(payload)
        if isinstance(found, UserMessage):
            return [*self._turns.prompted(), found]
        if isinstance(found, AssistantMessage):
            begun = self._turns.ensured()
            self._turns.is_answered = True
            return [*begun, found]
        return [] if found is None else [found]

    # events

    def _event(self, payload: dict[str, Any]) -> list[SessionEvent]:
        kind = payload.get("type")
        if not isinstance(kind, str):
            raise DialectError(NAME, "event_msg without a type")
        if kind in _OUTCOMES:
            told = outcome_of(kind, payload)
            if told is not None:
                self._outcomes[told[0]] = told[1]
            return []
        handle = self._events.get(kind)
        return [] if handle is None else handle(payload)

    def _started(self, _: dict[str, Any]) -> list[SessionEvent]:
        return self._turns.marked()

    def _completed(self, payload: dict[str, Any]) -> list[SessionEvent]:
        error = payload.get("error")
        return self._turns.end("completed" if error is None else failed_outcome(error), Stamp())

    def _aborted(self, payload: dict[str, Any]) -> list[SessionEvent]:
        cancelled = payload.get("reason") == "review_ended"
        return self._turns.end("cancelled" if cancelled else "interrupted", Stamp())

    # what takes the place of events

    def _rolled_back(self, payload: dict[str, Any]) -> list[SessionEvent]:
        """The user went back some turns: their events are no more in the model's history."""
        turns = payload.get("num_turns")
        if isinstance(turns, bool) or not isinstance(turns, int) or not 0 < turns <= len(self._turn_starts):
            return []
        gone = self._drafted - self._turn_starts[-turns]
        del self._turn_starts[-turns:]
        return [Compaction(id="", parent_id=None, reason="rollback", replaces_from=kept(gone), replaces_to=kept(0))]

    def _compacted(self, payload: dict[str, Any]) -> list[SessionEvent]:
        """Everything before it became a summary, or the list of items that is the model's history from here on."""
        items = payload.get("replacement_history")
        items = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        words = [texts(item.get("content")) for item in items if _is_conversation(item)]
        summary = "\n\n".join([text for text in words if text]) or optional_text(payload, "message")
        blobs = [item.get("encrypted_content") for item in items if optional_text(item, "type") in _SUMMARIES]
        return [
            Compaction(
                id="",
                parent_id=None,
                reason="auto",
                replaces_from=UNPLACED,
                replaces_to=UNPLACED,
                summary=summary or UNSET,
            ),
            *[Reasoning(id="", parent_id=None, provider_continuation=blob) for blob in blobs if isinstance(blob, str)],
        ]


def _is_conversation(item: dict[str, Any]) -> bool:
    if item.get("type") != "message" or item.get("role") not in ("user", "assistant"):
        return False
    return not is_note(item, texts(item.get("content")))
