"""Codex's token counts: cached tokens are part of the input there, reasoning part of the output.

Every count of a process is told two or three times: for each answer (`token_usage_record`, since 0.171), as the sum of
the process (`token_count`), and in the stream as the sum of the thread (`turn.completed`). The first that a form has is
taken, and sums become differences where the whole form can be seen.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.fields import count, optional_text
from incarnate.domain.events import SessionEvent, Usage

__all__ = ["RolloutUsage", "session_total"]

_FIELDS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_Counts = tuple[int, int, int, int, int]
_NOTHING: _Counts = (0, 0, 0, 0, 0)


def _counts(usage: object) -> _Counts | None:
    if not isinstance(usage, dict):
        return None
    whole, cached, written, output, reasoning = [count(usage.get(name)) for name in _FIELDS]
    return whole, cached, written, output, reasoning


def _usage(
    counts: _Counts, model: str | UnsetType = UNSET, scope: Literal["session"] | UnsetType = UNSET
) -> SessionEvent:
    whole, cached, written, output, reasoning = counts
    return Usage(
        id="",
        parent_id=None,
        input_tokens=max(0, whole - cached - written),
        output_tokens=output,
        model=model,
        cache_read_tokens=cached or UNSET,
        cache_write_tokens=written or UNSET,
        reasoning_tokens=reasoning or UNSET,
        scope=scope,
    )


def session_total(usage: object) -> list[SessionEvent]:
    """The stream's count at the end of a turn, which is the sum of the thread through all its processes."""
    counts = _counts(usage)
    return [] if counts is None else [_usage(counts, scope="session")]


class RolloutUsage:
    """What the records of one rollout told about tokens."""

    def __init__(self) -> None:
        self.model: str | UnsetType = UNSET
        self._responses: set[str] = set()
        self._by_response = False
        self._total: _Counts | None = None

    def response(self, payload: dict[str, Any]) -> list[SessionEvent]:
        """The tokens of one answer; a fork repeats its parent's."""
        counts, response = _counts(payload.get("usage")), optional_text(payload, "response_id")
        if counts is None or response in self._responses:
            return []
        self._by_response = True
        if response is not None:
            self._responses.add(response)
        return [_usage(counts, self.model)]

    def running(self, payload: dict[str, Any]) -> list[SessionEvent]:
        """What the sum of the process has grown by; rows are repeated without growing, and begin anew in a process."""
        info = payload.get("info")
        if not isinstance(info, dict) or self._by_response:
            return []
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None:
            return []
        before, self._total = self._total, total
        if total == before:
            return []
        grown = _minus(total, before or _NOTHING)
        if before is None or grown is None:
            grown = last or total
        return [_usage(grown, self.model)] if any(grown) else []


def _minus(total: _Counts, before: _Counts) -> _Counts | None:
    """The difference, None where any count fell."""
    a, b, c, d, e = [now - then for now, then in zip(total, before, strict=True)]
    return (a, b, c, d, e) if min(a, b, c, d, e) >= 0 else None
