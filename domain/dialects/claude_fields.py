"""The fields of Claude Code's records that its dialect reads; see `ReadsFields`.

A third of a session's bytes are fields that nothing here reads: what a tool printed a second time, the tools and the
commands of a process, the prompts and requests that are kept on disk.
"""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from incarnate.domain.dialects.claude_usage import MessageUsage, ModelUsage

__all__ = ["decode"]


class _Message(TypedDict, total=False):
    id: Any
    model: Any
    content: Any
    stop_reason: Any
    usage: MessageUsage | None


class _Event(TypedDict, total=False):
    type: Any


class _Attachment(TypedDict, total=False):
    type: Any
    prompt: Any


class _ToolUseResult(TypedDict, total=False):
    agentId: Any


class _Record(TypedDict, total=False):
    type: Any
    subtype: Any
    uuid: Any
    parentUuid: Any
    session_id: Any
    sessionId: Any
    timestamp: Any
    message: _Message | str | None
    # of sub-agents
    parent_tool_use_id: Any
    isSidechain: Any
    agentId: Any
    agent_id: Any
    toolUseResult: _ToolUseResult | str | list[Any] | None
    # of users and of the harness itself
    isMeta: Any
    ownNote: Any
    isCompactSummary: Any
    isSynthetic: Any
    isVisibleInTranscriptOnly: Any
    isApiErrorMessage: Any
    is_api_error_message: Any
    compact_metadata: Any
    compactMetadata: Any
    event: _Event
    attachment: _Attachment
    # of results and errors
    usage: MessageUsage | None
    model: Any
    model_usage_since_last_result: dict[str, ModelUsage] | None
    is_error: Any
    terminal_reason: Any
    errors: Any
    result: Any
    error: Any
    api_error_type: Any
    apiErrorType: Any
    api_error: Any
    apiError: Any


decode = msgspec.json.Decoder(_Record).decode
"""A record with these fields alone."""
