"""A `session/update` of the Agent Client Protocol by itself: what it is for a log, before anything is put together."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from incarnate.domain.dialects.fields import optional_text

__all__ = ["AcpCall", "AcpIgnored", "AcpMessage", "AcpResult", "AcpUpdate", "classify", "text_blocks"]

Role = Literal["user", "assistant", "reasoning"]

_ROLES: dict[str, Role] = {
    "user_message_chunk": "user",
    "agent_message_chunk": "assistant",
    "agent_thought_chunk": "reasoning",
}

_ENDS = {"completed": True, "failed": False}


class AcpMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="message", rename="camel"):
    """A piece of what someone said or thought; pieces with the same `message_id` are one message."""

    role: Role
    message_id: str | None
    text: str


class AcpCall(msgspec.Struct, frozen=True, tag_field="kind", tag="tool-call", rename="camel"):
    """A call; its name is the title that people see, as the protocol has no other."""

    call_id: str
    name: str
    args: Any


class AcpResult(msgspec.Struct, frozen=True, tag_field="kind", tag="tool-result", rename="camel"):
    """The end of a call: its raw output, or else the content that people see."""

    call_id: str
    ok: bool
    result: Any


class AcpIgnored(msgspec.Struct, frozen=True, tag_field="kind", tag="ignored", rename="camel"):
    """Nothing for a log, by its kind."""

    session_update: str


AcpUpdate = AcpMessage | AcpCall | AcpResult | AcpIgnored


def classify(update: object) -> AcpUpdate:
    """What one update is; anything that is no update of the protocol is ignored."""
    if not isinstance(update, dict):
        return AcpIgnored("<none>")
    kind = update.get("sessionUpdate")
    if not isinstance(kind, str):
        return AcpIgnored("<none>")
    role, call_id = _ROLES.get(kind), optional_text(update, "toolCallId")
    if role is not None:
        text = _text(update.get("content"))
        return AcpIgnored(kind) if text is None else AcpMessage(role, optional_text(update, "messageId"), text)
    if kind == "tool_call" and call_id is not None:
        return AcpCall(call_id, optional_text(update, "title") or call_id, update.get("rawInput"))
    ok = _ENDS.get(status) if isinstance(status := update.get("status"), str) else None
    if kind == "tool_call_update" and call_id is not None and ok is not None:
        raw = update.get("rawOutput")
        return AcpResult(call_id, ok, update.get("content") if raw is None else raw)
    return AcpIgnored(kind)


def _text(content: object) -> str | None:
    """The text of a content block of that type."""
    text = content.get("text") if isinstance(content, dict) and content.get("type") == "text" else None
    return text if isinstance(text, str) else None


def text_blocks(content: object) -> str:
    """The texts of content blocks, a line each; of the blocks of a tool's content too."""
    blocks = content if isinstance(content, list) else [content]
    inner = [block.get("content", block) if isinstance(block, dict) else None for block in blocks]
    return "\n".join([text for block in inner if (text := _text(block)) is not None])
