"""What the length of a log adds to a rewind: nothing, on any back end."""

import time
from collections.abc import Iterator

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
_A_ROUND = 20


def rewind(settings: Settings) -> Iterator[Line]:
    """Ten events superseded by ten others in one commit, on a long log and on a short one of the same store."""
    long = 100_000 if settings.quick else 1_000_000
    yield _on("memory", "memory://", long, settings)
    yield _on("SQLite", url_of(settings.folder / "rewinds.db"), long, settings)
    yield _on("JSONL", jsonl_url(settings.folder / "rewinds"), long, settings)
    long = min(long, 100_000)  # a million takes minutes to insert
    with server() as url:
        if url is None:
            yield Line(f"rewind on {long:,}, PostgreSQL", "", WHY_NOT, None, most=2.0)
        else:
            yield _on("PostgreSQL", url, long, settings)


def _on(name: str, url: str, count: int, settings: Settings) -> Line:
    with open_store(url) as store:
        long, short = (_Rewound(store, f"log-{length}", length) for length in (count, _SHORT))
        found = compare(long.seconds, short.seconds, settings.rounds(16))
    ours, rival = (f"{seconds / _A_ROUND * 1e6:,.0f} us" for seconds in (found.ours, found.rival))
    return Line(f"rewind on {count:,}, {name}", ours, f"on {_SHORT:,} {rival}", 1 / found.ratio, most=2.0)


class _Rewound:
    """A log of a given length that keeps it."""

    def __init__(self, store: Store, name: str, count: int) -> None:
        self._store = store
        self._key = ActivationKey("benchmark", name)
        self._do(Lease(1))
        for start in range(0, count, _BATCH):
            stop = min(start + _BATCH, count)
            events = [UserMessage(id=f"event-{at}", parent_id=None, text="said") for at in range(start, stop)]
            self._do(AppendMany(1, start, tuple(events)))
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
