"""What an acknowledged write costs: one event a commit, and 500 of them in one."""

import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Literal

from benchmarks.bare import BareLog, create, encoded, url_of
from benchmarks.eventsourcing_log import NAME, EventsourcingLog
from benchmarks.measuring import Comparison, Line, Settings, compare
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionSystem

__all__ = ["emit", "emit_many"]

_BATCH = 500
_BATCHES_A_ROUND = 8  # as many as fill the write-ahead log once, so that a round holds its share of folding it back


def emit(settings: Settings) -> Iterator[Line]:
    """One session, one event an `emit`, against a loop that commits the same rows."""
    rows_full, rows_normal = (100, 400) if settings.quick else (200, 1000)
    found = _emit(settings, "commit", "calling", settings.rounds(48), rows_full)
    yield _rates("emit, FULL", found, rows_full, "sqlite3 loop", least=0.85)
    found = _emit(settings, "process", "calling", settings.rounds(48), rows_normal)
    yield _rates("emit, durability=process", found, rows_normal, "sqlite3 loop, NORMAL", least=0.55)
    found = _emit(settings, "memory", "calling", settings.rounds(48), rows_normal)
    yield _rates("emit, memory", found, rows_normal, "sqlite3 loop, NORMAL", least=1.5)
    found = _session(settings, settings.rounds(16))
    yield _rates("session of 500, FULL, with opening", found, _BATCH, "sqlite3 loop")
    found = _emit(settings, "commit", "thread", settings.rounds(16), rows_full)
    yield _rates("emit, FULL, dispatcher=thread", found, rows_full, "sqlite3 loop")
    found = _emit(settings, "process", "thread", settings.rounds(16), rows_normal)
    yield _rates("emit, process, dispatcher=thread", found, rows_normal, "sqlite3 loop, NORMAL")


def _emit(
    settings: Settings,
    durability: Literal["commit", "process", "memory"],
    dispatcher: Literal["calling", "thread"],
    rounds: int,
    size: int,
) -> Comparison:
    name = f"emit-{durability}-{dispatcher}"
    stream, bare_stream = mixed_events(), mixed_events()
    bare = BareLog(settings.folder / f"{name}-bare.db", "FULL" if durability == "commit" else "NORMAL")
    url = "memory://" if durability == "memory" else url_of(settings.folder / f"{name}.db", durability)
    with SessionSystem.open(url, dispatcher=dispatcher) as system:
        session = system.lease(KEY, 1)

        def ours() -> float:
            events = list(islice(stream, size))
            start = time.perf_counter()
            for event in events:
                session.emit(event)
            return time.perf_counter() - start

        def rival() -> float:
            return bare.seconds_for_each(list(islice(bare_stream, size)))

        found = compare(ours, rival, rounds)
    bare.close()
    return found


def _session(settings: Settings, rounds: int) -> Comparison:
    """Open a file, commit 500 events one by one and close it: its write-ahead log grows all the while.

    A sync costs most while it does; `_emit` measures the long run, in which the same blocks are written again.
    """
    events = list(islice(mixed_events(), _BATCH))
    payloads = encoded(events)
    names = count()

    def ours() -> float:
        path = settings.folder / f"session-{next(names)}.db"
        SessionSystem.open(url_of(path)).close()
        start = time.perf_counter()
        with SessionSystem.open(url_of(path)) as system:
            session = system.lease(KEY, 1)
            for event in events:
                session.emit(event)
        return time.perf_counter() - start

    def rival() -> float:
        path = settings.folder / f"session-{next(names)}.db"
        create(path)
        start = time.perf_counter()
        bare = BareLog(path, "FULL")
        bare.insert_each(bare.rows(payloads))
        bare.close()
        return time.perf_counter() - start

    return compare(ours, rival, rounds)


def emit_many(settings: Settings) -> Iterator[Line]:
    """500 events in one commit."""
    stream, bare_stream, rival_stream = mixed_events(), mixed_events(), mixed_events()
    bare = BareLog(settings.folder / "many-bare.db", "FULL")
    rival_log = EventsourcingLog(settings.folder / "many-rival.db")
    with SessionSystem.open(url_of(settings.folder / "many.db")) as system:
        session = system.lease(KEY, 1)

        def ours() -> float:
            batches = [list(islice(stream, _BATCH)) for _ in range(_BATCHES_A_ROUND)]
            start = time.perf_counter()
            for batch in batches:
                session.emit_many(batch)
            return time.perf_counter() - start

        def by_hand() -> float:
            batches = [bare.rows(encoded(list(islice(bare_stream, _BATCH)))) for _ in range(_BATCHES_A_ROUND)]
            start = time.perf_counter()
            for batch in batches:
                bare.insert_all(batch)
            return time.perf_counter() - start

        def rival() -> float:
            batches = [rival_log.domain_events(islice(rival_stream, _BATCH)) for _ in range(_BATCHES_A_ROUND)]
            start = time.perf_counter()
            for batch in batches:
                rival_log.save(batch)
            return time.perf_counter() - start

        size = _BATCH * _BATCHES_A_ROUND
        found = compare(ours, by_hand, settings.rounds(32))
        yield _rates("emit_many of 500", found, size, "sqlite3 executemany", least=0.5)
        found = compare(ours, rival, settings.rounds(16))
        yield _rates("emit_many of 500", found, size, NAME, least=3.0)
    bare.close()
    rival_log.close()


def _rates(name: str, found: Comparison, size: int, rival: str, least: float | None = None) -> Line:
    return Line(name, f"{size / found.ours:,.0f}/s", f"{rival} {size / found.rival:,.0f}/s", found.ratio, least)
