"""What an ingest adds to the bare decoding of a harness's lines, in time and in memory."""

import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.bare import BareLog, url_of
from benchmarks.measuring import Line, Settings, compare
from benchmarks.repeated import recorded
from benchmarks.workload import KEY
from incarnate import SessionSystem
from incarnate.actors.ingest import ingest
from incarnate.domain.dialects.registry import find_dialect
from incarnate.storage.sqlite_files import PAGE_BYTES

__all__ = ["memory", "speed"]

_ROOT = Path(__file__).resolve().parent.parent

_LEAST = 0.3

_LONG = 100  # megabytes; half of a stream of it holds as many records as are ever known again
_MOST_GROWTH = 0.02  # one byte of fifty: to know every record again took four


def speed(settings: Settings) -> Iterator[Line]:
    """A file into a log, against msgspec's decoding of its lines; and against that with a bare INSERT of its events."""
    megabytes = 20 if settings.quick else 100
    for folder, harness in (("claude", "claude-code"), ("codex", "codex")):
        for form in ("disk", "stdout"):
            yield from _speed(settings, folder, harness, form, megabytes)


def _speed(settings: Settings, folder: str, harness: str, form: str, megabytes: int) -> Iterator[Line]:
    path, dialect = recorded(settings, folder, form, megabytes), find_dialect(harness)
    store, size = settings.folder / "ingest.db", path.stat().st_size / 1e6

    def ours() -> float:
        store.unlink(missing_ok=True)
        with SessionSystem.open(url_of(store, "process")) as system, path.open("rb") as file:
            start = time.perf_counter()
            report = ingest(system, KEY, dialect, file)
            seconds = time.perf_counter() - start
        if not report.complete:
            raise RuntimeError(f"{path} was not taken whole: {report.refused_lines[:3]}")
        return seconds

    found = compare(ours, lambda: _decoded(path), settings.rounds(8))
    name = f"ingest, {harness}, {'session files' if form == 'disk' else 'stream'}"
    mine, theirs = f"{size / found.ours:,.0f} MB/s", f"msgspec {size / found.rival:,.0f} MB/s"
    yield Line(name, mine, theirs, found.ratio, least=_LEAST)
    floor = compare(ours, lambda: _decoded(path) + _inserted(store, settings), 3)
    mine, theirs = f"{size / floor.ours:,.0f} MB/s", f"msgspec and a bare INSERT {size / floor.rival:,.0f} MB/s"
    yield Line("  that writes what it reads", mine, theirs, floor.ratio)


def _decoded(path: Path) -> float:
    """Seconds for the bare decoding of the file's lines."""
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as file:
        start = time.perf_counter()
        for line in file:
            decode(line)
        return time.perf_counter() - start


def _inserted(store: Path, settings: Settings) -> float:
    """Seconds for bare INSERTs of the rows that `store` holds, as many in a transaction as an ingest makes of them."""
    copy = settings.folder / "inserted.db"
    for path in settings.folder.glob(f"{copy.name}*"):
        path.unlink()
    log, seconds = BareLog(copy, "NORMAL"), 0.0
    with closing(sqlite3.connect(store)) as db:
        cursor = db.execute("SELECT payload FROM event ORDER BY offset")
        while payloads := [row[0] for row in cursor.fetchmany(2048)]:
            start = time.perf_counter()
            log.insert_all(log.rows(payloads))
            seconds += time.perf_counter() - start
    log.close()
    return seconds


def memory(settings: Settings) -> Iterator[Line]:
    """By how much a process still grows while it ingests the second half of a long file, in MiB of each MiB read.

    Until then all fills up that is bounded: a block of lines with what they became, the records that are known again,
    and SQLite's page cache. In a file of few events the last two are not full yet.
    """
    cache, length = _page_cache(), _LONG * 1e6 / 2**20
    for form in ("disk", "stdout"):
        path = recorded(settings, "claude", form, _LONG)
        grown = [_child(path) for _ in range(3)]
        half, whole = (statistics.median(column) / 1024 for column in zip(*grown, strict=True))
        name = f"memory, ingest of {_LONG} MB, {'files' if form == 'disk' else 'stream'}"
        of = f"at half of it +{half:.1f} MiB, page cache {cache:.1f}"
        yield Line(name, f"+{whole:.1f} MiB", of, (whole - half) / (length / 2), most=_MOST_GROWTH)


def _page_cache() -> float:
    """MiB that the pages of SQLite's cache take at most, for the one connection that writes."""
    with closing(sqlite3.connect(":memory:")) as db:
        size = int(db.execute("PRAGMA cache_size").fetchone()[0])
    return -size / 1024 if size < 0 else size * PAGE_BYTES / 2**20


def _child(path: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.child", "ingest", str(path), "0"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT).stdout
    half, whole = printed.split()
    return float(half), float(whole)
