"""Claude Code's records to drafts, for all forms; see `claude_code` for how they are told apart."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_agents import AgentCalls
from incarnate.domain.dialects.claude_blocks import NAME, Blocks, Stamp, content_drafts, message_of
from incarnate.domain.dialects.claude_recent import MOST_RECORDS, Recent
from incarnate.domain.dialects.claude_turns import TurnTracker, error_outcome, is_interruption
from incarnate.domain.dialects.claude_usage import UsageLedger, message_tokens, usage_draft
from incarnate.domain.dialects.fields import as_object, optional_text
from incarnate.domain.errors import DialectError
from incarnate.domain.events import Compaction, SessionEvent, ToolResult, UserMessage

__all__ = ["ClaudeNormalizer"]

_MESSAGES = frozenset({"assistant", "user"})

_SYNTHETIC = "<synthetic>"
"""The model of lines that Claude Code wrote itself in the model's name."""

_COMMAND_NOTES = ("<command-name>", "<command-message>", "<local-command-", "<bash-input>", "<bash-stdout>")
"""Beginnings of user lines that record a command of the harness: the model sees them, but they ask it nothing."""


class _Boundary(NamedTuple):
    """A compaction whose summary has not come yet."""

    reason: str
    head: str | None
    stamp: Stamp


class ClaudeNormalizer:
    """One stream or transcript, told from its first record.

    A compaction waits for the record after its boundary, which is the summary. What a compaction kept word for word
    is left out of its range where this stream holds it; after a resume it does not, and the range then ends at the
    boundary. A record that comes again is passed over while it is one of the `MOST_RECORDS` that are remembered.
    """

    def __init__(self) -> None:
        self._turns = TurnTracker()
        self._usage = UsageLedger()
        self._agents = AgentCalls()
        self._boundary: _Boundary | None = None
        self._drafted = 0
        self._first_draft: Recent[int] = Recent(MOST_RECORDS)

    def feed(self, value: object) -> Normalized:
        """What this record means.

        Raises:
            DialectError: it is no record, or an assistant or user record without what it must have.
        """
        record = value if type(value) is dict else as_object(NAME, value)
        kind = record.get("type")
        if not isinstance(kind, str):
            raise DialectError(NAME, "a record has a type")
        if kind in _MESSAGES:
            found = self._message(kind, record)
        elif "session_id" in record:
            found = self._stream(kind, record)
        elif "sessionId" in record:
            found = self._transcript(kind, record)
        else:
            found = _plain(kind, record)
        self._drafted += len(found.drafts)
        return found

    # messages of either form

    def _message(self, role: str, record: dict[str, Any]) -> Normalized:
        message, uuid, when = message_of(record), record.get("uuid"), record.get("timestamp")
        call = self._agents.call_of(record)
        stamp = Stamp(call, when if isinstance(when, str) and when else UNSET)
        blocks = content_drafts(role, message["content"], stamp)  # refuses before anything is remembered
        if "session_id" not in record and "sessionId" not in record:
            usage = message_tokens(message.get("usage")) if role == "assistant" else None
            counted = [] if usage is None else [usage_draft(usage, optional_text(message, "model"), stamp)]
            return _normalized(blocks.drafts + counted, blocks.ignored)
        if isinstance(uuid, str) and uuid:
            if uuid in self._first_draft:
                return Normalized((), f"{role}/duplicate")
            self._first_draft.keep(uuid, self._drafted)
        self._agents.learn(record, call, blocks.drafts)
        if role == "user":
            return self._user(record, blocks, stamp)
        return self._assistant(record, message, blocks, stamp)

    def _assistant(self, record: dict[str, Any], message: dict[str, Any], blocks: Blocks, stamp: Stamp) -> Normalized:
        early = [] if self._boundary is None else self._compaction()
        is_main = stamp.parent_call_id is UNSET
        if record.get("isApiErrorMessage") is True or record.get("is_api_error_message") is True:
            # Words of the harness that the model never sees; the stream says them again in its result.
            ended: list[SessionEvent] = []
            if is_main and "sessionId" in record:
                text = "".join([getattr(draft, "text", "") for draft in blocks.drafts])
                ended = self._turns.end(error_outcome(record, text), stamp)
            return _normalized(early + ended, "assistant/api_error")
        if message.get("model") == _SYNTHETIC:
            return _normalized(early + blocks.drafts, blocks.ignored)
        if is_main:
            early += self._turns.begin(stamp)
            self._turns.answered(message.get("stop_reason"))
        return Normalized((*early, *blocks.drafts, *self._usage.message(message, stamp)), blocks.ignored)

    def _user(self, record: dict[str, Any], blocks: Blocks, stamp: Stamp) -> Normalized:
        texts = [draft.text for draft in blocks.drafts if type(draft) is UserMessage]
        is_main = stamp.parent_call_id is UNSET
        if is_main and self._is_summary(record):
            return _normalized(self._compaction(record, "\n".join(texts), stamp), blocks.ignored)
        early = [] if self._boundary is None else self._compaction()
        if record.get("isVisibleInTranscriptOnly") is True:
            return _normalized(early, "user/transcript_only")
        if not is_main:
            return _normalized(early + blocks.drafts, blocks.ignored)
        before, after = self._user_turn(record, texts, blocks, stamp)
        return Normalized((*early, *before, *blocks.drafts, *after), blocks.ignored)

    def _user_turn(
        self, record: dict[str, Any], texts: list[str], blocks: Blocks, stamp: Stamp
    ) -> tuple[list[SessionEvent], list[SessionEvent]]:
        """The turn marks before and after a user record of the main conversation."""
        on_disk = "sessionId" in record
        if texts and any(is_interruption(text) for text in texts):
            self._turns.interrupted = True
            return [], self._turns.end("interrupted", stamp) if on_disk else []
        if on_disk and _is_prompt(record, texts, blocks):
            return self._turns.prompt(stamp), []
        if record.get("isMeta") is not True or record.get("ownNote") is True:
            # Reminders that the harness adds leave a finished answer finished; a note to go on does not.
            self._turns.went_on()
        return [] if on_disk or _answers(blocks) else self._turns.asked(stamp), []

    # compactions

    def _is_summary(self, record: dict[str, Any]) -> bool:
        if record.get("isCompactSummary") is True:
            return True
        # The stream does not mark the summary: it is the synthetic line right after the boundary.
        return self._boundary is not None and record.get("isSynthetic") is True

    def _hold(self, record: dict[str, Any]) -> list[SessionEvent]:
        early = self._compaction()
        detail = record.get("compact_metadata", record.get("compactMetadata"))
        detail = detail if isinstance(detail, dict) else {}
        segment = detail.get("preserved_segment", detail.get("preservedSegment"))
        head = optional_text(segment, "head_uuid", "headUuid") if isinstance(segment, dict) else None
        stamp = Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
        self._boundary = _Boundary(optional_text(detail, "trigger") or "auto", head, stamp)
        return early

    def _compaction(
        self, record: dict[str, Any] | None = None, summary: str | None = None, stamp: Stamp | None = None
    ) -> list[SessionEvent]:
        """The compaction that is held, if one is, or the one that a summary without a boundary tells of."""
        boundary, self._boundary = self._boundary, None
        if boundary is None:
            if record is None:
                return []
            boundary = _Boundary("auto", None, stamp or Stamp())
        first_kept = self._drafted if boundary.head is None else self._first_draft.get(boundary.head, self._drafted)
        return [
            Compaction(
                **(boundary.stamp if boundary.stamp.occurred_at is not UNSET else stamp or Stamp()).fields(),
                reason=boundary.reason,
                replaces_from=UNPLACED,
                replaces_to=kept(self._drafted - first_kept),
                summary=UNSET if summary is None else summary,
            )
        ]

    # other records

    def _stream(self, kind: str, record: dict[str, Any]) -> Normalized:
        name = _full_kind(kind, record)
        if kind == "result":
            stamp = Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
            missing = self._compaction() + self._usage.result(record, stamp)
            return _mark(missing + self._turns.result(record, stamp), name)
        if name == "system/init":
            stamp = Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
            self._usage.process_may_begin()
            return _mark(self._compaction() + self._turns.init(stamp), name)
        if name == "system/compact_boundary":
            return Normalized(tuple(self._hold(record)))
        if name == "system/task_notification":
            self._turns.notified()
        return Normalized((), name)

    def _transcript(self, kind: str, record: dict[str, Any]) -> Normalized:
        name, stamp = _full_kind(kind, record), Stamp(UNSET, optional_text(record, "timestamp") or UNSET)
        if name == "system/compact_boundary":
            return Normalized(tuple(self._hold(record)))
        if name == "attachment/max_turns_reached":
            return _mark(self._turns.end("step_limit", stamp), name)
        if name == "attachment/queued_command":
            return self._queued(record, stamp)
        if name in ("cost-state", "system/turn_duration"):
            return _mark(self._turns.left(stamp), name)
        return Normalized((), name)

    def _queued(self, record: dict[str, Any], stamp: Stamp) -> Normalized:
        """A prompt that was typed while the model worked: put before it in the middle of the turn."""
        prompt = record["attachment"].get("prompt")
        if not isinstance(prompt, str | list):
            return Normalized((), "attachment/queued_command")
        blocks = content_drafts("user", prompt, Stamp(self._agents.call_of(record), stamp.occurred_at))
        self._turns.went_on()
        return _normalized(self._compaction() + blocks.drafts, blocks.ignored)


def _answers(blocks: Blocks) -> bool:
    return ToolResult in map(type, blocks.drafts)


def _is_prompt(record: dict[str, Any], texts: list[str], blocks: Blocks) -> bool:
    """A user record of a transcript that asks the model something new."""
    if record.get("isMeta") is True or _answers(blocks):
        return False
    return not (texts and texts[0].startswith(_COMMAND_NOTES))


def _plain(kind: str, record: dict[str, Any]) -> Normalized:
    """The reference's shape: a result is its usage, and nothing else than messages maps."""
    usage = message_tokens(record.get("usage")) if kind == "result" else None
    if usage is None:
        return Normalized((), _full_kind(kind, record))
    return Normalized((usage_draft(usage, optional_text(record, "model"), Stamp()),))


def _full_kind(kind: str, record: dict[str, Any]) -> str:
    inner = record.get("event") if kind == "stream_event" else record.get("attachment")
    detail = inner.get("type") if isinstance(inner, dict) else record.get("subtype")
    return f"{kind}/{detail}" if isinstance(detail, str) else kind


def _normalized(drafts: list[SessionEvent], ignored: str | None) -> Normalized:
    return Normalized(tuple(drafts), ignored)


def _mark(drafts: list[SessionEvent], kind: str) -> Normalized:
    """What a record that is a mark between messages became; with no drafts it was ignored."""
    return Normalized(tuple(drafts), None if drafts else kind)
