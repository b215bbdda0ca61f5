"""The PostgreSQL store beside `psycopg` alone, on a server of their own."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import msgspec
import psycopg

from benchmarks.bare import encoded
from benchmarks.group import in_threads
from benchmarks.measuring import Line, Settings, compare
from benchmarks.postgres_server import WHY_NOT, server
from benchmarks.reading import checked
from benchmarks.workload import KEY, mixed_events
from incarnate import ActivationKey, Session, SessionEvent, SessionSystem

__all__ = ["INSERT", "TABLE", "Connection", "emit", "replay"]

_SESSIONS = 16
_SIZE = 50
TABLE = b"""
CREATE TABLE bare (
    activation bigint NOT NULL, "offset" bigint NOT NULL, incarnation bigint NOT NULL, at_ms bigint NOT NULL,
    payload bytea NOT NULL, PRIMARY KEY (activation, "offset")
)
"""
INSERT = b"INSERT INTO bare VALUES (%s, %s, %s, %s, %s)"
_SELECT = b"""
SELECT "offset", incarnation, at_ms, payload FROM incarnate.event
WHERE activation = %s AND "offset" >= %s AND "offset" < %s ORDER BY "offset"
"""

_decoder = msgspec.json.Decoder(list[SessionEvent])

Connection = psycopg.Connection[tuple[object, ...]]
Row = tuple[int, int, int, int, bytes]


def emit(settings: Settings) -> Iterator[Line]:
    """Sixteen sessions in threads, a commit an event; beside as many connections that insert the same rows."""
    name, least = f"{_SESSIONS} sessions, PostgreSQL", 0.6
    with server() as url:
        if url is None:
            yield Line(name, "", WHY_NOT, None, least)
            return
        stream, bare_stream = mixed_events(), mixed_events()
        connections = [psycopg.connect(url, autocommit=True) for _ in range(_SESSIONS)]
        connections[0].execute(TABLE)
        with SessionSystem.open(f"{url}&schema=incarnate") as system:
            sessions = [system.lease(ActivationKey("benchmark", f"agent-{n}"), 1) for n in range(_SESSIONS)]
            offset = 0

            def ours() -> float:
                return in_threads([partial(_emit, one, list(islice(stream, _SIZE))) for one in sessions])

            def rival() -> float:
                nonlocal offset
                works: list[Callable[[], None]] = []
                for number, db in enumerate(connections):
                    payloads = encoded(list(islice(bare_stream, _SIZE)))
                    now_ms = time.time_ns() // 1_000_000
                    rows = [(number, at, 1, now_ms, payload) for at, payload in enumerate(payloads, offset)]
                    works.append(partial(_insert, db, rows))
                offset += _SIZE
                return in_threads(works)

            found = compare(ours, rival, settings.rounds(32))
        for db in connections:
            db.close()
    count = _SESSIONS * _SIZE
    yield Line(name, f"{count / found.ours:,.0f}/s", f"psycopg {count / found.rival:,.0f}/s", found.ratio, least)


def _emit(session: Session, events: Sequence[SessionEvent]) -> None:
    for event in events:
        session.emit(event)


def _insert(db: Connection, rows: Sequence[Row]) -> None:
    for row in rows:
        db.execute(INSERT, row, prepare=True, binary=True)


def replay(settings: Settings) -> Iterator[Line]:
    """Events as typed structs, beside the same rows selected by 1,000 and each batch decoded as one JSON array."""
    count = 20_000 if settings.quick else 100_000
    name, least = f"replay of {count:,}, PostgreSQL", 0.5
    with server() as url:
        if url is None:
            yield Line(name, "", WHY_NOT, None, least)
            return
        stream = mixed_events()
        with SessionSystem.open(f"{url}&schema=incarnate") as system, psycopg.connect(url, autocommit=True) as db:
            session = system.lease(KEY, 1)
            for _ in range(count // 1000):
                session.emit_many(islice(stream, 1000))

            def ours() -> float:
                start = time.perf_counter()
                return checked(start, sum(1 for _ in system.replay(KEY, 0, count)), count)

            def rival() -> float:
                start = time.perf_counter()
                return checked(start, sum(1 for batch in _read(db, count) for _ in batch), count)

            found = compare(ours, rival, settings.rounds(24))
    by_hand = f"psycopg + msgspec {count / found.rival:,.0f}/s"
    yield Line(name, f"{count / found.ours:,.0f}/s", by_hand, found.ratio, least)


def _read(db: Connection, count: int) -> Iterator[list[SessionEvent]]:
    for start in range(0, count, 1000):
        rows = db.execute(_SELECT, (1, start, start + 1000), prepare=True, binary=True).fetchall()
        yield _decoder.decode(b"[" + b",".join([bytes(row[3]) for row in rows]) + b"]")  # type: ignore[call-overload]
