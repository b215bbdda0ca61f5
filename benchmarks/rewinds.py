"""What the length of a log adds to a rewind: nothing, on any back end."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import psycopg

from benchmarks.bare import url_of
from benchmarks.journal import jsonl_url
from benchmarks.measuring import Line, Settings, compare
from benchmarks.postgres_server import WHY_NOT, server
from incarnate import ActivationKey, UserMessage
from incarnate.domain.commands import AppendMany, Lease
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store

__all__ = ["rewind"]

_SHORT = 1000
_TEN = tuple(UserMessage(id=f"again-{number}", parent_id=None, text="said again") for number in range(10))
_BATCH = 10_000
_GENERATED = b"""
INSERT INTO incarnate.event
SELECT id, at, 1, 0, convert_to('{"type":"user","id":"event-' || at || '","parentId":null,"text":"said"}', 'UTF8')
FROM incarnate.activation, generate_series(%s::bigint, %s::bigint) AS at WHERE element_id = %s
"""

Fill = Callable[[str, int, int], None]
_A_ROUND = 20


def rewind(settings: Settings) -> Iterator[Line]:
    """Ten events superseded by ten others in one commit, on a long log and on a short one of the same store."""
    long = 100_000 if settings.quick else 1_000_000
    yield _on("memory", "memory://", long, settings)
    yield _on("SQLite", url_of(settings.folder / "rewinds.db"), long, settings)
    yield _on("JSONL", jsonl_url(settings.folder / "rewinds"), long, settings)
    with server() as url:
        if url is None:
            yield Line(f"rewind on {long:,}, PostgreSQL", "", WHY_NOT, None, most=2.0)
        else:
            yield _on("PostgreSQL", f"{url}&schema=incarnate", long, settings, partial(_fill, url))


def _fill(url: str, name: str, start: int, stop: int) -> None:
    """Put events where the store would: a million by its own way take minutes, and this ten seconds."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(_GENERATED, (start, stop - 1, name.encode()))
        db.execute(b"VACUUM ANALYZE incarnate.event")


def _on(name: str, url: str, count: int, settings: Settings, fill: Fill | None = None) -> Line:
    with open_store(url) as store:
        long, short = (_Rewound(store, f"log-{length}", length, fill) for length in (count, _SHORT))
        found = compare(long.seconds, short.seconds, settings.rounds(16))
    ours, rival = (f"{seconds / _A_ROUND * 1e6:,.0f} us" for seconds in (found.ours, found.rival))
    return Line(f"rewind on {count:,}, {name}", ours, f"on {_SHORT:,} {rival}", 1 / found.ratio, most=2.0)


class _Rewound:
    """A log of a given length that keeps it."""

    def __init__(self, store: Store, name: str, count: int, fill: Fill | None) -> None:
        self._store = store
        self._key = ActivationKey("benchmark", name)
        self._do(Lease(1))
        by_store = count if fill is None else min(count, _BATCH)
        for start in range(0, by_store, _BATCH):
            stop = min(start + _BATCH, by_store)
            events = [UserMessage(id=f"event-{at}", parent_id=None, text="said") for at in range(start, stop)]
            self._do(AppendMany(1, start, tuple(events)))
        if fill is not None and by_store < count:
            fill(name, by_store, count)
        self._from = count - len(_TEN)

    def seconds(self) -> float:
        """What some rewinds of ten events take."""
        start = time.perf_counter()
        for _ in range(_A_ROUND):
            self._do(AppendMany(1, self._from, _TEN))
        return time.perf_counter() - start

    def _do(self, command: AppendMany | Lease) -> None:
        payload = encode_command(command)
        now_ms = time.time_ns() // 1_000_000

        def work_out(stored: StoredLog) -> Decision:
            return decide(stored, command, payload, now_ms)

        error = self._store.transact(self._key, work_out, now_ms).error
        if error is not None:
            raise error
