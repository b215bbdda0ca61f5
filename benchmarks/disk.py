"""What the same 100,000 events of about 600 bytes take on disk, beside their payloads and beside two libraries."""

import asyncio
import importlib
import importlib.metadata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.bare import encoded, url_of
from benchmarks.eventsourcing_log import NAME, EventsourcingLog
from benchmarks.journal import jsonl_url
from benchmarks.measuring import Line, Settings
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionEvent, SessionSystem

__all__ = ["sizes"]

_TEXTS = 2.6  # times as long as usual: 600 bytes an event
_BATCH = 500


def sizes(settings: Settings) -> Iterator[Line]:
    """Bytes of all files once the store is closed."""
    count = 20_000 if settings.quick else 100_000
    payloads = sum(len(payload) for batch in _batches(count) for payload in encoded(batch))
    sqlite = _ours(url_of(_made(settings, "sqlite") / "log.db", "process"), settings.folder / "sqlite", count)
    jsonl = _ours(jsonl_url(_made(settings, "jsonl") / "logs", "process"), settings.folder / "jsonl", count)
    what = f"payloads {_mb(payloads)}, {payloads / count:.0f} bytes each"
    yield Line(f"{count:,} on disk, SQLite", _mb(sqlite), what, sqlite / payloads, most=1.2)
    yield Line(f"{count:,} on disk, JSONL", _mb(jsonl), what, jsonl / payloads, most=1.15)
    theirs = _eventsourcing(_made(settings, "eventsourcing"), count)
    yield Line(f"{count:,} on disk, SQLite", _mb(sqlite), f"{NAME} {_mb(theirs)}", theirs / sqlite)
    theirs = _agents(_made(settings, "agents"), count)
    name = f"openai-agents {importlib.metadata.version('openai-agents')}"
    yield Line(f"{count:,} on disk, SQLite", _mb(sqlite), f"{name} SQLiteSession {_mb(theirs)}", theirs / sqlite)


def _batches(count: int) -> Iterator[list[SessionEvent]]:
    stream = mixed_events(_TEXTS)
    for _ in range(count // _BATCH):
        yield list(islice(stream, _BATCH))


def _made(settings: Settings, name: str) -> Path:
    folder = settings.folder / name
    folder.mkdir()
    return folder


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _ours(url: str, folder: Path, count: int) -> int:
    with SessionSystem.open(url) as system:
        session = system.lease(KEY, 1)
        for batch in _batches(count):
            for event in batch:  # a commit each, as a session at work writes: a batch's lines say that more follow
                session.emit(event)
    return _bytes_in(folder)


def _eventsourcing(folder: Path, count: int) -> int:
    log = EventsourcingLog(folder / "log.db")
    for batch in _batches(count):
        log.save(log.domain_events(batch))
    log.close()
    return _bytes_in(folder)


def _agents(folder: Path, count: int) -> int:
    """The SDK's own store of a conversation: it takes any JSON objects as items."""
    session: Any = importlib.import_module("agents").SQLiteSession("benchmark", folder / "log.db")  # slow to import

    async def add() -> None:
        for batch in _batches(count):
            await session.add_items([msgspec.to_builtins(event) for event in batch])

    asyncio.run(add())
    session.close()
    return _bytes_in(folder)
