"""The drawings of timelines, kept for as long as what they were made from is the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from incarnate.studio.masking import mask_text
from incarnate.studio.timeline import SessionTimeline
from incarnate.studio.timeline_svg import draw_timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.rewinds import Rewind
    from incarnate.studio.archive import Archive
    from incarnate.studio.places import Place

__all__ = ["Drawings"]

_MOST_CHARACTERS = 16 * 1024 * 1024
"""Of all drawings that are kept. One of 100,000 events takes half a second of a processor."""


class _Origin(NamedTuple):
    """What a drawing is made from. Checkpoints, claims and rewinds come without an event."""

    system: SessionSystem
    place: Place
    fence: int | None
    checkpoints: Sequence[str]
    rewinds: Sequence[Rewind]


class _Kept(NamedTuple):
    origin: _Origin
    svg: Future[str]


class Drawings:
    """Draws the timelines of sessions; several who ask for one at once wait for the same drawing."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._mask = mask_text if archive.mask else str
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[ActivationKey, int], _Kept] = OrderedDict()

    def of(self, key: ActivationKey, width: int) -> tuple[Place, str]:
        """The timeline of `key`, so many pixels wide, and the place in the log that it shows at least.

        Raises:
            Problem: the store holds no such activation.
            ViewFailedError, StoreBusyError, LogCorruptionError: from reading it.
        """
        origin = self._origin(key)
        with self._lock:
            kept = self._kept.get((key, width))
            is_new = kept is None or kept.origin != origin
            if kept is None or is_new:
                kept = self._kept[key, width] = _Kept(origin, Future())
            self._kept.move_to_end((key, width))
        if is_new:
            self._draw(key, width, kept)
        return kept.origin.place, kept.svg.result()

    def _origin(self, key: ActivationKey) -> _Origin:
        with self._archive.moment(key) as log:
            place = self._archive.place(log)
            return _Origin(self._archive.system, place, log.head.fence, log.checkpoint_ids(), log.rewinds())

    def _draw(self, key: ActivationKey, width: int, kept: _Kept) -> None:
        try:
            kept.svg.set_result(self._drawn(key, width, kept.origin))
        except BaseException as error:
            with self._lock:
                if self._kept.get((key, width)) is kept:
                    del self._kept[key, width]
            kept.svg.set_exception(error)  # who waits for it is told too
            raise
        else:
            self._make_room()

    def _drawn(self, key: ActivationKey, width: int, origin: _Origin) -> str:
        # Later than its origin, it may show more: then the origin is another one when it is asked for again.
        timeline = self._archive.sum(key, SessionTimeline(self._mask))
        return draw_timeline(
            timeline,
            width=width,
            checkpoints=self._checkpoints(key, origin.checkpoints),
            rewinds=origin.rewinds,
            fence=origin.fence,
            mask=self._mask,
        )

    def _checkpoints(self, key: ActivationKey, ids: Sequence[str]) -> list[Checkpoint]:
        with self._archive.moment(key) as log:
            return [found for found in map(log.checkpoint, ids) if found is not None]

    def _make_room(self) -> None:
        with self._lock:
            done = [(name, len(one.svg.result())) for name, one in self._kept.items() if one.svg.done()]
            size = sum(length for _, length in done)
            for name, length in done[:-1]:  # the last one stays, however large
                if size <= _MOST_CHARACTERS:
                    break
                del self._kept[name]
                size -= length
