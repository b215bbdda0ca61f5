"""The `wire.jsonl` of kimi-cli: everything that it told its user interface, with what sub-agents did inside.

A call comes in pieces, which may stand behind records of other calls; it is drafted once it is whole. A step that is
tried again leaves its first try behind.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import usage_draft
from incarnate.domain.dialects.fields import optional_text, require
from incarnate.domain.dialects.kimi_parts import (
    NAME,
    call_of,
    content_of,
    moment,
    result_content,
    result_of,
    tokens_of,
)
from incarnate.domain.dialects.stamped import OpenTurn, failure
from incarnate.domain.errors import DialectError
from incarnate.domain.events import AssistantMessage, Compaction, SessionEvent, ToolCall, TurnOutcome, UserMessage

__all__ = ["KimiWire"]

_TOKENS = ("input_other", "output", "input_cache_read", "input_cache_creation")
_DEEPEST = 32
"""Sub-agents inside sub-agents; more are counted and not followed."""


class KimiWire:
    """The messages of one session, or those of a sub-agent inside a call."""

    def __init__(self, inside: str | UnsetType = UNSET, depth: int = 0) -> None:
        self._inside = inside
        self._depth = depth
        self._turn = OpenTurn()
        self._call: dict[str, Any] | None = None  # the last one, to which pieces may be added
        self._cut: dict[str, SessionEvent] = {}
        self._waiting: set[str] = set()
        self._texts: set[tuple[bool, object]] = set()  # of the step: a cut stream that is tried again repeats them
        self._step = 0  # drafts of the step
        self._drafted = 0
        self._messages = [0, 0]  # where the drafts of the last two messages begin: a compaction keeps these
        self._answering = False
        self._called = False
        self._interrupted = False
        self._agents: dict[str, KimiWire] = {}

    def feed(self, record: dict[str, Any]) -> Normalized:
        """What a line means.

        Raises:
            DialectError: its message has no type, or lacks what that type must have.
        """
        message = record.get("message")
        if not isinstance(message, dict):
            raise DialectError(NAME, "a line of a wire file without a message")
        stamp = Stamp(self._inside, moment(record.get("timestamp"), seconds=True))
        return self.message(message, stamp)

    def message(self, message: dict[str, Any], stamp: Stamp) -> Normalized:
        """What a message means."""
        kind, payload = require(NAME, message, "type", "message"), message.get("payload")
        payload = payload if isinstance(payload, dict) else {}
        drafts, ignored = self._take(kind, payload, stamp)
        self._mark_message(kind, drafts)
        if kind not in ("TurnBegin", "StepBegin", "TurnEnd", "StepRetry", "SubagentEvent"):
            self._step += len(drafts)
        return Normalized(tuple(drafts), ignored)

    def _mark_message(self, kind: str, drafts: list[SessionEvent]) -> None:
        """A prompt begins a message, and the first words or calls of a step do; commands of the user are none."""
        asked = [
            draft.text for draft in drafts if isinstance(draft, UserMessage) and draft.parent_call_id is self._inside
        ]
        answers = kind in ("ContentPart", "ToolCall") and not self._answering
        if answers or (asked and not asked[0].startswith("/")):
            self._messages = [self._messages[-1], self._drafted]
        self._answering = kind != "StepBegin" and (self._answering or answers)
        self._drafted += len(drafts)

    def finish(self) -> list[SessionEvent]:
        """The call that was whole when the process died."""
        return self._flush(Stamp(self._inside))

    def _take(self, kind: str, payload: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        match kind:
            case "TurnBegin" | "SteerInput":
                return self._asked(kind, payload, stamp)
            case "ContentPart":
                return self._content(payload, stamp)
            case "ToolCall":
                call_of(payload, stamp)  # refuses before anything is remembered
                drafts, self._call = self._flush(stamp), dict(payload)
                return drafts, None
            case "ToolCallPart":
                return [], self._piece(payload)
            case "ToolResult":
                return self._result(payload, stamp), None
            case "StatusUpdate":
                tokens = tokens_of(payload.get("token_usage"), *_TOKENS)
                counted = [usage_draft(tokens, None, stamp)] if tokens is not None and tokens.total else []
                drafts = self._flush(stamp) + counted
                return drafts, None if drafts else kind
            case "SubagentEvent":
                return self._agent(payload, stamp)
            case _:
                return self._mark(kind, stamp)

    def _mark(self, kind: str, stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        drafts: list[SessionEvent] = []
        if kind == "StepBegin":
            drafts = self._flush(stamp)
            self._begin_step()
        elif kind == "StepRetry":
            drafts = self._taken_back(stamp)
            self._begin_step()
        elif kind == "StepInterrupted":
            drafts, self._interrupted = self._flush(stamp), True
        elif kind == "TurnEnd":
            drafts = self._flush(stamp)
            drafts += self._turn.end(self._outcome(), stamp)
            self._begin_turn()
        elif kind == "CompactionEnd":
            keep = kept(self._drafted - self._messages[0])
            drafts = [Compaction(**stamp.fields(), reason="auto", replaces_from=UNPLACED, replaces_to=keep)]
        return drafts, None if drafts else kind

    # turns and steps

    def _asked(self, kind: str, payload: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        content = content_of("user", payload.get("user_input"), stamp)
        drafts = self._flush(stamp)
        if kind == "TurnBegin":
            self._begin_turn()
            drafts += self._turn.begin(stamp) if self._inside is UNSET else []
        return drafts + content.drafts, content.ignored

    def _begin_turn(self) -> None:
        self._waiting.clear()
        self._interrupted = False
        self._begin_step()

    def _begin_step(self) -> None:
        self._cut.clear()
        self._call, self._texts, self._step, self._called = None, set(), 0, False

    def _outcome(self) -> TurnOutcome | UnsetType:
        """A step that failed says no more than that; a turn may also end because its calls were refused."""
        if self._interrupted:
            return failure("step_interrupted", "the step was interrupted by an error")
        if self._waiting:
            return "interrupted"
        return UNSET if self._called else "completed"

    def _taken_back(self, stamp: Stamp) -> list[SessionEvent]:
        if not self._step:
            return []
        return [Compaction(**stamp.fields(), reason="retry", replaces_from=kept(self._step), replaces_to=UNPLACED)]

    # content

    def _content(self, payload: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        content = content_of("assistant", [payload], stamp)
        early = self._flush(stamp)
        drafts = [draft for draft in content.drafts if _words(draft) not in self._texts]
        self._texts |= {_words(draft) for draft in drafts}
        return early + drafts, content.ignored if drafts else content.ignored or "ContentPart/repeated"

    def _piece(self, payload: dict[str, Any]) -> str | None:
        piece, call = payload.get("arguments_part"), self._call
        if call is None or not isinstance(piece, str):
            return "ToolCallPart"
        function = call.get("function")
        known = function if isinstance(function, dict) else {}
        before = known.get("arguments")
        call["function"] = {**known, "arguments": (before if isinstance(before, str) else "") + piece}
        return None

    def _flush(self, stamp: Stamp) -> list[SessionEvent]:
        """The last call, if it is whole; one that was cut is made only if its result comes."""
        call, self._call = self._call, None
        if call is None:
            return []
        draft, whole = call_of(call, stamp)
        assert isinstance(draft, ToolCall)
        self._called = True
        if not whole:
            self._cut[draft.call_id] = draft
            return []
        self._waiting.add(draft.call_id)
        return [draft]

    def _result(self, payload: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        call_id, value = require(NAME, payload, "tool_call_id", "ToolResult"), payload.get("return_value")
        content, ok = result_content(value)
        early = self._flush(stamp) if self._call is not None and self._call.get("id") == call_id else []
        self._waiting.discard(call_id)
        cut = self._cut.pop(call_id, None)
        return [*early, *([] if cut is None else [cut]), result_of(call_id, content, stamp, ok=ok)]

    def _agent(self, payload: dict[str, Any], stamp: Stamp) -> tuple[list[SessionEvent], str | None]:
        call, event = optional_text(payload, "parent_tool_call_id", "task_tool_call_id"), payload.get("event")
        if call is None or not isinstance(event, dict) or self._depth >= _DEEPEST:
            return [], "SubagentEvent"
        known = self._agents.get(call) or KimiWire(call, self._depth + 1)
        found = known.message(event, Stamp(call, stamp.occurred_at))
        self._agents[call] = known
        return list(found.drafts), found.ignored if found.ignored is None else f"SubagentEvent/{found.ignored}"


def _words(draft: SessionEvent) -> tuple[bool, object]:
    """What a draft says, aloud or not."""
    return isinstance(draft, AssistantMessage), getattr(draft, "text", None)
