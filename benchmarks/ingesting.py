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

__all__ = ["memory", "speed"]

_ROOT = Path(__file__).resolve().parent.parent

_LEAST = 0.3


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
    """By how much a process grows at most while it ingests a long file, against a tenth of it."""
    megabytes = 20 if settings.quick else 100
    long, short = (recorded(settings, "claude", "disk", size) for size in (megabytes, megabytes // 10))
    pairs = [(_child(long), _child(short)) for _ in range(3)]
    whole, tenth = (statistics.median(column) / 1024 for column in zip(*pairs, strict=True))
    name, of = f"memory, ingest of {megabytes} MB", f"of {megabytes // 10} MB: +{tenth:.1f} MiB"
    yield Line(name, f"+{whole:.1f} MiB", of, whole / tenth, most=1.25)


def _child(path: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.child", "ingest", str(path), "0"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT).stdout)
