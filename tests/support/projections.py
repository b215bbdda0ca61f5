"""Random logs, and any projection held against the fold of a fresh replay (I7)."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from msgspec import UNSET

from incarnate import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.projections.base import ListProjection, Projection, apply_change
from incarnate.domain.transcripts.rows import decode_row
from incarnate.domain.transcripts.translation import to_events

V = TypeVar("V")

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors" / "transcript_logs.jsonl"

# Few values each, so that ids, turns and models meet again.
WORDS = st.sampled_from(["", "hi", "naïve"])
CALL_IDS = st.sampled_from(["c0", "c1", "c2"])
MODELS = st.sampled_from([UNSET, "haiku", "opus"])
TOKENS = st.integers(0, 3)
COMMON: dict[str, Any] = {
    "id": st.just("e"),
    "parent_id": st.none(),
    "parent_call_id": st.sampled_from([UNSET, UNSET, UNSET, "c0", "c9"]),
}
LABELS = st.sampled_from([UNSET, UNSET, "t1", "turn-007", "turn-99999999999999999999"])
OUTCOMES = st.sampled_from([UNSET, "completed", "cancelled", FailedOutcome(TurnError("stream", "boom"))])

EVENTS: st.SearchStrategy[SessionEvent | Opaque] = st.one_of(
    st.builds(SystemMessage, **COMMON, text=WORDS),
    st.builds(UserMessage, **COMMON, text=WORDS),
    st.builds(AssistantMessage, **COMMON, text=WORDS),
    st.builds(Reasoning, **COMMON, text=st.just(UNSET) | WORDS, provider_continuation=st.sampled_from([UNSET, "blob"])),
    st.builds(ToolCall, **COMMON, call_id=CALL_IDS, name=st.sampled_from(["read", "run"]), args=st.just({"n": 1})),
    st.builds(
        ToolResult, **COMMON, call_id=CALL_IDS, ok=st.booleans(), result=WORDS, error=st.sampled_from([UNSET, "boom"])
    ),
    st.builds(
        Compaction,
        **COMMON,
        reason=WORDS,
        replaces_from=st.integers(0, 9),
        replaces_to=st.integers(0, 9),
        summary=st.just(UNSET) | WORDS,
    ),
    st.builds(
        Usage,
        **COMMON,
        input_tokens=TOKENS,
        output_tokens=TOKENS,
        model=MODELS,
        cache_read_tokens=st.just(UNSET) | TOKENS,
        cache_write_tokens=st.just(UNSET) | TOKENS,
        reasoning_tokens=st.just(UNSET) | TOKENS,
        scope=st.sampled_from([UNSET, "session"]),
    ),
    st.builds(TurnStart, **COMMON, turn=st.integers(0, 3), label=LABELS),
    st.builds(TurnEnd, **COMMON, turn=st.integers(0, 3), label=LABELS, outcome=OUTCOMES),
    st.just(Opaque("novel", "e", None, b'{"type":"novel","id":"e","parentId":null}')),
)

STEPS = st.lists(EVENTS | st.floats(0, 1), max_size=40)
"""What happens to a log: an event comes, or a rewind to that share of what is there."""


def appended(events: Iterable[SessionEvent | Opaque]) -> list[AppendedEvent]:
    return [AppendedEvent(offset, 1, 0, event) for offset, event in enumerate(events)]


def fold(projection: Projection[V], events: Iterable[SessionEvent | Opaque]) -> V:
    """The value of a projection after `events`, from nothing."""
    fresh = projection.fresh()
    for each in appended(events):
        fresh.apply(each)
    return fresh.value


def hold_against_replay(projection: Projection[Any], steps: Iterable[SessionEvent | Opaque | float]) -> None:
    """After each step the value, and a reader's copy of a list, are those of a fresh replay."""
    kept: list[SessionEvent | Opaque] = []
    copy: list[Any] = []
    for step in steps:
        if isinstance(step, float | int):
            cut = round(step * len(kept))
            change = projection.rewind(cut)
            del kept[cut:]
        else:
            change = projection.apply(AppendedEvent(len(kept), 1, 0, step))
            kept.append(step)
        if change is not None:
            apply_change(copy, change)

        assert fold(projection, kept) == projection.value
        assert change is not None or not isinstance(projection, ListProjection)
        assert change is None or copy == list(projection.value)


@cache
def recorded_logs() -> list[dict[str, Any]]:
    """The recorded logs of the reference, each with its `events` beside what was recorded of it."""
    return list(_recorded_logs())


def _recorded_logs() -> Iterator[dict[str, Any]]:
    for line in VECTORS.read_bytes().split(b"\n"):
        if line:
            log = json.loads(line)
            rows = [decode_row(row.encode()) for row in log["rows"]]
            yield log | {"events": to_events(rows, map("n-{}".format, count()).__next__)}
