"""OpenCode's parts to drafts: pure, the same for what it prints, keeps in its database and exports."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.codec import encode_json
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import count, optional_text, require
from incarnate.domain.dialects.stamped import answered, called, failure, said, thought
from incarnate.domain.events import SessionEvent, TurnOutcome, Usage, timestamp

__all__ = [
    "NAME",
    "call_of",
    "has_ended",
    "never_ran",
    "outcome_of",
    "result_of",
    "spoken",
    "stamp_at",
    "status_of",
    "usage_of",
]

NAME = "opencode"

_MOST_MS = 253_402_300_799_999  # the end of the year 9999
_BLOBS = ("signature", "reasoningEncryptedContent", "redactedData", "thoughtSignature", "reasoning_details")


def stamp_at(ms: object, call: str | UnsetType = UNSET) -> Stamp:
    """The harness's time, in milliseconds, and the call of the sub-agent."""
    if isinstance(ms, bool) or not isinstance(ms, int | float) or not math.isfinite(ms) or not 0 <= ms <= _MOST_MS:
        return Stamp(call)
    return Stamp(call, timestamp(int(ms)))


def _time(holder: dict[str, Any], name: str) -> object:
    time = holder.get("time")
    return time.get(name) if isinstance(time, dict) else None


def has_ended(part: dict[str, Any]) -> bool:
    """The text or thought has come to its end; one without a time never streamed."""
    return "time" not in part or _time(part, "end") is not None


def spoken(part: dict[str, Any], call: str | UnsetType) -> SessionEvent | None:
    """A text or a thought; None where it is empty."""
    stamp, text = stamp_at(_time(part, "start"), call), optional_text(part, "text")
    if part.get("type") == "text":
        return None if text is None else said(text, stamp)
    metadata = part.get("metadata")
    blob = _blob(metadata)
    if text is None and blob is None:
        return None
    draft = thought(text, blob, stamp)
    # The provider may need more than its blob, such as the item's id: that is only in the whole of it.
    return draft if blob is None else msgspec.structs.replace(draft, native=encode_json(metadata).decode())


def _blob(metadata: object) -> str | None:
    if not isinstance(metadata, dict):
        return None
    for held in (metadata, *metadata.values()):
        found = optional_text(held, *_BLOBS) if isinstance(held, dict) else None
        if found is not None:
            return found
    return None


def status_of(part: dict[str, Any]) -> str:
    """How far a tool is: pending, running, completed or error."""
    state = part.get("state")
    return (optional_text(state, "status") if isinstance(state, dict) else None) or "pending"


def never_ran(part: dict[str, Any]) -> bool:
    """The answer was cut before the call's arguments had come, and OpenCode gave the call up."""
    state = part["state"]
    return status_of(part) == "error" and not state.get("input")


def call_of(part: dict[str, Any], call: str | UnsetType) -> SessionEvent:
    """The call of a tool.

    Raises:
        DialectError: it has no id or no name.
    """
    call_id, name = require(NAME, part, "callID"), require(NAME, part, "tool")
    return called(call_id, name, part["state"].get("input"), stamp_at(_time(part["state"], "start"), call))


def result_of(part: dict[str, Any], call: str | UnsetType) -> SessionEvent:
    """The answer of a tool. A shell's exit code other than 0 is a failure too, though OpenCode calls it completed.

    Raises:
        DialectError: it has no id.
    """
    state = part["state"]
    stamp, metadata = stamp_at(_time(state, "end"), call), state.get("metadata")
    if status_of(part) == "error":
        error = optional_text(state, "error")
        return answered(require(NAME, part, "callID"), error, stamp, ok=False)
    code = metadata.get("exit") if isinstance(metadata, dict) else None
    ok = not isinstance(code, int) or code == 0
    draft = answered(require(NAME, part, "callID"), state.get("output"), stamp, ok=ok)
    # The model read the output, not an error; its reason is in there.
    return draft if ok else msgspec.structs.replace(draft, error=UNSET)


def usage_of(part: dict[str, Any], model: str | None, call: str | UnsetType) -> SessionEvent | None:
    """What a step took; None where that is nothing. OpenCode's output is without the reasoning."""
    tokens = part.get("tokens")
    if not isinstance(tokens, dict):
        return None
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    reasoning = count(tokens.get("reasoning"))
    spent = count(tokens.get("input")), count(tokens.get("output")) + reasoning
    cached = count(cache.get("read")), count(cache.get("write"))
    if not any((*spent, *cached)):
        return None
    return Usage(
        **Stamp(call).fields(),
        input_tokens=spent[0],
        output_tokens=spent[1],
        cache_read_tokens=cached[0] or UNSET,
        cache_write_tokens=cached[1] or UNSET,
        reasoning_tokens=reasoning or UNSET,
        model=model or UNSET,
    )


def outcome_of(error: object) -> TurnOutcome:
    """How a turn ended that ended in this error."""
    if not isinstance(error, dict):
        return failure("error", str(error))
    name, data = optional_text(error, "name") or "error", error.get("data")
    if name == "MessageAbortedError":
        return "interrupted"
    told = optional_text(data, "message") if isinstance(data, dict) else None
    return failure(name, told or optional_text(error, "message") or name)
