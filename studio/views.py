"""The views that the page can be given: what makes each, the JSON of its items, and the offsets that they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from incarnate.domain.codec import encode_json
from incarnate.domain.projections.base import Change, Reducer
from incarnate.domain.projections.frames import ClientFrames, Frame
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.studio import StudioTranscript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.projections.base import Projection
    from incarnate.domain.projections.model_messages import Message

__all__ = ["EVENTS", "VIEWS", "Placed", "Snapshot", "ViewKind"]

EVENTS = "events"
"""The log itself: it is read from the store page by page, and no view of it is kept."""


class Snapshot(msgspec.Struct, frozen=True):
    """A view's items, and the place in the log that they are of. `diagnostics` is what the projection tells beside."""

    generation: int
    next_offset: int
    items: Sequence[Any]
    diagnostics: Any = None


class Placed(Reducer):
    """Another projection with its place in its value, so that the two are always of one moment."""

    def __init__(self, inner: Projection[Sequence[Any]]) -> None:
        super().__init__()
        self._inner = inner

    @property
    def name(self) -> str:
        """What it computes."""
        return f"{super().name}[{self._inner.name}]"

    @property
    def value(self) -> Snapshot:
        """The items as they are now, in O(1)."""
        inner = self._inner
        return Snapshot(self.generation, self.next_offset, inner.value, getattr(inner, "diagnostics", None))

    def apply(self, appended: AppendedEvent) -> None:
        """Take the next event in.

        Raises:
            OffsetError: it is not the event at `next_offset`; nothing was changed.
        """
        self._inner.apply(appended)
        self.next_offset += 1

    def rewind(self, offset: int) -> None:
        """Forget the events from `offset` on.

        Raises:
            OffsetError: there is nothing at `offset` yet; nothing was changed.
        """
        self._inner.rewind(offset)
        self.next_offset = offset
        self.generation += 1

    def fresh(self) -> Self:
        """An empty one over an empty projection."""
        return type(self)(self._inner.fresh())


class _PlacedFrame(Frame, frozen=True, gc=False, kw_only=True):
    offset: int


class _PlacedFrames(ClientFrames):
    def _reduce(self, appended: AppendedEvent) -> Change:
        change = super()._reduce(appended)
        placed = [_PlacedFrame(event=frame.event, data=frame.data, offset=appended.offset) for frame in change.items]
        return Change(change.generation, change.keep, tuple(placed), change.replaced)


class ViewKind(NamedTuple):
    """A view that is kept: its projection, the JSON of an item, and whether events do no more than add items to it."""

    projection: Callable[[], Projection[Sequence[Any]]]
    encode: Callable[[Any], bytes]
    only_adds: bool


def _encode_frame(frame: _PlacedFrame) -> bytes:
    return encode_json(Frame(frame.event, frame.data))


def _encode_message(message: Message) -> bytes:
    return message.encode()


VIEWS: dict[str, ViewKind] = {
    "studio": ViewKind(StudioTranscript, encode_json, only_adds=True),
    "model": ViewKind(ModelHistory, _encode_message, only_adds=False),
    "frames": ViewKind(_PlacedFrames, _encode_frame, only_adds=True),
}
"""By their names in requests, `EVENTS` beside them."""
