"""What an event costs on PostgreSQL: processor time of client and server, and room on the disk."""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import psycopg

from benchmarks.bare import encoded
from benchmarks.measuring import Line, Settings, compare
from benchmarks.postgres import INSERT, TABLE, Connection
from benchmarks.postgres_server import WHY_NOT, server
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionSystem

__all__ = ["costs"]

_SIZE = 1000
_NAMES = ("client's processor, PostgreSQL", "server's processor, PostgreSQL", "on disk, PostgreSQL")
_ROOM = b"SELECT pg_total_relation_size(%s::regclass)"


def costs(settings: Settings) -> Iterator[Line]:
    """One session, a commit an event; beside one connection that inserts the same rows."""
    if not Path("/proc/self/schedstat").exists():
        yield from (Line(name, "", "no /proc, which tells what processes used", None) for name in _NAMES)
        return
    with server() as url:
        if url is None:
            yield from (Line(name, "", WHY_NOT, None) for name in _NAMES)
            return
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(TABLE)
            with SessionSystem.open(f"{url}&schema=incarnate") as system:
                yield from _costs(system, db, settings)


def _costs(system: SessionSystem, db: Connection, settings: Settings) -> Iterator[Line]:
    session, meter = system.lease(KEY, 1), _Meter(db)
    stream, bare_stream = mixed_events(), mixed_events()
    payload_bytes = offset = 0

    def ours() -> float:
        events = list(islice(stream, _SIZE))
        return meter.read("ours", lambda: [session.emit(event) for event in events])

    def rival() -> float:
        nonlocal offset, payload_bytes
        payloads = encoded(list(islice(bare_stream, _SIZE)))
        now_ms = time.time_ns() // 1_000_000
        rows = [(0, at, 1, now_ms, payload) for at, payload in enumerate(payloads, offset)]
        offset, payload_bytes = offset + _SIZE, payload_bytes + sum(map(len, payloads))
        return meter.read("psycopg", lambda: [db.execute(INSERT, row, prepare=True, binary=True) for row in rows])

    compare(ours, rival, settings.rounds(24))
    yield from meter.lines()
    mine, theirs = (_room(db, table) / offset for table in ("incarnate.event", "bare"))
    what = f"psycopg {theirs:.0f} B, payload {payload_bytes / offset:.0f} B"
    yield Line(_NAMES[2], f"{mine:.0f} B/event", what, theirs / mine)


def _room(db: Connection, table: str) -> int:
    [[size]] = db.execute(_ROOM, (table,)).fetchall()
    return int(str(size))


class _Meter:
    """Processor seconds of this process and of the server's, of each round."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._used: dict[str, list[tuple[float, float]]] = {"ours": [], "psycopg": []}

    def read(self, who: str, work: Callable[[], object]) -> float:
        """Do `work`; the seconds of both processes."""
        client, of_server = time.process_time(), self._of_server()
        work()
        used = time.process_time() - client, self._of_server() - of_server
        self._used[who].append(used)
        return sum(used)

    def _of_server(self) -> float:
        """Of its writer of the write-ahead log and the like too: an event's commit is their work as well."""
        pids = self._db.execute(b"SELECT pid FROM pg_stat_activity").fetchall()
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) for (pid,) in pids) / 1e9

    def lines(self) -> Iterator[Line]:
        for place, name in enumerate(_NAMES[:2]):
            # The first of each was to warm up.
            ours, rival = ([round_[place] for round_ in self._used[who][1:]] for who in ("ours", "psycopg"))
            mine, theirs = (f"{statistics.median(used) / _SIZE * 1e6:.0f} us/event" for used in (ours, rival))
            ratio = statistics.median([b / a for a, b in zip(ours, rival, strict=True)])
            yield Line(name, mine, f"psycopg {theirs}", ratio)
