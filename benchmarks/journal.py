"""The JSONL store beside what one would write by hand: append a line and sync, read the lines and decode."""

import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from benchmarks.bare import encoded, url_of
from benchmarks.measuring import Line, Settings, compare
from benchmarks.reading import checked
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionEvent, SessionSystem

__all__ = ["emit", "jsonl_url", "replay"]

_SIZE = 400
_CHUNK_BYTES = 1 << 18


class _EventLine(msgspec.Struct, gc=False):
    offset: int = -1
    incarnation: int = 0
    at: int = 0
    event: SessionEvent | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_EventLine)


def jsonl_url(path: Path, durability: str = "commit") -> str:
    """The store's URL of a folder."""
    return f"jsonl:///{path}?durability={durability}"


def emit(settings: Settings) -> Iterator[Line]:
    """One session, one event an `emit`: with a sync each beside a loop, and without beside SQLite with one."""
    stream, bare_stream = mixed_events(), mixed_events()
    file = os.open(settings.folder / "bare.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with SessionSystem.open(jsonl_url(settings.folder / "journals")) as system:
        session = system.lease(KEY, 1)

        def ours() -> float:
            events = list(islice(stream, _SIZE))
            start = time.perf_counter()
            for event in events:
                session.emit(event)
            return time.perf_counter() - start

        def rival() -> float:
            lines = _lines(encoded(list(islice(bare_stream, _SIZE))))
            start = time.perf_counter()
            for line in lines:
                os.write(file, line)
                os.fsync(file)
            return time.perf_counter() - start

        found = compare(ours, rival, settings.rounds(48))
    os.close(file)
    yield _line("emit, JSONL, commit", found.ours, f"write + fsync {_SIZE / found.rival:,.0f}/s", found.ratio, 0.8)
    yield _unsynced(settings)


def _unsynced(settings: Settings) -> Line:
    streams = mixed_events(), mixed_events()
    urls = jsonl_url(settings.folder / "unsynced", "process"), url_of(settings.folder / "synced.db")
    with SessionSystem.open(urls[0]) as jsonl, SessionSystem.open(urls[1]) as sqlite:
        sessions = [system.lease(KEY, 1) for system in (jsonl, sqlite)]

        def write(which: int) -> float:
            events = list(islice(streams[which], _SIZE))
            start = time.perf_counter()
            for event in events:
                sessions[which].emit(event)
            return time.perf_counter() - start

        found = compare(lambda: write(0), lambda: write(1), settings.rounds(24))
    return _line(
        "emit, JSONL, process", found.ours, f"incarnate, SQLite, FULL {_SIZE / found.rival:,.0f}/s", found.ratio, 5
    )


def _line(name: str, seconds: float, rival: str, ratio: float, least: float) -> Line:
    return Line(name, f"{_SIZE / seconds:,.0f}/s", rival, ratio, least)


def _lines(payloads: list[bytes]) -> list[bytes]:
    """As long as the store's own."""
    now_ms = time.time_ns() // 1_000_000
    form = b'{"offset":%d,"incarnation":1,"at":%d,"event":%b,"crc":"00000000"}\n'
    return [form % (offset, now_ms, payload) for offset, payload in enumerate(payloads)]


def replay(settings: Settings) -> Iterator[Line]:
    """Events as typed structs, beside the lines of the same files read and decoded."""
    count = 50_000 if settings.quick else 200_000
    folder = settings.folder / "replayed"
    stream = mixed_events()
    with SessionSystem.open(jsonl_url(folder, "process")) as system:
        session = system.lease(KEY, 1)
        for _ in range(count // 1000):
            session.emit_many(islice(stream, 1000))
    files = sorted(path for path in folder.rglob("*.jsonl") if path.name[:8].isdigit())
    with SessionSystem.open(jsonl_url(folder), read_only=True) as system:

        def ours() -> float:
            start = time.perf_counter()
            return checked(start, sum(1 for _ in system.replay(KEY, 0, count)), count)

        def rival() -> float:
            start = time.perf_counter()
            return checked(start, sum(_events_in(path) for path in files), count)

        found = compare(ours, rival, settings.rounds(24))
    by_hand = f"read + msgspec {count / found.rival:,.0f}/s"
    yield Line(f"replay of {count:,}, JSONL", f"{count / found.ours:,.0f}/s", by_hand, found.ratio, least=0.5)


def _events_in(path: Path) -> int:
    seen = 0
    with path.open("rb") as file:
        while lines := file.readlines(_CHUNK_BYTES):
            seen += sum(1 for line in _decoder.decode_lines(b"".join(lines)) if line.offset >= 0)
    return seen
