"""Transcript rows for hypothesis."""

from typing import Any

from hypothesis import strategies as st

from incarnate.domain.events import FailedOutcome, TurnError, TurnOutcome
from incarnate.domain.transcripts.rows import (
    AssistantMessageRow,
    Row,
    ThinkingDeltaRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserMessageRow,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
IDS = st.sampled_from(["", "c0", "c1", "c1:c2"]) | TEXTS
PARENTS = st.none() | IDS
TURN_IDS = st.sampled_from(["turn-0", "turn-3", "turn-007", "turn-", "turn-99999999999999999999", "t1"]) | TEXTS

OPAQUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)

NAMED_OUTCOMES: tuple[TurnOutcome, ...] = ("completed", "cancelled", "step_limit", "interrupted")
OUTCOMES = st.sampled_from(NAMED_OUTCOMES) | st.builds(FailedOutcome, st.builds(TurnError, TEXTS, TEXTS))

ROWS: st.SearchStrategy[Row] = st.one_of(
    st.builds(UserMessageRow, TEXTS),
    st.builds(AssistantMessageRow, TEXTS),
    st.builds(ThinkingDeltaRow, TEXTS),
    st.builds(ToolCallRow, IDS, TEXTS, OPAQUE, PARENTS),
    st.builds(ToolResultRow, IDS, OPAQUE, st.none() | TEXTS, PARENTS),
    st.builds(TurnStartRow, TURN_IDS),
    st.builds(TurnEndRow, TURN_IDS, OUTCOMES),
)
