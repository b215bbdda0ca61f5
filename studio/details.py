"""What the page of one session shows beside its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.actors.resuming import way_of
from incarnate.actors.turn_checkpoints import named_session
from incarnate.studio.incarnations import Incarnations

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive

__all__ = ["details"]

_MOST_CHECKPOINTS = 1000
_MOST_STRETCHES = 1000


def details(archive: Archive, key: ActivationKey) -> dict[str, Any]:
    """The checkpoints, who wrote what, and how to go on."""
    with archive.moment(key) as log:
        ids = log.checkpoint_ids()[-_MOST_CHECKPOINTS:]
        checkpoints = [found for found in map(log.checkpoint, ids) if found is not None]
        latest = log.latest_checkpoint()
    history = archive.sum(key, Incarnations())[-_MOST_STRETCHES:]
    named = named_session(latest)
    way = None if named is None else way_of(*named)
    resume = None if way is None else way.command
    return {"checkpoints": checkpoints, "history": history, "latestCheckpoint": latest, "resume": resume}
