"""The fields of Codex's records that its dialect reads; see `ReadsFields`.

Half of a rollout's bytes are fields that nothing here reads: the instructions of each process, the state of the world,
and what is told of each item a second time.
"""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

__all__ = ["decode"]


class _Item(TypedDict, total=False):
    """An item, in its envelope, alone, or told of by an event."""

    type: Any
    id: Any
    call_id: Any
    name: Any
    namespace: Any
    role: Any
    content: Any
    summary: Any
    encrypted_content: Any
    internal_chat_message_metadata_passthrough: Any
    arguments: Any
    input: Any
    action: Any
    revised_prompt: Any
    output: Any
    tools: Any
    result: Any
    status: Any
    success: Any
    exit_code: Any
    error: Any


class _Told(TypedDict, total=False):
    """What an event tells of an item: how it ended."""

    id: Any
    call_id: Any
    result: Any
    status: Any
    success: Any
    exit_code: Any
    error: Any


class _Info(TypedDict, total=False):
    total_token_usage: Any
    last_token_usage: Any


class _Payload(_Item, total=False):
    session_id: Any
    model: Any
    item: _Told
    info: _Info | None
    usage: Any
    response_id: Any
    reason: Any
    num_turns: Any
    message: Any
    replacement_history: Any


class _StreamItem(TypedDict, total=False):
    id: Any
    type: Any
    text: Any
    command: Any
    changes: Any
    server: Any
    tool: Any
    arguments: Any
    prompt: Any
    receiver_thread_ids: Any
    query: Any
    aggregated_output: Any
    result: Any
    agents_states: Any
    action: Any
    status: Any
    success: Any
    exit_code: Any
    error: Any


class _Kind(TypedDict, total=False):
    type: Any


class _Record(_Item, total=False):
    timestamp: Any
    payload: _Payload
    item: _StreamItem
    usage: Any
    thread_id: Any
    msg: _Kind
    record_type: Any


decode = msgspec.json.Decoder(_Record).decode
"""A record with these fields alone."""
