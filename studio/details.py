"""What the page of one session shows beside its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.studio.incarnations import Incarnations
from incarnate.studio.rows import detail_fields

if TYPE_CHECKING:
    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive

__all__ = ["details"]

_MOST_CHECKPOINTS = 1000  # each is read by itself


def details(archive: Archive, key: ActivationKey) -> dict[str, Any]:
    """The checkpoints, who wrote what, and how to go on."""
    with archive.moment(key) as log:
        ids = log.checkpoint_ids()[-_MOST_CHECKPOINTS:]
        checkpoints = [found for found in map(log.checkpoint, ids) if found is not None]
        latest = log.latest_checkpoint()
    return detail_fields(checkpoints, latest, archive.sum(key, Incarnations()))
