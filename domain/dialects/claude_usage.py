"""Claude's token counts: each message once, and the truth at the end of a turn.

On disk the lines of a message repeat its usage, and in old versions it grows from line to line. In the stream every
line carries the count of the message's start, whose output is a placeholder, and calls that the harness makes for
itself (a summary, a title) have no line at all; only the result at the end of a turn is right. So the first line of a
message gives a `Usage`, a later line what has grown, and a result what is missing, by model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.claude_recent import Recent
from incarnate.domain.dialects.fields import count
from incarnate.domain.events import Count, SessionEvent, Usage

__all__ = ["MessageUsage", "ModelUsage", "Tokens", "UsageLedger", "message_tokens", "usage_draft"]


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """Counts of one kind of tokens each; `input` is without the cache's."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def plus(self, other: Tokens) -> Tokens:
        """The sum."""
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )

    def beyond(self, other: Tokens) -> Tokens:
        """What this has more than `other`, never below 0."""
        more = (
            self.input - other.input,
            self.output - other.output,
            self.cache_read - other.cache_read,
            self.cache_write - other.cache_write,
            self.reasoning - other.reasoning,
        )
        return Tokens(*more) if min(more) >= 0 else Tokens(*[max(0, one) for one in more])

    def covers(self, other: Tokens) -> bool:
        """Nothing in `other` is more than here."""
        return (
            self.input >= other.input
            and self.output >= other.output
            and self.cache_read >= other.cache_read
            and self.cache_write >= other.cache_write
            and self.reasoning >= other.reasoning
        )

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output + self.cache_read + self.cache_write + self.reasoning


class MessageUsage(msgspec.Struct, frozen=True, gc=False):
    """The usage of a message or of a result, read as such: it costs half of what reading it out of a dict does."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0


class ModelUsage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a result tells of one model."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    thinking_tokens: Count = 0


def message_tokens(usage: object) -> Tokens | None:
    """The usage of a message or of a result; None for what is none."""
    if type(usage) is MessageUsage:
        return Tokens(
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        )
    if not isinstance(usage, dict):
        return None
    get = usage.get
    return Tokens(
        count(get("input_tokens")),
        count(get("output_tokens")),
        count(get("cache_read_input_tokens")),
        count(get("cache_creation_input_tokens")),
    )


def _model_tokens(usage: object) -> Tokens:
    if type(usage) is ModelUsage:
        return Tokens(
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.thinking_tokens,
        )
    if not isinstance(usage, dict):
        return Tokens()
    return Tokens(
        input=count(usage.get("inputTokens")),
        output=count(usage.get("outputTokens")),
        cache_read=count(usage.get("cacheReadInputTokens")),
        cache_write=count(usage.get("cacheCreationInputTokens")),
        reasoning=count(usage.get("thinkingTokens")),
    )


def usage_draft(tokens: Tokens, model: str | None, stamp: Stamp) -> SessionEvent:
    """The counts as a draft; counts of 0 that are optional are left out."""
    return Usage(
        id="",
        parent_id=None,
        parent_call_id=stamp.parent_call_id,
        occurred_at=stamp.occurred_at,
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        model=UNSET if model is None else model,
        cache_read_tokens=tokens.cache_read or UNSET,
        cache_write_tokens=tokens.cache_write or UNSET,
        reasoning_tokens=tokens.reasoning or UNSET,
    )


_MOST_MESSAGES = 4096  # of which lines may still come: all lines of a message come within a few of it


_Counted = dict[tuple[str | None, bool], Tokens]
"""Tokens that drafts told, by their model and whether the main agent spent them; the last one told is the last."""


class UsageLedger:
    """What one stream told about tokens since its last result, as against what the next one says."""

    def __init__(self) -> None:
        self._messages: Recent[Tokens] = Recent(_MOST_MESSAGES)
        # One for each process that may have written since the last result: a killed one never gets its result, and the
        # next one's speaks only of itself.
        self._counted: list[_Counted] = [{}]

    def process_may_begin(self) -> None:
        """A line that a new process writes first, but not only a new process."""
        if self._counted[-1]:
            self._counted.append({})

    def message(self, message: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """What this line of a message adds."""
        tokens, name = message_tokens(message.get("usage")), message.get("id")
        if tokens is None:
            return []
        if isinstance(name, str):
            known = self._messages.get(name)
            if known is not None:
                if tokens == known:
                    return []
                tokens, known = tokens.beyond(known), known.plus(tokens.beyond(known))
            self._messages.keep(name, tokens if known is None else known)
            if known is not None and not tokens.total:
                return []
        told = message.get("model")
        model = told if isinstance(told, str) else None
        self._count((model, stamp.parent_call_id is UNSET), tokens)
        return [usage_draft(tokens, model, stamp)]

    def _count(self, whose: tuple[str | None, bool], tokens: Tokens) -> None:
        """One sum a model, the last one at the end: a turn may have any number of messages."""
        part = self._counted[-1]
        before = part.pop(whose, None)
        part[whose] = tokens if before is None else tokens.plus(before)

    def result(self, record: dict[str, Any], stamp: Stamp) -> list[SessionEvent]:
        """What a result says that no message said; it closes the account."""
        by_model = record.get("model_usage_since_last_result")
        if isinstance(by_model, dict):
            truth = {model: _model_tokens(usage) for model, usage in by_model.items()}
            counted = self._of_this_process(_total(truth.values()), main_only=False)
        else:  # older versions: the main agent's tokens alone
            tokens = message_tokens(record.get("usage")) or Tokens()
            counted = self._of_this_process(tokens, main_only=True)
            truth = {_main_model(counted): tokens} if tokens.total else {}
        for told, spent in counted:
            model = _same_model(told, truth)
            if model is not None and model in truth:
                truth[model] = truth[model].beyond(spent)
        self._counted = [{}]
        return [usage_draft(tokens, model or None, stamp) for model, tokens in truth.items() if tokens.total]

    def _of_this_process(self, truth: Tokens, *, main_only: bool) -> list[tuple[str | None, Tokens]]:
        """The longest run of processes whose tokens fit into what the result says, the last one at least.

        Inputs are exact from a message's first line, so a killed process's do not fit beside its successor's.
        """
        counted = self._counted
        while True:
            run = [(model, spent) for part in counted for (model, main), spent in part.items() if main or not main_only]
            if len(counted) == 1 or truth.covers(_total([spent for _, spent in run])):
                return run
            counted = counted[1:]


def _total(parts: Iterable[Tokens]) -> Tokens:
    total = None
    for part in parts:
        total = part if total is None else total.plus(part)
    return total or Tokens()


def _main_model(counted: list[tuple[str | None, Tokens]]) -> str:
    return next((model for model, _ in reversed(counted) if model is not None), "")


def _same_model(model: str | None, truth: dict[str, Tokens]) -> str | None:
    """The key under which the result counts this model: a result may add a context size or leave a date out."""
    if model is None or model in truth:
        return model
    near = [key for key in truth if key.startswith(model) or (key and model.startswith(key))]
    return near[0] if near else next(iter(truth)) if len(truth) == 1 else None
