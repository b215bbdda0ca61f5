"""Tokens as the answer to a prompt tells them: no two agents mean the same.

The protocol's `usage` is the session's total so far, and whether cached and thought tokens are parts of the others,
only its sum tells. Agents without it tell what the prompt alone spent, by model, in `_meta.quota`.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.fields import count, either, optional_text
from incarnate.domain.events import SessionEvent, Usage

__all__ = ["prompt_usage"]

_NAMES = ("inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens", "totalTokens")


def prompt_usage(result: dict[str, Any]) -> list[SessionEvent]:
    """The usage that the answer to a prompt tells."""
    usage, meta = result.get("usage"), result.get("_meta")
    if isinstance(usage, dict):
        return [_total(usage)]
    quota = meta.get("quota") if isinstance(meta, dict) else None
    models = quota.get("model_usage") if isinstance(quota, dict) else None
    return [_of_model(told) for told in models if isinstance(told, dict)] if isinstance(models, list) else []


def _total(usage: dict[str, Any]) -> SessionEvent:
    given, output, thoughts, read, written, total = [count(usage.get(name)) for name in _NAMES]
    if total == given + output and given >= read + written:
        given -= read + written
    elif total == given + output + thoughts + read + written:
        output += thoughts
    return Usage(
        id="",
        parent_id=None,
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=read or UNSET,
        cache_write_tokens=written or UNSET,
        reasoning_tokens=thoughts or UNSET,
        scope="session",
    )


def _of_model(told: dict[str, Any]) -> SessionEvent:
    tokens = told.get("token_count")
    counts: dict[str, Any] = tokens if isinstance(tokens, dict) else {}
    return Usage(
        id="",
        parent_id=None,
        input_tokens=count(either(counts, "input_tokens", "inputTokens")),
        output_tokens=count(either(counts, "output_tokens", "outputTokens")),
        model=optional_text(told, "model") or UNSET,
    )
