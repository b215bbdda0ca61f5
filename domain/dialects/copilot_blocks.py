"""Copilot's messages, tools and token counts to drafts: pure, the same on standard output and on disk."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import count, optional_text, require
from incarnate.domain.dialects.stamped import answered, called, said, thought
from incarnate.domain.errors import DialectError
from incarnate.domain.events import SessionEvent, Usage

__all__ = ["NAME", "calls_of", "message_of", "reasoning_of", "result_of", "usage_of"]

NAME = "@github/copilot"

_decode = msgspec.json.Decoder().decode


def message_of(data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
    """What a message says; one that only calls says nothing."""
    text = data.get("content")
    if text is not None and not isinstance(text, str):
        raise DialectError(NAME, "assistant.message whose content is no text")
    return [said(text, stamp)] if text else []


def reasoning_of(data: dict[str, Any], told: set[str], stamp: Stamp) -> list[SessionEvent]:
    """The thought before a message, its text left out where it was `told`, and the provider's blobs, each its own."""
    text = optional_text(data, "reasoningText")
    if text in told:
        text = None
    blobs = [blob for name in ("reasoningOpaque", "encryptedContent") if (blob := optional_text(data, name))]
    first = [thought(text, blobs[0] if blobs else None, stamp)] if text is not None or blobs else []
    return first + [thought(None, blob, stamp) for blob in blobs[1:]]


def calls_of(data: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
    """The calls of a message.

    Raises:
        DialectError: one without its id or name.
    """
    requests = data.get("toolRequests")
    found: list[SessionEvent] = []
    for request in requests if isinstance(requests, list) else []:
        if not isinstance(request, dict):
            raise DialectError(NAME, "a tool request is a JSON object")
        call_id = require(NAME, request, "toolCallId", "a tool request")
        name = require(NAME, request, "name", "a tool request")
        found.append(called(call_id, name, _arguments(request.get("arguments")), stamp))
    return found


def _arguments(value: object) -> Any:
    """Arguments come as an object, or as its JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return _decode(value)
    except (msgspec.MsgspecError, RecursionError):
        return value


def result_of(data: dict[str, Any], stamp: Stamp) -> SessionEvent:
    """The answer to a call. A command that ran and failed is a success to Copilot: its exit code tells otherwise.

    Raises:
        DialectError: it names no call.
    """
    call_id = require(NAME, data, "toolCallId", "tool.execution_complete")
    result, error, shell = data.get("result"), data.get("error"), data.get("shellExecution")
    content = result.get("content", result) if isinstance(result, dict) else result
    exit_code = shell.get("exitCode") if isinstance(shell, dict) else None
    ok = data.get("success") is not False and error is None and exit_code in (0, None)
    reason = optional_text(error, "message", "code") if isinstance(error, dict) else error
    if not ok and not isinstance(reason, str) and not isinstance(content, str):
        reason = "failed" if exit_code in (0, None) else f"exit code {exit_code}"
    return answered(call_id, reason if content is None else content, stamp, ok=ok, error=reason)


def usage_of(
    tokens: dict[str, Any], model: str | UnsetType, stamp: Stamp, scope: Literal["session"] | UnsetType = UNSET
) -> SessionEvent:
    """Tokens of one answer, or of all. The input holds the cache's; where it is less, it is told without them."""
    whole, read, written = [count(tokens.get(name)) for name in ("inputTokens", "cacheReadTokens", "cacheWriteTokens")]
    return Usage(
        **stamp.fields(),
        input_tokens=whole - read - written if whole >= read + written else whole,
        output_tokens=count(tokens.get("outputTokens")),
        model=model,
        cache_read_tokens=read or UNSET,
        cache_write_tokens=written or UNSET,
        reasoning_tokens=count(tokens.get("reasoningTokens")) or UNSET,
        scope=scope,
    )
