"""What has to be measured in a process of its own: `python -m benchmarks.child TASK PATH NUMBER` prints one number."""

import resource
import sys
import time
from collections import deque
from itertools import islice
from pathlib import Path

from benchmarks.bare import url_of
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionSystem


def main(task: str, path: Path, number: int) -> None:
    print(open_once(path, number) if task == "open" else replay(path, number))


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
