# ruff: noqa: D102 - `StoredLog` says what each does
"""The sequential model: what a log would be if commands came one after the other, kept in the plainest way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.domain.codec import StoredEvent
from incarnate.domain.decisions import StoredLog, evolve
from incarnate.domain.events import AppendedEvent
from incarnate.domain.heads import EMPTY_HEAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.decisions import Change
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey

__all__ = ["ModelLog"]


class _Row(NamedTuple):
    """An event and the bytes that a store would keep of it."""

    appended: AppendedEvent
    payload: bytes


class ModelLog(StoredLog):
    """One activation between two commands. Never changed: `after` gives the next one."""

    __slots__ = ("_checkpoints", "_cuts", "_head", "_key", "_rows")

    def __init__(
        self,
        key: ActivationKey,
        head: Head = EMPTY_HEAD,
        rows: tuple[_Row, ...] = (),
        checkpoints: tuple[Checkpoint, ...] = (),
        cuts: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self._key = key
        self._head = head
        self._rows = rows
        self._checkpoints = checkpoints  # the one that was put first is first
        self._cuts = cuts

    @property
    def key(self) -> ActivationKey:
        return self._key

    @property
    def head(self) -> Head:
        return self._head

    def events(self, start: int, stop: int) -> Sequence[StoredEvent]:
        return [
            StoredEvent(row.appended.offset, row.appended.incarnation, 0, row.payload) for row in self._rows[start:stop]
        ]

    def appended(self, start: int, stop: int) -> Sequence[AppendedEvent]:
        return [row.appended for row in self._rows[start:stop]]

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        return next((kept for kept in self._checkpoints if kept.id == checkpoint_id), None)

    def lowest_cut(self, generation: int) -> int | None:
        return min((cut for made, cut in self._cuts if made > generation), default=None)

    def latest_checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the highest offset, then the latest insert (I5)."""
        return max(reversed(self._checkpoints), key=lambda kept: kept.offset, default=None)

    def checkpoints(self) -> list[tuple[str, int]]:
        """The id and offset of each."""
        return [(kept.id, kept.offset) for kept in self._checkpoints]

    def after(self, change: Change) -> ModelLog:
        """The log after `change`."""
        head = evolve(self._head, change)
        rows, checkpoints, cuts = self._rows, self._checkpoints, self._cuts
        if change.cut is not None:
            rows = rows[: change.cut]
            checkpoints = tuple(kept for kept in checkpoints if kept.offset <= change.cut)
            cuts = (*cuts, (head.generation, change.cut))
        rows += tuple(
            _Row(AppendedEvent(offset, change.incarnation, change.at_ms, encoded.event), encoded.payload)
            for offset, encoded in enumerate(change.events, change.offset)
        )
        if change.checkpoint is not None and self.checkpoint(change.checkpoint.checkpoint.id) is None:
            checkpoints = (*checkpoints, change.checkpoint.checkpoint)
        return ModelLog(self._key, head, rows, checkpoints, cuts)

    def state(self) -> tuple[object, ...]:
        """Equal for logs that hold the same."""
        rows = tuple((row.appended.incarnation, row.payload) for row in self._rows)
        return self._head, rows, tuple(self.checkpoints()), self._cuts
