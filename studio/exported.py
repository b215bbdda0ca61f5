"""A session in one file that anybody can open: the studio's page with the session inside, or its timeline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from incarnate.actors.fields import rewind_fields, stats_fields
from incarnate.domain.codec import encode_appended, encode_json
from incarnate.domain.errors import LogCorruptionError, LogRewoundError, PageTooLargeError
from incarnate.domain.events import timestamp
from incarnate.domain.projections.analysis import ReplayAnalysis
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.usage import UsageTotals
from incarnate.studio.bundle import the_page
from incarnate.studio.frozen import freeze
from incarnate.studio.incarnations import Incarnations
from incarnate.studio.items import MOST_ITEM_BYTES, shaped
from incarnate.studio.limits import LEAST_WIDTH, MOST_BYTES, WIDTH
from incarnate.studio.masking import mask_json, mask_row, mask_text
from incarnate.studio.rows import detail_fields, last_fields, row_fields, signs_of, state_of, token_fields
from incarnate.studio.timeline import SessionTimeline
from incarnate.studio.timeline_svg import draw_timeline
from incarnate.studio.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.rewinds import Rewind
    from incarnate.storage.port import Store
    from incarnate.studio.frozen import Frozen
    from incarnate.studio.items import Item

__all__ = ["Exported", "export_html", "export_svg"]

T = TypeVar("T")

_CUTS = (MOST_ITEM_BYTES, 32 * 1024, 4 * 1024)
"""How large an item may be: the next one is tried where a page would be too large."""

_TRIES = 5
_NARROW = LEAST_WIDTH  # a phone, less its edges


class Exported(NamedTuple):
    """A file, piece by piece, and what it leaves out, counted by kind."""

    pieces: Sequence[bytes]
    left_out: Counter[str]

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(map(len, self.pieces))


def export_html(
    store: Store, key: ActivationKey, now_ms: int, *, mask: bool = True, most_bytes: int = MOST_BYTES
) -> Exported | None:
    """One page with the session as it stands, of about `most_bytes` at most; None: the store holds no such session.

    It asks nothing of anybody when it is opened. With `mask` the secrets in it are masked by their patterns. Where it
    would be too large its long texts are cut, then what is not the log itself is left out, and both are counted.

    Raises:
        PageTooLargeError: it would be too large even so.
        LogRewoundError: the log was rewound again and again while it was read.
        StoreBusyError, UnavailableError, LogCorruptionError: it could not be read.
    """
    return _undisturbed(store, key, lambda frozen: _page(frozen, now_ms, mask=mask, most_bytes=most_bytes))


def export_svg(store: Store, key: ActivationKey, *, width: int = WIDTH, mask: bool = True) -> str | None:
    """The timeline of a session as a picture of its own; None: the store holds no such session.

    Raises:
        LogRewoundError, StoreBusyError, UnavailableError, LogCorruptionError: as `export_html`.
    """
    return _undisturbed(store, key, lambda frozen: _picture(frozen, width, mask=mask))


def _undisturbed(store: Store, key: ActivationKey, read: Callable[[Frozen], T]) -> T | None:
    """What `read` makes of the session at one moment, begun anew where a rewind came between."""
    for attempt in range(_TRIES):
        frozen = freeze(store, key)
        if frozen is None:
            return None
        try:
            return read(frozen)
        except LogRewoundError:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


def _timeline(*, mask: bool) -> SessionTimeline:
    return SessionTimeline(mask_text) if mask else SessionTimeline()


def _picture(frozen: Frozen, width: int, *, mask: bool) -> str:
    timeline = _timeline(mask=mask)
    for appended in frozen.events():
        timeline.apply(appended)
    return draw_timeline(
        timeline.value,
        width=width,
        checkpoints=frozen.checkpoints,
        rewinds=frozen.rewinds,
        fence=frozen.info.head.fence,
        heading=str(frozen.info.key),
        mask=mask_text if mask else str,
    )


def _page(frozen: Frozen, now_ms: int, *, mask: bool, most_bytes: int) -> Exported:
    size = 0
    for most in _CUTS:
        folds = _Folds(mask=mask)
        shape = _Shape(mask=mask, most=most)
        size = 0
        events: list[Item] = []
        for appended in frozen.events():
            folds.apply(appended)
            events.append(shape.event(appended))
            size += len(events[-1].data)
            if size > most_bytes:
                break
        else:
            return _Writer(frozen, folds, shape, now_ms, most_bytes - size).page(events)
    raise PageTooLargeError(key=frozen.info.key, size=size, most=most_bytes)


class _Folds:
    """What the events amount to, each view of the same moment."""

    def __init__(self, *, mask: bool) -> None:
        self.analysis = ReplayAnalysis()
        self.usage = UsageTotals()
        self.model = ModelHistory()
        self.frames = VIEWS["frames"].projection()
        self.incarnations = Incarnations()
        self.timeline = _timeline(mask=mask)
        self.last: AppendedEvent | None = None

    def apply(self, appended: AppendedEvent) -> None:
        for projection in (self.analysis, self.usage, self.model, self.frames, self.incarnations, self.timeline):
            projection.apply(appended)
        self.last = appended


class _Shape(NamedTuple):
    """How items are written: as the server sends them, with another bound where the page is large."""

    mask: bool
    most: int

    def event(self, appended: AppendedEvent) -> Item:
        return shaped(appended.offset, encode_appended(appended), mask=self.mask, most=self.most)

    def item(self, view: str, item: Any) -> Item:
        return shaped(item.offset, VIEWS[view].encode(item), mask=self.mask, most=self.most)

    def fields(self, fields: dict[str, Any]) -> bytes:
        return encode_json(mask_row(fields) if self.mask else fields)

    def diagnostics(self, told: Any) -> bytes:
        data = encode_json(told)
        return mask_json(data) if self.mask else data


class _Writer:
    """Writes the data of one page, as long as there is room: `room` is what the events left."""

    def __init__(self, frozen: Frozen, folds: _Folds, shape: _Shape, now_ms: int, room: int) -> None:
        self._frozen = frozen
        self._folds = folds
        self._shape = shape
        self._now_ms = now_ms
        self._room = room
        self._left_out: Counter[str] = Counter()

    def page(self, events: Sequence[Item]) -> Exported:
        info, folds, shape = self._frozen.info, self._folds, self._shape
        stats = stats_fields(info.key, info.head, folds.analysis.value, folds.usage.value)
        pieces = [
            *(b'{"exportedAt":', encode_json(timestamp(self._now_ms))),
            *(b',"masked":', encode_json(shape.mask)),
            *(b',"session":', shape.fields(self._session())),
            *(b',"stats":', shape.fields(stats)),
            *(b',"rewinds":', encode_json([rewind_fields(rewind) for rewind in self._frozen.rewinds])),
            *(b',"timelineSvg":', self._drawing(WIDTH), b',"timelineSvgNarrow":', self._drawing(_NARROW)),
            *(b',"events":', *_array(events)),
            *(b',"cut":', self._cut(events)),
            *self._model(),
            *self._superseded(),
            *self._frames(),
            b"}",
        ]
        return Exported(list(the_page().around(f"{info.key} · incarnate", pieces)), self._left_out)

    def _session(self) -> dict[str, Any]:
        info, folds, last = self._frozen.info, self._folds, self._folds.last
        state = state_of(info.head, signs_of(last), quiet_ms=self._now_ms - info.updated_ms)
        told = None if last is None else last_fields(last, mask=self._shape.mask)
        latest = self._frozen.latest
        details = detail_fields(self._frozen.checkpoints, latest, folds.incarnations.value)
        saved = None if latest is None else latest.id
        return row_fields(info, state, told, token_fields(folds.usage.value.total), saved) | details

    def _drawing(self, width: int) -> bytes:
        frozen = self._frozen
        return encode_json(
            draw_timeline(
                self._folds.timeline.value,
                width=width,
                checkpoints=frozen.checkpoints,
                rewinds=frozen.rewinds,
                fence=frozen.info.head.fence,
                mask=mask_text if self._shape.mask else str,
            )
        )

    def _model(self) -> list[bytes]:
        model = self._folds.model
        return self._view("model", "model history", model.value, self._shape.diagnostics(model.diagnostics))

    def _frames(self) -> list[bytes]:
        return self._view("frames", "frames", self._folds.frames.value)

    def _view(self, view: str, called: str, value: Iterable[Any], diagnostics: bytes = b"null") -> list[bytes]:
        items = self._fitting(self._shape.item(view, item) for item in value)
        if items is None:
            self._left_out[called] += 1
            return []
        offsets = encode_json([item.offset for item in items])
        told = (b',"offsets":', offsets, b',"diagnostics":', diagnostics, b',"cut":', self._cut(items), b"}")
        return [b',"%b":{"items":' % view.encode(), *_array(items), *told]

    def _superseded(self) -> list[bytes]:
        """The tails that rewinds cut off, the newest ones as far as there is room."""
        tails: list[bytes] = []
        cuts: list[bytes] = []
        for rewind in reversed(self._frozen.rewinds):
            try:
                items = None if rewind.swept else self._fitting(self._tail(rewind))
            except LogCorruptionError:  # the log itself is whole, and is what somebody wants to send
                self._left_out["damaged superseded tail"] += 1
                continue
            if items is None:
                self._left_out["superseded tail"] += 1
            else:
                opening = b"," if tails else b',"superseded":{'
                tails += [opening, b'"%d":' % rewind.generation, *_array(items)]
                cuts.append(b'"%d":%b' % (rewind.generation, self._cut(items)))
        return [*tails, b'},"supersededCut":{', b",".join(cuts), b"}"] if tails else []

    def _tail(self, rewind: Rewind) -> Iterator[Item]:
        return map(self._shape.event, self._frozen.superseded(rewind))

    def _fitting(self, items: Iterable[Item]) -> list[Item] | None:
        """The items, if there is room for all of them."""
        found: list[Item] = []
        size = 0
        for item in items:
            size += len(item.data)
            if size > self._room:
                return None
            found.append(item)
        self._room -= size
        return found

    def _cut(self, items: Sequence[Item]) -> bytes:
        cut = {str(index): item.cut for index, item in enumerate(items) if item.cut is not None}
        if cut:
            self._left_out["long text"] += len(cut)
        return encode_json(cut)


def _array(items: Sequence[Item]) -> Iterator[bytes]:
    yield b"["
    for index, item in enumerate(items):
        yield b",\n" if index else b""
        yield item.data
    yield b"]"
