"""What is told of an activation in JSON, by commands and by the studio alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.events import timestamp

if TYPE_CHECKING:
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.analysis import Analysis
    from incarnate.domain.projections.usage import UsageReport
    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.port import ActivationInfo

__all__ = ["activation_fields", "rewind_fields", "stats_fields"]


def activation_fields(info: ActivationInfo) -> dict[str, Any]:
    """A row of a listing."""
    return {
        "key": str(info.key),
        "incarnation": info.head.fence,
        "nextOffset": info.head.next_offset,
        "generation": info.head.generation,
        "nextTurn": info.head.next_turn,
        "createdAt": timestamp(info.created_ms),
        "updatedAt": timestamp(info.updated_ms),
    }


def rewind_fields(rewind: Rewind) -> dict[str, Any]:
    """One rewind."""
    return {
        "generation": rewind.generation,
        "cut": rewind.cut,
        "head": rewind.head,
        "incarnation": rewind.incarnation,
        "at": timestamp(rewind.at_ms),
        "swept": rewind.swept,
    }


def stats_fields(key: ActivationKey, head: Head, analysis: Analysis, usage: UsageReport) -> dict[str, Any]:
    """What a log amounts to."""
    return {
        "key": str(key),
        "incarnation": head.fence,
        "nextOffset": head.next_offset,
        "generation": head.generation,
        "analysis": analysis.as_json(),
        "usage": usage,
    }
