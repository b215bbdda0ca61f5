"""What a replay costs in time and memory, and what the length of a log adds to opening it."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks import bare
from benchmarks.eventsourcing_log import NAME, EventsourcingLog
from benchmarks.measuring import Line, Settings, compare
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionSystem

__all__ = ["checked", "log_of", "memory", "opening", "replay"]

_ROOT = Path(__file__).resolve().parent.parent
_SHORT = 1000
_BATCH = 1000


def _long(settings: Settings) -> int:
    return 200_000 if settings.quick else 1_000_000


def log_of(settings: Settings, count: int) -> Path:
    """A file whose one log has `count` events, made when it is first asked for."""
    path = settings.folder / f"log-{count}.db"
    if not path.exists():
        stream = mixed_events()
        with SessionSystem.open(bare.url_of(path, "process")) as system:
            session = system.lease(KEY, 1)
            for _ in range(count // _BATCH):
                session.emit_many(islice(stream, _BATCH))
    return path


def replay(settings: Settings) -> Iterator[Line]:
    """Events as typed structs, against a bare read and the library."""
    count = 50_000 if settings.quick else 200_000
    path = log_of(settings, _long(settings))
    with SessionSystem.open(bare.url_of(path), read_only=True) as system:

        def ours() -> float:
            start = time.perf_counter()
            seen = sum(1 for _ in system.replay(KEY, 0, count))
            return checked(start, seen, count)

        def by_hand() -> float:
            start = time.perf_counter()
            seen = sum(1 for batch in bare.read(path, count) for _ in batch)
            return checked(start, seen, count)

        def rival() -> float:
            start = time.perf_counter()
            seen = sum(1 for _ in rival_log.read())
            return checked(start, seen, count)

        name = f"replay of {count:,}"
        found = compare(ours, by_hand, settings.rounds(24))
        yield Line(
            name,
            f"{count / found.ours:,.0f}/s",
            f"sqlite3 + msgspec {count / found.rival:,.0f}/s",
            found.ratio,
            least=0.6,
        )
        rival_log = _rival_log(settings, count)
        found = compare(ours, rival, settings.rounds(5))
        yield Line(name, f"{count / found.ours:,.0f}/s", f"{NAME} {count / found.rival:,.0f}/s", found.ratio, least=2.0)
        rival_log.close()


def checked(start: float, seen: int, count: int) -> float:
    """The seconds since `start`, if all was seen."""
    seconds = time.perf_counter() - start
    if seen != count:
        raise RuntimeError(f"{seen} events were read instead of {count}")
    return seconds


def _rival_log(settings: Settings, count: int) -> EventsourcingLog:
    log = EventsourcingLog(settings.folder / "rival.db")
    stream = mixed_events()
    for _ in range(count // _BATCH):
        log.save(log.domain_events(islice(stream, _BATCH)))
    return log


def memory(settings: Settings) -> Iterator[Line]:
    """By how much a process grows at most while it replays a long log, against a tenth of it."""
    count = _long(settings)
    path = log_of(settings, count)
    pairs = [(_child("replay", path, count), _child("replay", path, count // 10)) for _ in range(3)]
    whole, tenth = (statistics.median(column) / 1024 for column in zip(*pairs, strict=True))
    yield Line(
        f"memory, replay of {count:,}",
        f"+{whole:.1f} MiB",
        f"of {count // 10:,}: +{tenth:.1f} MiB",
        whole / tenth,
        most=1.25,
    )


def opening(settings: Settings) -> Iterator[Line]:
    """Open, lease and emit once, each time in a new process, on a long log and on a short one."""
    count = _long(settings)
    long, short = log_of(settings, count), log_of(settings, _SHORT)
    pairs = [
        (_child("open", long, incarnation), _child("open", short, incarnation))
        for incarnation in range(2, 2 + settings.rounds(12))
    ]
    ratio = statistics.median([ours / rival for ours, rival in pairs])
    ours, rival = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    yield Line(f"opening {count:,} events", f"{ours:.2f} ms", f"{_SHORT:,} events {rival:.2f} ms", ratio, most=3.0)


def _child(task: str, path: Path, number: int) -> float:
    command = [sys.executable, "-m", "benchmarks.child", task, str(path), str(number)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT).stdout)
