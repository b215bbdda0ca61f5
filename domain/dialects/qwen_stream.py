"""What `qwen -o stream-json` prints: Claude's records with the counts and habits of its own.

Each block of an answer is a line of its own, the last of which counts the call. The prompt is not printed. A stream
that was cut is continued, and the text of all its tries stands in one line, with the error behind it where none came
through.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from incarnate.domain.dialects.base import UNPLACED, Normalized
from incarnate.domain.dialects.claude_blocks import Stamp, content_drafts
from incarnate.domain.dialects.fields import count, optional_text
from incarnate.domain.dialects.partial import PartialBlocks
from incarnate.domain.dialects.qwen_usage import SessionLedger, line_tokens
from incarnate.domain.dialects.stamped import OpenTurn, failure
from incarnate.domain.errors import DialectError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Reasoning,
    SessionEvent,
    ToolResult,
    TurnOutcome,
)

__all__ = ["CANCELLED", "NAME", "QwenStream"]

NAME = "qwen-code"

CANCELLED = "[Operation Cancelled]"
"""How the result of a call begins that ended with the user's interrupt; the harness ends with it."""

_API_ERROR = "[API Error: "

_COMPRESSED = re.compile(r"Context compressed \(\d+ -> ~?\d+\)\.")
"""What Qwen Code says in the model's name when it was told to compress the conversation; no call is counted for it."""


class QwenStream:
    """The records of processes, one after the other."""

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._ledger = SessionLedger()
        self._partial = PartialBlocks()
        self._session: str | None = None
        self._tries = 1
        self._error: str | None = None
        self._said: list[SessionEvent] = []  # of the call that is tried again; nothing where it is not

    def feed(self, kind: str, record: dict[str, Any]) -> Normalized:
        """What a record of this kind means.

        Raises:
            DialectError: it is an answer or a user's message without what it must have.
        """
        stamp = Stamp(optional_text(record, "parent_tool_use_id") or UNSET, optional_text(record, "timestamp") or UNSET)
        match kind:
            case "assistant":
                return self._assistant(record, stamp)
            case "user":
                return self._user(record, stamp)
            case "result":
                return self._result(record, stamp)
            case "system":
                return self._system(record, stamp)
            case "stream_event" if isinstance(record.get("event"), dict):
                event = record["event"]
                self._partial.take(event, stamp)
                return Normalized((), f"stream_event/{event.get('type')}")
            case _:
                return Normalized((), kind)

    def finish(self) -> Normalized:
        """The part of an answer that came before the stream was cut."""
        return Normalized(tuple(self._partial.drafts()))

    # messages

    def _assistant(self, record: dict[str, Any], stamp: Stamp) -> Normalized:
        message, content = _message_of(record)
        blocks = content_drafts("assistant", content, stamp, NAME)
        self._partial.whole(stamp)
        tokens = line_tokens(message.get("usage"))
        cleaned = [self._cleaned(draft, counted=tokens.total > 0) for draft in blocks.drafts]
        said = [draft for draft in cleaned if draft is not None and not self._is_repeated(draft)]
        self._tries, self._said = 1, [] if tokens.total else self._said + said
        counted = self._ledger.line(tokens, optional_text(message, "model"), stamp)
        begun = self._began(stamp) if said or counted else []
        ignored = blocks.ignored or (
            None if said or counted else f"assistant/{'repeated' if any(cleaned) else 'api_error'}"
        )
        return Normalized((*begun, *said, *counted), ignored)

    def _is_repeated(self, draft: SessionEvent) -> bool:
        """A try of a cut stream says what the tries before it said: the call is counted when it came through."""
        return isinstance(draft, AssistantMessage | Reasoning) and any(
            type(draft) is type(one) and draft.text == getattr(one, "text", UNSET) for one in self._said
        )

    def _cleaned(self, draft: SessionEvent, *, counted: bool) -> SessionEvent | None:
        """The draft without what the harness added to it."""
        if isinstance(draft, Reasoning) and draft.provider_continuation == "":
            return replace(draft, provider_continuation=UNSET)
        if not isinstance(draft, AssistantMessage):
            return draft
        if not counted and _COMPRESSED.fullmatch(draft.text):
            return _compaction({"trigger": "manual"}, Stamp(draft.parent_call_id, draft.occurred_at))
        text, at = draft.text, draft.text.rfind(_API_ERROR)
        if at >= 0 and not counted and text.endswith("]"):  # a call that came through is counted
            text, self._error = text[:at], text[at:]
        part = text[: len(text) // self._tries]
        if self._tries > 1 and part * self._tries == text:
            text = part
        return replace(draft, text=text) if text else None

    def _user(self, record: dict[str, Any], stamp: Stamp) -> Normalized:
        _, content = _message_of(record)
        blocks = content_drafts("user", content, stamp, NAME)
        self._said = []
        begun = self._began(stamp) if blocks.drafts else []
        is_main = stamp.parent_call_id is UNSET
        cancelled = is_main and any(isinstance(draft, ToolResult) and _is_cancelled(draft) for draft in blocks.drafts)
        ended = self._turn.end("interrupted", stamp) if cancelled else []
        return Normalized((*begun, *blocks.drafts, *ended), blocks.ignored)

    def _began(self, stamp: Stamp) -> list[SessionEvent]:
        """A turn without an `init`, as in a process that takes several prompts."""
        return [] if self._turn.is_open or stamp.parent_call_id is not UNSET else self._turn.begin(stamp)

    # other records

    def _system(self, record: dict[str, Any], stamp: Stamp) -> Normalized:
        subtype, data = record.get("subtype"), record.get("data")
        data = data if isinstance(data, dict) else {}
        if subtype == "init":
            return Normalized((*self._partial.drafts(), *self._init(record, stamp)))
        if isinstance(record.get("compact_metadata"), dict):
            return Normalized((_compaction(record["compact_metadata"], stamp),))
        if subtype == "retry":
            self._tries += 1
        elif subtype == "task_notification":
            usage = data.get("usage")
            total = count(usage.get("total_tokens")) if isinstance(usage, dict) else 0
            self._ledger.agent_done(str(data.get("tool_use_id")), total)
        return Normalized((), f"system/{subtype}")

    def _init(self, record: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        session = optional_text(record, "session_id")
        if session != self._session:
            self._session, self._ledger = session, SessionLedger()
        self._tries, self._error, self._said = 1, None, []
        return self._turn.begin(stamp)

    def _result(self, record: dict[str, Any], stamp: Stamp) -> Normalized:
        drafts = self._partial.drafts() + self._ledger.result(record.get("usage"), stamp)
        ended = self._turn.end(self._outcome(record), stamp)
        self._error, self._said = None, []
        return Normalized((*drafts, *ended), None if drafts or ended else "result")

    def _outcome(self, record: dict[str, Any]) -> TurnOutcome:
        subtype, error = record.get("subtype"), record.get("error")
        if subtype == "error_max_turns":
            return "step_limit"
        if subtype == "success" and record.get("is_error") is not True:
            return "completed"
        told = optional_text(error, "message") if isinstance(error, dict) else None
        return failure(str(subtype), told or optional_text(record, "result") or self._error or str(subtype))


def _message_of(record: dict[str, Any]) -> tuple[dict[str, Any], str | list[Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, str | list):
        raise DialectError(NAME, f"{record.get('type')} without a message whose content is a text or a list")
    return message, content


def _is_cancelled(result: ToolResult) -> bool:
    return not result.ok and isinstance(result.error, str) and result.error.startswith(CANCELLED)


def _compaction(detail: dict[str, Any], stamp: Stamp) -> SessionEvent:
    """The stream does not tell the summary."""
    reason = optional_text(detail, "trigger") or "auto"
    return Compaction(**stamp.fields(), reason=reason, replaces_from=UNPLACED, replaces_to=UNPLACED)
