"""Many activations in one process: what they cost while they live, and after they were put to rest."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pykka

from benchmarks.bare import url_of
from benchmarks.group import in_threads
from benchmarks.measuring import Line, Settings
from benchmarks.workload import mixed_events
from incarnate import ActivationKey, ModelHistory, Session, SessionEvent, SessionSystem

__all__ = ["live", "mixed"]

_ROOT = Path(__file__).resolve().parent.parent
_THREADS = 64
_SESSIONS = 1000
_PYKKA_THREADS = 1000


def live(settings: Settings) -> Iterator[Line]:
    """Start 100,000 activations and keep them; and use 1,000,000, of which 1,000 live at once."""
    count = 10_000 if settings.quick else 100_000
    bytes_each, seconds = _child("live", settings.folder, count)
    yield Line(f"{count:,} live activations", f"{bytes_each / 1000:.2f} KB each", "", bytes_each / 1000, most=5.0)
    rival = f"pykka, {_PYKKA_THREADS:,} threads {_start_threads():.2f} s"
    yield Line(f"starting {count:,}", f"{seconds:.2f} s", rival, seconds, most=5.0)
    known = 100_000 if settings.quick else 1_000_000
    many, few = (_child("known", settings.folder, number)[0] / 2**20 for number in (known, known // 10))
    yield Line(
        f"{known:,} known, 1,000 live", f"{many:.1f} MiB", f"{known // 10:,} known: {few:.1f} MiB", many / few, most=1.1
    )


def _child(task: str, folder: Path, count: int) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.child", task, str(folder / f"{task}-{count}.db"), str(count)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT).stdout
    return [float(number) for number in found.split()]


class _Idle(pykka.ThreadingActor):
    """What pykka starts a thread for."""


def _start_threads() -> float:
    start = time.perf_counter()
    for _ in range(_PYKKA_THREADS):
        _Idle.start()
    seconds = time.perf_counter() - start
    pykka.ActorRegistry.stop_all()
    return seconds


def mixed(settings: Settings) -> Iterator[Line]:
    """1,000 sessions of mixed work with a view each, against 64 sessions that only emit; 64 threads either way."""
    rounds = settings.rounds(8)
    stream = mixed_events()
    with (
        SessionSystem.open(url_of(settings.folder / "fleet-mixed.db")) as many,
        SessionSystem.open(url_of(settings.folder / "fleet-plain.db")) as few,
    ):
        sessions = [many.lease(ActivationKey("fleet", f"agent-{number}"), 1) for number in range(_SESSIONS)]
        views = [many.view(session.key, ModelHistory()) for session in sessions]
        plain = [few.lease(ActivationKey("fleet", f"agent-{number}"), 1) for number in range(_THREADS)]
        for view in views:
            view.get()

        def work(session: Session, events: Sequence[SessionEvent], look: Callable[[], object]) -> None:
            session.emit_many(events[:4])
            for event in events[4:]:
                session.emit(event)
            session.checkpoint("sha")
            look()

        def shift(first: int, events: Sequence[SessionEvent]) -> Callable[[], None]:
            def run() -> None:
                for number in range(first, _SESSIONS, _THREADS):
                    work(sessions[number], events, views[number].get)

            return run

        def emits(session: Session, events: Sequence[SessionEvent]) -> Callable[[], None]:
            def run() -> None:
                for event in events:
                    session.emit(event)

            return run

        ratios, ours_rates, rival_rates = [], [], []
        for _ in range(rounds):
            events = list(islice(stream, 12))
            seconds = in_threads([shift(first, events) for first in range(_THREADS)])
            long = list(islice(stream, 60))
            rival = in_threads([emits(session, long) for session in plain])
            # Writes are compared with writes: a checkpoint is one too, an emit_many is one of four events.
            ours_rates.append(_SESSIONS * 10 / seconds)
            rival_rates.append(_THREADS * 60 / rival)
            ratios.append(ours_rates[-1] / rival_rates[-1])
    yield Line(
        f"{_SESSIONS:,} sessions, mixed, a view each",
        f"{statistics.median(ours_rates):,.0f} writes/s",
        f"64 sessions, 1 in flight {statistics.median(rival_rates):,.0f}/s",
        statistics.median(ratios),
        least=0.5,
    )
