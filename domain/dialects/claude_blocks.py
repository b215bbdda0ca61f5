"""Content blocks of Claude's messages to drafts: pure, the same for every form that Claude Code writes."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.fields import require
from incarnate.domain.errors import DialectError
from incarnate.domain.events import AssistantMessage, Reasoning, SessionEvent, ToolCall, ToolResult, UserMessage

__all__ = ["NAME", "Blocks", "Stamp", "content_drafts", "message_of"]

NAME = "claude-code"
_CONTENT = (str, list)  # a union would be made at every record


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """What all drafts of one record share."""

    parent_call_id: str | UnsetType = UNSET
    occurred_at: str | UnsetType = UNSET

    def fields(self, event_id: str = "") -> dict[str, Any]:
        """As the fields of a draft."""
        return {
            "id": event_id,
            "parent_id": None,
            "parent_call_id": self.parent_call_id,
            "occurred_at": self.occurred_at,
        }


class Blocks(msgspec.Struct, frozen=True, gc=False):
    """The drafts of one message, and the kind of its first block that maps to nothing."""

    drafts: list[SessionEvent]
    ignored: str | None


def message_of(record: dict[str, Any]) -> dict[str, Any]:
    """The message of an assistant or user record.

    Raises:
        DialectError: it has none, or one without a content that could be read.
    """
    message = record.get("message")
    if not isinstance(message, dict):
        raise DialectError(NAME, f"{record.get('type')} without a message")
    if not isinstance(message.get("content"), _CONTENT):
        raise DialectError(NAME, f"{record.get('type')} whose content is neither a text nor a list")
    return message


def content_drafts(role: str, content: str | list[Any], stamp: Stamp, harness: str = NAME) -> Blocks:
    """The drafts of a message's content, one a block, in Claude's spelling, which other harnesses use too.

    Raises:
        DialectError: a tool block without its id or name.
    """
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    drafts: list[SessionEvent] = []
    ignored = None if content else f"{role}/empty"
    for block in content:
        draft = _draft(role, block, stamp, harness)
        if draft is not None:
            drafts.append(draft)
        elif ignored is None:
            ignored = f"{role}/{_kind(block)}"
    return Blocks(drafts, ignored)


def _kind(block: object) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else "unknown"


def _draft(role: str, block: object, stamp: Stamp, harness: str) -> SessionEvent | None:
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if kind == "text":
        return _text(role, block, stamp)
    if kind == "tool_use":
        return _call(block, stamp, harness)
    if kind == "tool_result":
        return _result(block, stamp, harness)
    if kind == "thinking":
        return _reasoning(block.get("thinking"), block.get("signature"), stamp)
    if kind == "redacted_thinking":
        return _reasoning(None, block.get("data"), stamp)
    return _server_side(str(kind), block, stamp, harness)


# Every field by its name: a dict of them, unpacked, takes six times as long, and these are what a session consists of.


def _text(role: str, block: dict[str, Any], stamp: Stamp) -> SessionEvent | None:
    text = block.get("text")
    if not isinstance(text, str) or not text:
        return None
    inside, at = stamp.parent_call_id, stamp.occurred_at
    if role == "user":
        return UserMessage(id="", parent_id=None, parent_call_id=inside, occurred_at=at, text=text)
    return AssistantMessage(id="", parent_id=None, parent_call_id=inside, occurred_at=at, text=text)


def _reasoning(text: object, blob: object, stamp: Stamp) -> SessionEvent:
    return Reasoning(
        id="",
        parent_id=None,
        parent_call_id=stamp.parent_call_id,
        occurred_at=stamp.occurred_at,
        text=text if isinstance(text, str) else UNSET,
        provider_continuation=blob if isinstance(blob, str) else UNSET,
    )


def _call(block: dict[str, Any], stamp: Stamp, harness: str) -> ToolCall:
    call_id, name = require(harness, block, "id"), require(harness, block, "name")
    return ToolCall(
        id=f"call:{call_id}",
        parent_id=None,
        parent_call_id=stamp.parent_call_id,
        occurred_at=stamp.occurred_at,
        call_id=call_id,
        name=name,
        args=block.get("input"),
    )


def _result(block: dict[str, Any], stamp: Stamp, harness: str) -> ToolResult:
    call_id = require(harness, block, "tool_use_id")
    content, ok = block.get("content"), block.get("is_error") is not True
    return ToolResult(
        id=f"result:{call_id}",
        parent_id=None,
        parent_call_id=stamp.parent_call_id,
        occurred_at=stamp.occurred_at,
        call_id=call_id,
        ok=ok,
        result=content,
        error=UNSET if ok else _error_text(content),
    )


def _error_text(content: object) -> str | UnsetType:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts else UNSET


def _server_side(kind: str, block: dict[str, Any], stamp: Stamp, harness: str) -> SessionEvent | None:
    """A tool that the provider ran itself, such as a web search: a call and its result like any other, if whole."""
    if kind.endswith("tool_use") and {"id", "name"} <= block.keys():
        return _call(block, stamp, harness)
    if kind.endswith("tool_result") and "tool_use_id" in block:
        return _result(block, stamp, harness)
    return None
