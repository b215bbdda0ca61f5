"""What a dialect makes of records, a line of words an event, so that a test reads like the session."""

from collections import Counter
from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

from msgspec import UNSET

from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)


class Reading(NamedTuple):
    """The events, and what maps to nothing by kind."""

    events: list[Any]
    ignored: Counter[str]

    @property
    def told(self) -> list[str]:
        return [tell(event) for event in self.events]


def read_records(harness: str, *records: Any, ended: bool = False) -> Reading:
    """The log of these records; a text among them is a line that is no JSON."""
    normalizer: Any = find_dialect(harness).normalizer()
    ids, turns = count(), count()
    linker, reading = Linker(None, 0, lambda: f"n-{next(ids)}", lambda: next(turns)), Reading([], Counter())
    found = (normalizer.text(one) if isinstance(one, str) else normalizer.feed(one) for one in records)
    for normalized in found:
        reading.events.extend(linker.link(normalized.drafts))
        reading.ignored.update([normalized.ignored] if normalized.ignored is not None else [])
    if ended and isinstance(normalizer, Finishing):
        reading.events.extend(linker.link(normalizer.finish().drafts))
    return reading


def told(harness: str, *records: Any, ended: bool = False) -> list[str]:
    """The log of these records in words."""
    return read_records(harness, *records, ended=ended).told


def tell(event: Any) -> str:
    """One event in words; what happened inside a call has the call's id before it."""
    inside = "" if event.parent_call_id is UNSET else f"[{event.parent_call_id}] "
    return inside + _tell(event)


_SAID = {UserMessage: "user", SystemMessage: "system", AssistantMessage: "said", Reasoning: "thought"}


def _tell(event: Any) -> str:
    if isinstance(event, UserMessage | SystemMessage | AssistantMessage | Reasoning):
        blob = event.provider_continuation if isinstance(event, Reasoning) else UNSET
        return f"{_SAID[type(event)]} {event.text}" + ("" if blob is UNSET else f" <{blob}>")
    match event:
        case TurnStart():
            return "turn"
        case TurnEnd(outcome=outcome):
            return f"end {_outcome(outcome)}"
        case ToolCall(call_id=call_id, name=name, args=args):
            return f"call {call_id} {name} {args}"
        case ToolResult(call_id=call_id, ok=ok, result=result, error=error):
            return f"{'ok' if ok else 'failed'} {call_id} {result if ok or error is UNSET else error}"
        case Compaction(reason=reason, replaces_from=begin, replaces_to=end, summary=summary):
            return f"{reason} {begin}-{end}" + ("" if summary is UNSET else f" {summary}")
        case _:
            assert isinstance(event, Usage)
            return _usage(event)


def _usage(usage: Usage) -> str:
    extra = {
        "read": usage.cache_read_tokens,
        "written": usage.cache_write_tokens,
        "thought": usage.reasoning_tokens,
        "by": usage.model,
        "of": usage.scope,
    }
    known: Iterable[str] = (f" {name} {value}" for name, value in extra.items() if value is not UNSET)
    return f"usage {usage.input_tokens}/{usage.output_tokens}" + "".join(known)


def _outcome(outcome: object) -> str:
    if outcome is UNSET:
        return "unknown"
    return (
        f"failed {outcome.error.kind}: {outcome.error.message}" if isinstance(outcome, FailedOutcome) else str(outcome)
    )
