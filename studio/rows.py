"""A session's row, worked out from what is known of it: the same in a listing, in its details and in an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from incarnate.actors.resuming import way_of
from incarnate.actors.turn_checkpoints import named_session
from incarnate.domain.events import TurnEnd, timestamp
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

__all__ = ["Signs", "detail_fields", "last_fields", "row_fields", "signs_of", "state_of", "token_fields"]

_LIVE_MS = 60_000
_MOST_CHECKPOINTS = 1000
_MOST_STRETCHES = 1000


class Signs(NamedTuple):
    """What the last event tells of a session's state: who wrote it, and whether it ended a turn of the session."""

    writer: int
    is_between_turns: bool


def signs_of(last: AppendedEvent | None) -> Signs | None:
    """The signs of a log's last event; None: it has none."""
    if last is None:
        return None
    ended = isinstance(last.event, TurnEnd) and last.event.parent_call_id is UNSET
    return Signs(last.incarnation, ended)


def row_fields(
    info: ActivationInfo,
    state: str,
    last: dict[str, Any] | None,
    tokens: dict[str, int] | None,
    checkpoint: str | None,
) -> dict[str, Any]:
    """The row of an activation; `tokens` is None where they were not counted, `checkpoint` is the latest one's id.

    Whatever may move without an event (the fence, a checkpoint, the retirement) is in it: a page that was shown asks
    anew when its row moves.
    """
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
        "checkpoint": checkpoint,
    }


def state_of(head: Head, signs: Signs | None, *, quiet_ms: float, is_supervised: bool = False) -> str:
    """What becomes of it: `retired`, `live`, `fenced` by an incarnation that has written nothing yet, or `idle`.

    One whose last event ended a turn lives only while a supervisor has it.
    """
    if head.retired:
        return "retired"
    if is_supervised or (quiet_ms < _LIVE_MS and not (signs and signs.is_between_turns)):
        return "live"
    fenced = signs is not None and head.fence is not None and head.fence > signs.writer
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
