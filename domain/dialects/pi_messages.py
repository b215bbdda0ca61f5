"""pi's messages to drafts: pure, the same for the stream and for the session file."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from incarnate.domain.codec import encode_json
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import count, optional_text, require
from incarnate.domain.dialects.stamped import answered, called, failure, prompted, said, thought
from incarnate.domain.errors import DialectError
from incarnate.domain.events import SessionEvent, SystemMessage, TurnOutcome, Usage, timestamp

__all__ = [
    "NAME",
    "Drafted",
    "assistant_drafts",
    "message_of",
    "outcome_of",
    "role_of",
    "stamp_of",
    "told_by",
    "usage_of",
]

NAME = "pi"

_MOST_MS = 253_402_300_799_999  # the end of the year 9999
_FAILED = ("error", "aborted")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Drafted(NamedTuple):
    """The drafts of one message, and the kind of its first part that maps to nothing."""

    drafts: list[SessionEvent]
    ignored: str | None = None


def message_of(record: dict[str, Any]) -> dict[str, Any]:
    """The message of a record that must have one.

    Raises:
        DialectError: it has none, or one without a role.
    """
    message = record.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise DialectError(NAME, f"{record.get('type')} without a message that has a role")
    return message


def role_of(record: dict[str, Any]) -> str | None:
    """Whose message the record holds; None where it holds none."""
    message = record.get("message")
    return optional_text(message, "role") if isinstance(message, dict) else None


def stamp_of(message: dict[str, Any]) -> Stamp:
    """When the message was made."""
    at = message.get("timestamp")
    if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at) or not 0 <= at <= _MOST_MS:
        return Stamp()
    return Stamp(UNSET, timestamp(int(at)))


def told_by(message: dict[str, Any]) -> Drafted:
    """The drafts of a message that is not the assistant's.

    Raises:
        DialectError: a tool result without the id of its call.
    """
    stamp = stamp_of(message)
    match message["role"]:
        case "system":
            text = _system_text(message)
            return Drafted(
                [SystemMessage(**stamp.fields(), text=text)] if text else [], None if text else "system/empty"
            )
        case "user" | "custom":
            return _asked(message, stamp)
        case "toolResult":
            call_id, failed = require(NAME, message, "toolCallId", "toolResult"), message.get("isError") is True
            return Drafted([answered(call_id, plain(message.get("content")), stamp, ok=not failed)])
        case "bashExecution" if message.get("excludeFromContext") is not True:
            ran = f"Ran `{message.get('command')}`\n```\n{message.get('output')}\n```"
            return Drafted([prompted(ran, stamp)])
        case "branchSummary" | "compactionSummary" if summary := optional_text(message, "summary"):
            return Drafted([prompted(summary, stamp)])
        case role:
            return Drafted([], f"message/{role}")


def assistant_drafts(message: dict[str, Any]) -> Drafted:
    """What the model thought, said and called, in its order, and what that took.

    Of a message that failed the calls are left out: pi runs none of them, and their arguments may be cut.

    Raises:
        DialectError: a call without its id or name.
    """
    stamp, content = stamp_of(message), message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    failed = message.get("stopReason") in _FAILED
    drafts: list[SessionEvent] = []
    ignored: str | None = None
    for block in content if isinstance(content, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        draft = None if failed and kind == "toolCall" else _draft(block, stamp)
        if draft is not None:
            drafts.append(draft)
        else:
            ignored = ignored or f"assistant/{'cut call' if kind == 'toolCall' else kind}"
    spent = usage_of(message, stamp)
    return Drafted(drafts if spent is None else [*drafts, spent], ignored)


def usage_of(message: dict[str, Any], stamp: Stamp) -> SessionEvent | None:
    """What the message took; None where that is nothing. pi's input is without the cache, its output with reasoning."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = [count(usage.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite", "reasoning")]
    if not any(counts):
        return None
    return Usage(
        **stamp.fields(),
        input_tokens=counts[0],
        output_tokens=counts[1],
        cache_read_tokens=counts[2] or UNSET,
        cache_write_tokens=counts[3] or UNSET,
        reasoning_tokens=counts[4] or UNSET,
        model=optional_text(message, "model") or UNSET,
    )


def outcome_of(message: dict[str, Any]) -> TurnOutcome:
    """How a turn ended whose last answer this is."""
    reason = message.get("stopReason")
    if reason == "aborted":
        return "interrupted"
    if reason != "error":
        return "completed"
    text = optional_text(message, "errorMessage") or "no reason given"
    return failure(_error_kind(text), text)


def plain(content: object) -> object:
    """The content of a tool's answer: one text where it holds nothing else, as the model reads it."""
    if not isinstance(content, list):
        return content
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    parts = [text for text in texts if isinstance(text, str)]
    return "\n".join(parts) if parts and len(parts) == len(content) else content


def _draft(block: object, stamp: Stamp) -> SessionEvent | None:
    if not isinstance(block, dict):
        return None
    match block.get("type"):
        case "text" if text := optional_text(block, "text"):
            return _signed(said(text, stamp), block, "textSignature")
        case "thinking":
            return thought(block.get("thinking"), block.get("thinkingSignature"), stamp)
        case "toolCall":
            call_id, name = require(NAME, block, "id", "toolCall"), require(NAME, block, "name", "toolCall")
            return _signed(called(call_id, name, block.get("arguments"), stamp), block, "thoughtSignature")
        case _:
            return None


def _signed(draft: SessionEvent, block: dict[str, Any], name: str) -> SessionEvent:
    """A text or a call may carry a blob of the provider's too, for which only the harness's own record has a place."""
    signature = optional_text(block, name)
    if signature is None:
        return draft
    return msgspec.structs.replace(draft, native=encode_json({name: signature}).decode())


def _asked(message: dict[str, Any], stamp: Stamp) -> Drafted:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    texts = [text for block in blocks if isinstance(block, dict) and (text := optional_text(block, "text"))]
    kinds = [str(block.get("type")) for block in blocks if isinstance(block, dict) and block.get("type") != "text"]
    ignored = f"user/{kinds[0]}" if kinds else None
    return Drafted([prompted("\n".join(texts), stamp)] if texts else [], ignored if kinds or texts else "user/empty")


def _system_text(message: dict[str, Any]) -> str:
    sections = message.get("sections")
    parts = [optional_text(message, "content"), *(sections.values() if isinstance(sections, dict) else ())]
    return "\n\n".join([part for part in parts if isinstance(part, str) and part])


def _error_kind(text: str) -> str:
    """The provider's name for the error, which pi prints as `400: {"type": ...}`; else its status, else `error`."""
    status, _, body = text.partition(": ")
    try:
        told = _decode(body)
    except msgspec.MsgspecError:
        told = {}
    return optional_text(told, "type") or (status if status.isdigit() else "error")
