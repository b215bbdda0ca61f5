"""The canonical session events: what an agent thought and did.

On the wire they are the reference's JSON exactly (`fixtures/vectors/events.jsonl`): camelCase fields and the tags
below. Fields of ours beyond it are optional and left out when unset. The tags are the stored format: renaming a
class changes nothing on disk, changing a tag breaks every log.

All structs are frozen and have `gc=False`: they hold only JSON values, which cannot form cycles, and the collector
skipping them makes a replay faster (`benchmarks/run --only replay`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

__all__ = [
    "MAX_INTEGER",
    "AppendedEvent",
    "AssistantMessage",
    "Compaction",
    "Count",
    "FailedOutcome",
    "Opaque",
    "Reasoning",
    "SessionEvent",
    "SystemMessage",
    "ToolCall",
    "ToolResult",
    "TurnEnd",
    "TurnError",
    "TurnOutcome",
    "TurnStart",
    "Usage",
    "UserMessage",
    "timestamp",
]

MAX_INTEGER = 2**53 - 1
"""The largest offset, incarnation, turn number and token count: the largest integer that JavaScript keeps exact."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]


class _Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type", rename="camel"):
    """What all events share.

    `parent_id` is the event before it in the session, `parent_call_id` the tool call inside which it happened
    (a sub-agent, a code-run sub-call), `occurred_at` the harness's own time as it wrote it. `native` is the harness's
    own record, as JSON text, where it says more than the event: what a bridge gives back to its harness unchanged.
    Text, because every view replays it and only the bridge looks inside.
    """

    id: str
    parent_id: str | None
    parent_call_id: str | UnsetType = UNSET
    occurred_at: str | UnsetType = UNSET
    native: str | UnsetType = UNSET


class SystemMessage(_Event, frozen=True, kw_only=True, gc=False, tag="system"):
    """Text that the harness put before the model."""

    text: str


class UserMessage(_Event, frozen=True, kw_only=True, gc=False, tag="user"):
    """A prompt."""

    text: str


class AssistantMessage(_Event, frozen=True, kw_only=True, gc=False, tag="assistant"):
    """What the model said."""

    text: str


class Reasoning(_Event, frozen=True, kw_only=True, gc=False, tag="reasoning"):
    """What the model thought; `provider_continuation` is the provider's opaque blob, kept byte for byte."""

    text: str | UnsetType = UNSET
    provider_continuation: str | UnsetType = UNSET


class ToolCall(_Event, frozen=True, kw_only=True, gc=False, tag="tool-call"):
    """The model asked for a tool; `args` is any JSON value."""

    call_id: str
    name: str
    args: Any = None


class ToolResult(_Event, frozen=True, kw_only=True, gc=False, tag="tool-result"):
    """The answer to the latest unanswered call of `call_id`; `error` says why where `ok` is false."""

    call_id: str
    ok: bool
    result: Any = None
    error: str | UnsetType = UNSET

    @property
    def answer(self) -> Any:
        """What a reader is shown: why it failed where that is told, else the result."""
        return self.result if self.ok or self.error is UNSET else self.error


class Compaction(_Event, frozen=True, kw_only=True, gc=False, tag="compaction"):
    """The events of offsets `replaces_from` up to, not including, `replaces_to` are now `summary`."""

    reason: str
    replaces_from: Count
    replaces_to: Count
    summary: str | UnsetType = UNSET


class Usage(_Event, frozen=True, kw_only=True, gc=False, tag="usage"):
    """Tokens spent since the last `Usage`.

    `input_tokens` are without the cache's. `scope="session"` marks a harness's running total, which sums skip where
    there is finer usage.
    """

    input_tokens: Count
    output_tokens: Count
    model: str | UnsetType = UNSET
    cache_read_tokens: Count | UnsetType = UNSET
    cache_write_tokens: Count | UnsetType = UNSET
    reasoning_tokens: Count | UnsetType = UNSET
    scope: Literal["session"] | UnsetType = UNSET


class TurnStart(_Event, frozen=True, kw_only=True, gc=False, tag="turn-start"):
    """A turn begins; `label` is a foreign turn id, `turn` is then its number or 0 (I8)."""

    turn: Count
    label: str | UnsetType = UNSET


class TurnError(msgspec.Struct, frozen=True, gc=False):
    """Why a turn failed."""

    kind: str
    message: str


class FailedOutcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a turn that ended in an error; its JSON is `{"error": {"kind": ..., "message": ...}}`."""

    error: TurnError


TurnOutcome = Literal["completed", "cancelled", "step_limit", "interrupted"] | FailedOutcome


class TurnEnd(_Event, frozen=True, kw_only=True, gc=False, tag="turn-end"):
    """A turn ends."""

    turn: Count
    outcome: TurnOutcome | UnsetType = UNSET
    label: str | UnsetType = UNSET


class Opaque(msgspec.Struct, frozen=True, gc=False):
    """An event of a type that this version does not know: kept as it is stored, byte for byte.

    Only the stores' read path and the canonical import make one; the public codec refuses it.
    """

    type: str
    id: str
    parent_id: str | None
    raw: bytes


SessionEvent = (
    SystemMessage
    | UserMessage
    | AssistantMessage
    | Reasoning
    | ToolCall
    | ToolResult
    | Compaction
    | Usage
    | TurnStart
    | TurnEnd
)


class AppendedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event as the log holds it: its offset, its writer and when it was written (`at_ms`: milliseconds, UTC)."""

    offset: int
    incarnation: int
    at_ms: int
    event: SessionEvent | Opaque

    @property
    def at(self) -> str:
        """When it was written: ISO-8601, UTC, milliseconds."""
        return timestamp(self.at_ms)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_CYCLE_MS = 146_097 * 86_400_000  # 400 years, after which the calendar repeats


def timestamp(at_ms: int) -> str:
    """`at_ms` milliseconds after the epoch as ISO-8601, UTC: `1970-01-01T00:00:00.000Z`.

    What another program stored may lie beyond the years from 1 to 9999: those have a sign and six digits or more, as
    JavaScript writes them.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        cycles, rest = divmod(at_ms, _CYCLE_MS)
        moment = _EPOCH + timedelta(milliseconds=rest)
        year = moment.year + 400 * cycles
        return f"{year:+07d}-{moment:%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"
