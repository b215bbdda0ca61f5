"""The sessions of a store as rows: what each is, its last event and the tokens that it spent."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.domain.errors import CorruptError, IncarnateError
from incarnate.domain.projections.usage import UsageTotals
from incarnate.studio.problems import Problem
from incarnate.studio.rows import Signs, last_fields, row_fields, signs_of, state_of, token_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import ActivationInfo
    from incarnate.studio.archive import Archive

__all__ = ["STATES", "Listing", "Query"]

STATES = ("live", "idle", "fenced", "retired")

_FIGURES = 16
_MOST_KNOWN = 10_000
_RECENT_MS = 600_000
_OLD_HOLDS_SECONDS = 5.0
"""Whether a session was saved is looked up (20 us each) at every write to the store, of a quiet one this seldom."""

_PATIENCE_SECONDS = 0.25
"""How long a listing waits for tokens that were not counted yet: it is given without them, and they follow."""


class Query(NamedTuple):
    """Which rows are asked for; see `Listing.page`."""

    text: str = ""
    state: str | None = None
    after: str | None = None
    limit: int = 50


class _Saved(NamedTuple):
    version: Any
    fence: int | None
    at: float
    checkpoint: str | None


class Listing:
    """What threads of the server list. `supervised` tells the keys that live supervisors of this store have."""

    def __init__(self, archive: Archive, supervised: Callable[[], Collection[str]] = tuple) -> None:
        self._archive = archive
        self._supervised = supervised
        self._lock = threading.Lock()
        self._version: Any = None
        self._infos: list[ActivationInfo] = []
        self._last: OrderedDict[ActivationKey, tuple[Any, dict[str, Any] | None]] = OrderedDict()
        self._signs: dict[ActivationKey, tuple[Any, Signs | None]] = {}
        self._saved: OrderedDict[ActivationKey, _Saved] = OrderedDict()
        self._tokens: OrderedDict[ActivationKey, tuple[Any, dict[str, int]]] = OrderedDict()
        self._counter = ThreadPoolExecutor(1, "incarnate-tokens")
        self._counting: dict[ActivationKey, Future[None]] = {}

    def page(self, query: Query) -> dict[str, Any]:
        """The rows whose key holds `text` and whose state is `state`, the last updated first, after the cursor."""
        text, live = query.text.casefold(), self._supervised()
        found = [info for info in self._all() if text in str(info.key).casefold()]
        if query.state is not None:
            found = [info for info in found if self._state(info, live) == query.state]
        begin = bisect_right(found, _cursor_order(query.after), key=_order) if query.after is not None else 0
        some = found[begin : begin + query.limit]
        self._count(some)
        more = begin + len(some) < len(found)
        return {
            "sessions": [self.row(info, live) for info in some],
            "next": _cursor(some[-1]) if more else None,
            "total": len(found),
        }

    def find(self, key: ActivationKey) -> dict[str, Any]:
        """The row of one activation.

        Raises:
            Problem: the store holds no such activation.
        """
        self._archive.head(key)
        info = next((info for info in self._all() if info.key == key), None)
        if info is None:
            raise self._archive.unknown(key)
        self._count([info])
        return self.row(info, self._supervised())

    def row(self, info: ActivationInfo, supervised: Collection[str] = ()) -> dict[str, Any]:
        """What is told of one."""
        counted = self._tokens.get(info.key)
        tokens = counted[1] if counted is not None and counted[0] == info.head.expected else None
        state = self._state(info, supervised)
        return row_fields(info, state, self._last_of(info), tokens, self._checkpoint_of(info))

    def close(self) -> None:
        """Count no more."""
        self._counter.shutdown(wait=False, cancel_futures=True)

    def _all(self) -> Sequence[ActivationInfo]:
        """Every activation, the last updated first."""
        with self._lock:
            version = self._archive.version()
            if version != self._version:
                self._infos = sorted(self._archive.store.activations(), key=_order)
                self._version = version
                self._forget()
            return self._infos

    def _forget(self) -> None:
        """Let go of the signs of sessions that were swept, once they are as many as those that are there."""
        if len(self._signs) > 2 * len(self._infos):
            known = [(info.key, self._signs.get(info.key)) for info in self._infos]
            self._signs = {key: found for key, found in known if found is not None}

    def _state(self, info: ActivationInfo, supervised: Collection[str]) -> str:
        signs, is_supervised = self._signs_of(info), str(info.key) in supervised
        return state_of(info.head, signs, quiet_ms=_quiet_ms(info), is_supervised=is_supervised)

    def _checkpoint_of(self, info: ActivationInfo) -> str | None:
        """The id of its latest checkpoint, which comes without an event."""
        known, version, now = self._saved.get(info.key), self._version, time.monotonic()
        if known is not None and known.fence == info.head.fence:
            holds = _quiet_ms(info) > _RECENT_MS and now - known.at < _OLD_HOLDS_SECONDS
            if holds or known.version == version:
                return known.checkpoint
        latest = None
        with self._archive.store.snapshot(info.key) as log, suppress(CorruptError):
            latest = log.latest_checkpoint()
        found = None if latest is None else latest.id
        _put(self._saved, info.key, _Saved(version, info.head.fence, now, found))
        return found

    def _last_of(self, info: ActivationInfo) -> dict[str, Any] | None:
        """The last event in a few words, kept for those that were looked at lately."""
        known = self._last.get(info.key)
        if known is None or known[0] != info.head.expected:
            last = self._last_event(info)
            known = info.head.expected, None if last is None else last_fields(last, mask=self._archive.mask)
            _put(self._last, info.key, known)
        return known[1]

    def _signs_of(self, info: ActivationInfo) -> Signs | None:
        """Kept for every session, some bytes each: who asks for a state asks for that of all."""
        known = self._signs.get(info.key)
        if known is None or known[0] != info.head.expected:
            known = self._signs[info.key] = info.head.expected, signs_of(self._last_event(info))
        return known[1]

    def _last_event(self, info: ActivationInfo) -> AppendedEvent | None:
        with self._archive.store.snapshot(info.key) as log:
            end = log.head.next_offset
            try:
                events = log.page(end - 1, end, 1) if end else ()
            except CorruptError:
                return None  # whoever opens it is told; the others are listed as ever
        return events[0] if events else None

    def _count(self, infos: Sequence[ActivationInfo]) -> None:
        """Have their tokens counted, and wait a little for it."""
        coming: list[Future[None]] = []
        with self._lock:
            for info in infos:
                known, under_way = self._tokens.get(info.key), self._counting.get(info.key)
                if known is not None and known[0] == info.head.expected:
                    continue
                if under_way is None or under_way.done():
                    under_way = self._counting[info.key] = self._counter.submit(self._count_one, info)
                coming.append(under_way)
        wait(coming, _PATIENCE_SECONDS)

    def _count_one(self, info: ActivationInfo) -> None:
        try:
            total = self._archive.sum(info.key, UsageTotals()).total
        except IncarnateError:
            return  # it is damaged, or the store is away: the row says nothing of tokens
        finally:
            self._counting.pop(info.key, None)
        _put(self._tokens, info.key, (info.head.expected, token_fields(total)))


def _quiet_ms(info: ActivationInfo) -> float:
    return time.time() * 1000 - info.updated_ms


def _put(known: OrderedDict[ActivationKey, Any], key: ActivationKey, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _MOST_KNOWN:
        known.popitem(last=False)


def _order(info: ActivationInfo) -> tuple[int, str]:
    return -info.updated_ms, str(info.key)


def _cursor(info: ActivationInfo) -> str:
    return f"{info.updated_ms}.{info.key}"


def _cursor_order(cursor: str) -> tuple[int, str]:
    updated, _, key = cursor.partition(".")
    if not (updated.isascii() and updated.isdigit() and len(updated) <= _FIGURES):
        raise Problem(400, "malformed-parameter", "after must be the `next` of the page before")
    return -int(updated), key
