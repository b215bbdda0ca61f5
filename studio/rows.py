"""A session's row, worked out from what is known of it: the same in a listing, in its details and in an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.actors.resuming import way_of
from incarnate.actors.turn_checkpoints import named_session
from incarnate.domain.events import timestamp
from incarnate.studio.finding import kind_of
from incarnate.studio.summaries import summary_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.diagnosis import Stretch
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.heads import Head
    from incarnate.domain.projections.usage import TokenCounts
    from incarnate.storage.port import ActivationInfo

__all__ = ["detail_fields", "last_fields", "row_fields", "state_of", "token_fields"]

_LIVE_MS = 60_000
_MOST_CHECKPOINTS = 1000
_MOST_STRETCHES = 1000


def row_fields(
    info: ActivationInfo, state: str, last: dict[str, Any] | None, tokens: dict[str, int] | None
) -> dict[str, Any]:
    """The row of an activation; `tokens` is None where they were not counted."""
    head = info.head
    return {
        "key": str(info.key),
        "agent": info.key.process_instance_key,
        "state": state,
        "incarnation": head.fence,
        "nextOffset": head.next_offset,
        "generation": head.generation,
        "nextTurn": head.next_turn,
        "createdAt": timestamp(info.created_ms),
        "updatedAt": timestamp(info.updated_ms),
        "lastEvent": last,
        "tokens": tokens,
    }


def state_of(head: Head, *, last_writer: int | None, quiet_ms: float) -> str:
    """What becomes of it: `retired`, `live`, `fenced` by an incarnation that has written nothing yet, or `idle`."""
    if head.retired:
        return "retired"
    if quiet_ms < _LIVE_MS:
        return "live"
    fenced = last_writer is not None and head.fence is not None and head.fence > last_writer
    return "fenced" if fenced else "idle"


def last_fields(last: AppendedEvent, *, mask: bool) -> dict[str, Any]:
    """The last event in a few words."""
    return {
        "offset": last.offset,
        "type": kind_of(last.event),
        "at": timestamp(last.at_ms),
        "summary": summary_of(last.event, mask=mask),
    }


def token_fields(total: TokenCounts) -> dict[str, int]:
    """The tokens of a session."""
    return {
        "input": total.input_tokens,
        "output": total.output_tokens,
        "cacheRead": total.cache_read_tokens,
        "cacheWrite": total.cache_write_tokens,
        "reasoning": total.reasoning_tokens,
    }


def detail_fields(
    checkpoints: Sequence[Checkpoint], latest: Checkpoint | None, history: Sequence[Stretch]
) -> dict[str, Any]:
    """The newest checkpoints, who wrote what last, and how to go on."""
    named = named_session(latest)
    way = None if named is None else way_of(*named)
    return {
        "checkpoints": checkpoints[-_MOST_CHECKPOINTS:],
        "history": history[-_MOST_STRETCHES:],
        "latestCheckpoint": latest,
        "resume": None if way is None else way.command,
    }
