"""Tokens spent, by model and in all."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.events import AppendedEvent, Usage
from incarnate.domain.projections.base import Reducer

__all__ = ["ModelUsage", "TokenCounts", "UsageReport", "UsageTotals"]


class TokenCounts(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Tokens of each kind; the input is without the cache's, the reasoning as the harness told it beside the output."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: TokenCounts) -> TokenCounts:
        """The sum of both, kind by kind."""
        return TokenCounts(
            self.input_tokens + other.input_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    def __sub__(self, other: TokenCounts) -> TokenCounts:
        """What this has more, kind by kind; it may be negative."""
        return TokenCounts(
            self.input_tokens - other.input_tokens,
            self.cache_read_tokens - other.cache_read_tokens,
            self.cache_write_tokens - other.cache_write_tokens,
            self.output_tokens - other.output_tokens,
            self.reasoning_tokens - other.reasoning_tokens,
        )

    def covers(self, other: TokenCounts) -> bool:
        """No kind of `other` is more than here."""
        return all(count >= 0 for count in msgspec.structs.astuple(self - other))


_NONE = TokenCounts()


class ModelUsage(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one model; `model` is null for those of which the harness named none."""

    model: str | None
    tokens: TokenCounts


class UsageReport(msgspec.Struct, frozen=True, rename="camel"):
    """The tokens of a log: in all, and by model in the order of their names, the unnamed last."""

    total: TokenCounts
    by_model: tuple[ModelUsage, ...]


class _Running(NamedTuple):
    """An agent's running total of a model: the runs of the harness that have ended, and the latest figure."""

    ended: TokenCounts
    latest: TokenCounts


class _Agent(NamedTuple):
    """What one agent told: sums of its single usages, and its running totals, each by model. Never changed in place."""

    single: dict[str | None, TokenCounts]
    running: dict[str | None, _Running]


class _ByModel(NamedTuple):
    tokens: TokenCounts
    agents: int  # how many told of the model; without any it is no more in the report


class _Undo(NamedTuple):
    agent: str | UnsetType
    before: _Agent | None


class UsageTotals(Reducer):
    """The sum of all usage, that of sub-agents included.

    A running total (`scope="session"`) is one agent's, the session's own or a sub-agent's, for one model. The latest
    counts and replaces those before it; one that falls in any kind of token is the first of a new run of the harness,
    and what the run before it came to stays. It is skipped where the same agent also told single usages of that model,
    or of a model that it did not name; a running total without a model is skipped where its agent told of anything
    else. So nothing is counted twice, and a model that only running totals know is not lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._agents: dict[str | UnsetType, _Agent] = {}
        self._total = _NONE
        self._by_model: dict[str | None, _ByModel] = {}
        self._undo: list[_Undo | None] = []

    @property
    def value(self) -> UsageReport:
        """The tokens spent as the log stands: a snapshot that later events do not touch."""
        models = sorted(self._by_model, key=lambda model: (model is None, model or ""))
        return UsageReport(self._total, tuple([ModelUsage(model, self._by_model[model].tokens) for model in models]))

    def apply(self, appended: AppendedEvent) -> None:
        """Take the next event in.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._expect(appended.offset)
        event = appended.event
        self._undo.append(self._count(event) if isinstance(event, Usage) else None)
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        """Forget the events from `offset` on.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._expect_cut(offset)
        while self.next_offset > offset:
            undo = self._undo.pop()
            if undo is not None:
                self._replace(undo.agent, undo.before)
            self.next_offset -= 1
        self.generation += 1

    def _count(self, event: Usage) -> _Undo:
        before = self._agents.get(event.parent_call_id)
        self._replace(event.parent_call_id, _with(before or _Agent({}, {}), event))
        return _Undo(event.parent_call_id, before)

    def _replace(self, name: str | UnsetType, agent: _Agent | None) -> None:
        """Put another state in an agent's place, and the difference into the sums."""
        before = self._agents.get(name)
        if agent is None:
            del self._agents[name]
        else:
            self._agents[name] = agent
        old, new = _counted(before), _counted(agent)
        for model in old.keys() | new.keys():
            change = new.get(model, _NONE) - old.get(model, _NONE)
            self._total += change
            known = self._by_model.get(model, _ByModel(_NONE, 0))
            agents = known.agents + (model in new) - (model in old)
            if agents:
                self._by_model[model] = _ByModel(known.tokens + change, agents)
            else:
                del self._by_model[model]


def _with(agent: _Agent, event: Usage) -> _Agent:
    model = None if event.model is UNSET else event.model
    tokens = TokenCounts(
        event.input_tokens,
        event.cache_read_tokens or 0,
        event.cache_write_tokens or 0,
        event.output_tokens,
        event.reasoning_tokens or 0,
    )
    if event.scope is UNSET:
        return agent._replace(single={**agent.single, model: agent.single.get(model, _NONE) + tokens})
    ended, latest = agent.running.get(model, _Running(_NONE, _NONE))
    if not tokens.covers(latest):
        ended += latest
    return agent._replace(running={**agent.running, model: _Running(ended, tokens)})


def _counted(agent: _Agent | None) -> dict[str | None, TokenCounts]:
    """What of an agent's usage goes into the sums, by model."""
    if agent is None:
        return {}
    single, running = agent
    if not running:
        return single
    counted = dict(single)
    for model, run in running.items():
        finer_is_known = single or len(running) > 1 if model is None else model in single or None in single
        if not finer_is_known:
            counted[model] = run.ended + run.latest
    return counted
