"""Qwen Code's token counts: by call on each line, and for the whole session at the end of a turn.

The last line of an answer counts its call. The `result` of a process counts the session, over restarts and killed
processes, and also the calls that the harness makes for itself and those of background agents, which no line counts.
So what a result says beyond the lines is a difference to add only where it is known what came before: after an earlier
result, or where the agents' own totals explain all of it. Else it is given as the session's running total.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_usage import Tokens, usage_draft
from incarnate.domain.dialects.fields import count
from incarnate.domain.events import SessionEvent, Usage

__all__ = ["AgentLedger", "SessionLedger", "line_tokens", "metadata_tokens", "telemetry_tokens"]


def line_tokens(usage: object) -> Tokens:
    """The usage of a line or of a result; its input counts the cache's."""
    if not isinstance(usage, dict):
        return Tokens()
    cached, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    prompt = count(usage.get("input_tokens"))
    return Tokens(max(0, prompt - cached - written), count(usage.get("output_tokens")), cached, written)


def metadata_tokens(usage: object) -> Tokens:
    """The `usageMetadata` of a saved message; its output counts the thoughts."""
    if not isinstance(usage, dict):
        return Tokens()
    return _saved(usage, "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount")


def telemetry_tokens(event: dict[str, Any]) -> Tokens:
    """The counts of a saved telemetry event."""
    return _saved(
        event, "input_token_count", "output_token_count", "cached_content_token_count", "thoughts_token_count"
    )


def _saved(usage: dict[str, Any], *names: str) -> Tokens:
    prompt, output, cached, thoughts = [count(usage.get(name)) for name in names]
    return Tokens(max(0, prompt - cached), output, cached, 0, thoughts)


class SessionLedger:
    """What the lines of one session told since its last result, as against what the next one says."""

    def __init__(self) -> None:
        self._before: Tokens | None = None  # the session's total at the last result
        self._told = Tokens()
        self._agents: dict[str, int] = {}

    def line(self, tokens: Tokens, model: str | None, stamp: Stamp) -> list[SessionEvent]:
        """A line's call."""
        if not tokens.total:
            return []
        self._told = self._told.plus(tokens)
        return [usage_draft(tokens, model, stamp)]

    def agent_done(self, call_id: str, total: int) -> None:
        """A background agent has reported what it spent in all."""
        self._agents[call_id] = total

    def result(self, usage: object, stamp: Stamp) -> list[SessionEvent]:
        """What a result says beyond the lines."""
        truth = line_tokens(usage)
        more = truth.beyond((self._before or Tokens()).plus(self._told))
        agents, known = self._agents, self._before is not None
        self._before, self._told, self._agents = truth, Tokens(), {}
        if not more.total:
            return []
        if not known and more.total != sum(agents.values()):
            running = usage_draft(truth, None, stamp)
            assert isinstance(running, Usage)
            return [replace(running, scope="session")]
        inside: str | UnsetType = next(iter(agents)) if len(agents) == 1 else UNSET
        return [usage_draft(more, None, Stamp(inside, stamp.occurred_at))]


class AgentLedger:
    """The tokens of one agent, which its messages and the session's telemetry both tell: the larger sum counts."""

    def __init__(self) -> None:
        self._by_file = self._by_telemetry = self._counted = Tokens()

    def saved(self, tokens: Tokens) -> Tokens:
        """What a message adds."""
        self._by_file = self._by_file.plus(tokens)
        return self._grown(self._by_file)

    def measured(self, tokens: Tokens) -> Tokens:
        """What a telemetry event adds."""
        self._by_telemetry = self._by_telemetry.plus(tokens)
        return self._grown(self._by_telemetry)

    def _grown(self, total: Tokens) -> Tokens:
        more = total.beyond(self._counted)
        self._counted = self._counted.plus(more)
        return more
