"""What has to be measured in a process of its own: `python -m benchmarks.child TASK PATH NUMBER` prints numbers."""

import gc
import resource
import sys
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from benchmarks.bare import url_of
from benchmarks.workload import KEY, mixed_events
from incarnate import ActivationKey, GetHead, ModelHistory, SessionSystem
from incarnate.actors.ingest import ingest
from incarnate.domain.dialects.registry import find_dialect

_WARM_UP = 6000
"""Claims that fill what is bounded: the live actors, and the heads that the store remembers, up to 4,096."""


def main(task: str, path: Path, number: int) -> None:
    tasks: dict[str, Callable[[Path, int], object]] = {
        "open": open_once,
        "replay": replay,
        "ingest": ingested,
        "live": live,
        "known": known,
    }
    print(tasks[task](path, number))


def open_once(path: Path, incarnation: int) -> float:
    """Seconds until the first event of a new incarnation is acknowledged."""
    [event] = islice(mixed_events(), 1)
    start = time.perf_counter()
    with SessionSystem.open(url_of(path)) as system:
        system.lease(KEY, incarnation).emit(event)
        return time.perf_counter() - start


def replay(path: Path, count: int) -> int:
    """KiB by which this process grew at most while it read `count` events."""
    with SessionSystem.open(url_of(path), read_only=True) as system:
        before = _peak()
        deque(system.replay(KEY, 0, count), maxlen=0)
        return _peak() - before


def ingested(path: Path, _: int) -> str:
    """KiB by which this process grew at most while it ingested the first half of a file of Claude Code's, and all."""
    store, half, read = path.with_suffix(".db"), path.stat().st_size // 2, 0
    peaks: list[int] = []

    def look(size: int) -> None:
        nonlocal read
        read += size
        if read >= half and len(peaks) < 2:
            peaks.append(_peak())

    store.unlink(missing_ok=True)
    with SessionSystem.open(url_of(store, "process")) as system, path.open("rb") as file:
        peaks.append(_peak())
        ingest(system, KEY, find_dialect("claude-code"), file, on_line=look)
        before, at_half = peaks
        return f"{at_half - before} {_peak() - before}"


def live(_: Path, count: int) -> str:
    """Bytes of an activation that lives and has no head yet, and the seconds that it took to start them all."""
    with SessionSystem.open("memory://", max_live=count) as system:
        gc.collect()
        before = _resident()
        start = time.perf_counter()
        for number in range(count):
            system.activation(ActivationKey("fleet", f"agent-{number}")).ask(GetHead())
        seconds = time.perf_counter() - start
        assert system.metrics().live_activations == count
        gc.collect()
        return f"{(_resident() - before) / count} {seconds}"


def known(path: Path, count: int) -> int:
    """Bytes that this process holds after a system of 1,000 live activations used `count` of them, some with a view."""
    with SessionSystem.open(url_of(path, "process"), max_live=1000) as system:
        for number in range(_WARM_UP + count):
            key = ActivationKey("fleet", f"agent-{number}")
            if number >= _WARM_UP and number % 100:
                system.activation(key).ask(GetHead())
            else:
                system.claim(key).next_turn()
                system.view(key, ModelHistory()).get()
        gc.collect()
        return _resident()


def _resident() -> int:
    """The bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _peak() -> int:
    """The most memory that this process ever held, in KiB."""
    # Where there is /proc: what getrusage tells there may be the parent's, from before this program was loaded.
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
