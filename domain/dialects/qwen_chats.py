"""The chats that Qwen Code saves: messages in Gemini's spelling, one a line, each naming the line before it.

The lines are a tree: one that names an older line took everything behind that line back. An answer without calls ends
the turn, unless a background agent has yet to report. Sub-agents have files of their own; the session's telemetry
counts all tokens, also those of calls that made no message and of the harness's own agents, which have no file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.base import UNPLACED, Normalized, kept
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import usage_draft
from incarnate.domain.dialects.fields import optional_text, require
from incarnate.domain.dialects.gemini_messages import parts_of, told_to_model
from incarnate.domain.dialects.qwen_stream import NAME
from incarnate.domain.dialects.qwen_usage import AgentLedger, metadata_tokens, telemetry_tokens
from incarnate.domain.dialects.stamped import OpenTurn, answered, called, failure, prompted, said, thought
from incarnate.domain.errors import DialectError
from incarnate.domain.events import Compaction, SessionEvent, TurnOutcome

__all__ = ["QwenChats"]

_MESSAGES = frozenset({"user", "assistant", "tool_result"})
_MAIN = ""
"""The name under which the session's own tokens are counted: telemetry also tells of a call that made no message."""


class _Read(NamedTuple):
    """The drafts of a message's parts, and what of it maps to nothing."""

    drafts: list[SessionEvent]
    ignored: str | None
    calls: list[str]
    signature: tuple[str, ...]


class _Line(NamedTuple):
    """A line of the session: where its drafts begin, and what the model saw of it."""

    begins: int
    signature: tuple[str, ...]


class QwenChats:
    """The records of one session and its sub-agents."""

    def __init__(self) -> None:
        self._turn = OpenTurn()
        self._drafted = 0
        self._lines: dict[str, _Line] = {}  # the branch that is alive, in its order
        self._calls: set[str] = set()
        self._agents: dict[str, AgentLedger] = {}
        self._reporting = 0  # background agents that have yet to report
        self._failed: TurnOutcome | None = None

    def feed(self, kind: str, record: dict[str, Any]) -> Normalized:
        """What a record of this kind means.

        Raises:
            DialectError: it is a message without what it must have.
        """
        stamp = Stamp(self._inside(record), optional_text(record, "timestamp") or UNSET)
        read = _parts_read(record, stamp) if kind in _MESSAGES else None  # refuses before anything is remembered
        early = self._branched(record)
        begins = self._drafted + len(early)
        drafts, ignored = (
            self._system(record, stamp, early) if read is None else self._message(kind, record, read, stamp)
        )
        uuid = optional_text(record, "uuid")
        if uuid is not None and record.get("isSidechain") is not True:
            self._lines.setdefault(uuid, _Line(begins, () if read is None else read.signature))
        self._drafted += len(early) + len(drafts)
        return Normalized((*early, *drafts), ignored)

    def finish(self) -> list[SessionEvent]:
        """A turn whose last request failed and that nothing followed has failed: nothing else marks it."""
        return [] if self._failed is None else self._turn.end(self._failed, Stamp())

    def _inside(self, record: dict[str, Any]) -> str | UnsetType:
        """The call of the sub-agent that wrote the record; its name is made of the agent's kind and the call's id."""
        agent = optional_text(record, "agentId")
        if record.get("isSidechain") is not True and agent is None:
            return UNSET
        return self._call_of(agent or "unnamed", optional_text(record, "agentName"), alone=not self._lines)

    def _call_of(self, agent: str, kind: str | None, *, alone: bool = False) -> str:
        call = agent.removeprefix(f"{kind}-")
        return call if call in self._calls or (alone and call != agent) else f"agent:{agent}"

    # messages

    def _message(
        self, kind: str, record: dict[str, Any], read: _Read, stamp: Stamp
    ) -> tuple[list[SessionEvent], str | None]:
        self._calls |= set(read.calls)
        drafts = list(read.drafts)
        if stamp.parent_call_id is not UNSET:
            tokens = self._ledger(str(record.get("agentId"))).saved(metadata_tokens(record.get("usageMetadata")))
            return drafts + ([usage_draft(tokens, None, stamp)] if tokens.total else []), read.ignored
        if kind == "user":
            return self._user(record, read, stamp), read.ignored
        self._failed = None
        if kind == "tool_result":
            return drafts + self._tool_ended(record, stamp), read.ignored
        tokens = self._ledger(_MAIN).saved(metadata_tokens(record.get("usageMetadata")))
        drafts += [usage_draft(tokens, optional_text(record, "model"), stamp)] if tokens.total else []
        begun = self._turn.begin(stamp) if drafts and not self._turn.is_open else []
        finished = not read.calls and self._reporting == 0 and bool(read.drafts)
        return begun + drafts + (self._turn.end("completed", stamp) if finished else []), read.ignored

    def _user(self, record: dict[str, Any], read: _Read, stamp: Stamp) -> list[SessionEvent]:
        if record.get("subtype") == "notification":
            self._reporting = max(0, self._reporting - 1)
            return ([] if self._turn.is_open else self._turn.begin(stamp)) + read.drafts
        if not read.drafts:
            return []
        outcome, self._failed, self._reporting = self._failed or "interrupted", None, 0
        return self._turn.begin(stamp, outcome) + read.drafts

    def _tool_ended(self, record: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        told = record.get("toolCallResult")
        told = told if isinstance(told, dict) else {}
        shown = told.get("resultDisplay")
        if isinstance(shown, dict) and shown.get("executionMode") == "background":
            self._reporting += 1
        return self._turn.end("interrupted", stamp) if told.get("status") == "cancelled" else []

    # other records

    def _system(
        self, record: dict[str, Any], stamp: Stamp, early: list[SessionEvent]
    ) -> tuple[list[SessionEvent], str | None]:
        kind, subtype = str(record.get("type")), optional_text(record, "subtype")
        name, payload = f"{kind}/{subtype}" if subtype else kind, record.get("systemPayload")
        payload = payload if isinstance(payload, dict) else {}
        drafts: list[SessionEvent] = []
        if subtype == "chat_compression" and isinstance(payload.get("compressedHistory"), list):
            drafts = [self._compaction(payload, self._drafted + len(early), stamp)]
        elif subtype == "ui_telemetry" and isinstance(payload.get("uiEvent"), dict):
            drafts, name = self._telemetry(payload["uiEvent"], name, stamp)
        return drafts, None if drafts else name

    def _telemetry(self, event: dict[str, Any], name: str, stamp: Stamp) -> tuple[list[SessionEvent], str]:
        kind, agent = optional_text(event, "event.name") or "", optional_text(event, "subagent_id")
        name = f"{name}/{kind.removeprefix('qwen-code.')}"
        if kind.endswith("api_response"):
            tokens = self._ledger(agent or _MAIN).measured(telemetry_tokens(event))
            call = UNSET if agent is None else self._call_of(agent, optional_text(event, "subagent_name"))
            inside = Stamp(call, stamp.occurred_at)
            return [usage_draft(tokens, optional_text(event, "model"), inside)] if tokens.total else [], name
        if agent is None and kind.endswith("api_error"):
            words = [optional_text(event, field) or "error" for field in ("error_type", "error_message")]
            self._failed = failure(*words)
        return [], name

    def _ledger(self, agent: str) -> AgentLedger:
        return self._agents.setdefault(agent, AgentLedger())

    def _compaction(self, payload: dict[str, Any], place: int, stamp: Stamp) -> SessionEvent:
        """The new history begins with the summary and ends with what was kept word for word."""
        history = [_signature(content) for content in payload["compressedHistory"] if isinstance(content, dict)]
        old = [line for line in self._lines.values() if line.signature]
        same = 0
        while same < min(len(old), len(history) - 1) and old[-1 - same].signature == history[-1 - same]:
            same += 1
        texts = [text for content in payload["compressedHistory"][:1] for text in _texts(content)]
        return Compaction(
            **stamp.fields(),
            reason="compression",
            replaces_from=UNPLACED,
            replaces_to=kept(place - old[-same].begins if same else 0),
            summary="\n".join(texts) or UNSET,
        )

    def _branched(self, record: dict[str, Any]) -> list[SessionEvent]:
        """The record goes on from an older line: what stood behind that one is gone."""
        parent, names = optional_text(record, "parentUuid"), list(self._lines)[-1:]
        if record.get("isSidechain") is True or parent not in self._lines or parent == names[0]:
            return []
        names = list(self._lines)
        gone = names[names.index(parent) + 1 :]
        if record.get("uuid") in gone:
            return []  # another fragment of a message
        begins = self._lines[gone[0]].begins
        for name in gone:
            del self._lines[name]
        if begins >= self._drafted:
            return []
        place = kept(self._drafted - begins)
        return [Compaction(**Stamp().fields(), reason="rewind", replaces_from=place, replaces_to=UNPLACED)]


def _parts_read(record: dict[str, Any], stamp: Stamp) -> _Read:
    """The drafts of a message.

    Raises:
        DialectError: it has no message, or a call or result without its id or name.
    """
    message = record.get("message")
    if not isinstance(message, dict):
        raise DialectError(NAME, f"{record.get('type')} without a message")
    drafts: list[SessionEvent] = []
    calls: list[str] = []
    ignored = None
    for part in parts_of(message.get("parts")):
        draft = _part(part, record, stamp)
        if draft is None:
            ignored = ignored or f"{record['type']}/{next(iter(part), 'empty')}"
        else:
            drafts.append(draft)
        call = part.get("functionCall")
        calls += [require(NAME, call, "id", "functionCall")] if isinstance(call, dict) else []
    return _Read(drafts, ignored if drafts else ignored or f"{record['type']}/empty", calls, _signature(message))


def _part(part: dict[str, Any], record: dict[str, Any], stamp: Stamp) -> SessionEvent | None:
    call, response, text = part.get("functionCall"), part.get("functionResponse"), optional_text(part, "text")
    if isinstance(call, dict):
        call_id, name = [require(NAME, call, field, "functionCall") for field in ("id", "name")]
        return called(call_id, name, call.get("args"), stamp)
    if isinstance(response, dict):
        return _result(response, record.get("toolCallResult"), stamp)
    if part.get("thought") is True:
        return thought(text, part.get("thoughtSignature"), stamp)
    if text is None:
        return None
    return said(text, stamp) if record["type"] == "assistant" else prompted(text, stamp)


def _result(response: dict[str, Any], told: object, stamp: Stamp) -> SessionEvent:
    result, ok, error = told_to_model(response.get("response"))
    status = told.get("status") if isinstance(told, dict) else None
    if isinstance(status, str):
        ok = status == "success"
    return answered(require(NAME, response, "id", "functionResponse"), result, stamp, ok=ok, error=error)


def _texts(content: object) -> list[str]:
    parts = parts_of(content.get("parts")) if isinstance(content, dict) else []
    return [text for part in parts if part.get("thought") is not True and (text := optional_text(part, "text"))]


def _signature(content: dict[str, Any]) -> tuple[str, ...]:
    """What the model sees of a message: its texts, and the ids of its calls and results."""
    inside = [
        part.get(name) for part in parts_of(content.get("parts")) for name in ("functionCall", "functionResponse")
    ]
    return (*_texts(content), *(str(one.get("id")) for one in inside if isinstance(one, dict)))
