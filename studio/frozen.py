"""A session at one moment, read from a store while others may go on writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from incarnate.actors.replay import replay, replay_superseded
from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.errors import LogRewoundError
from incarnate.domain.rewinds import Rewind
from incarnate.storage.port import ActivationInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Store

__all__ = ["Frozen", "freeze"]


class Frozen(msgspec.Struct, frozen=True):
    """What a store held of a session at the moment of `info.head`; its events are read when they are asked for."""

    store: Store
    info: ActivationInfo
    checkpoints: tuple[Checkpoint, ...]
    latest: Checkpoint | None
    rewinds: tuple[Rewind, ...]

    def events(self) -> Iterator[AppendedEvent]:
        """The events below the head of that moment.

        Raises:
            LogRewoundError: the log was rewound since, even where that cut nothing of what was given.
        """
        key, head = self.info.key, self.info.head
        given = 0
        for appended in replay(self.store, key, 0, head.next_offset):
            given += 1
            yield appended
        if self.store.head(key).generation != head.generation:
            raise LogRewoundError(key=key, cut=given, given=given)

    def superseded(self, rewind: Rewind) -> Iterator[AppendedEvent]:
        """The events that a rewind superseded; none where they were swept."""
        return replay_superseded(self.store, self.info.key, rewind)


def freeze(store: Store, key: ActivationKey) -> Frozen | None:
    """The session as it stands now; None: the store holds none of that key."""
    info = next((info for info in store.activations() if info.key == key), None)
    if info is None:
        return None
    with store.snapshot(key) as log:
        found = [log.checkpoint(checkpoint_id) for checkpoint_id in log.checkpoint_ids()]
        checkpoints = tuple([checkpoint for checkpoint in found if checkpoint is not None])
        at = msgspec.structs.replace(info, head=log.head)
        return Frozen(store, at, checkpoints, log.latest_checkpoint(), tuple(log.rewinds()))
