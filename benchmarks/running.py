"""What `incarnate run` costs: how late what a harness prints is passed on and durable, and the memory that it takes."""

import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from benchmarks.measuring import Line, Settings
from benchmarks.workload import KEY
from incarnate import AssistantMessage, SessionSystem, ToolResult

__all__ = ["lag", "memory"]

_RATE = 5.0  # megabytes a second: more than any harness prints
_STAMP = re.compile(rb'"(?:text|content)": "(\d+\.\d+) ')
_LOOK_SECONDS = 0.005


def lag(settings: Settings) -> Iterator[Line]:
    """5 MB a second, with the store on a disk that syncs."""
    seconds = 5 if settings.quick else 20
    url = f"sqlite:///{settings.folder / 'lag.db'}"
    SessionSystem.open(url).close()
    durable: list[float] = []
    with _start(settings.folder / "lag", url, seconds * _RATE, _RATE) as process:
        assert process.stdout is not None
        watcher = threading.Thread(target=_watch, args=(url, process, durable))
        watcher.start()
        passed = _passed_on(process.stdout)
        process.wait()
        watcher.join()
    assert process.returncode == 0
    yield _line("run: passed on at 5 MB/s", passed, 20)
    yield _line("run: durable at 5 MB/s", durable, 50)


def memory(settings: Settings) -> Iterator[Line]:
    """As fast as it can, whatever that is."""
    megabytes = 100 if settings.quick else 1000
    url = f"sqlite:///{settings.folder / 'memory.db'}?durability=process"
    begun = time.monotonic()
    peaks: list[int] = []
    with _start(settings.folder / "memory", url, megabytes, 0) as process:
        assert process.stdout is not None
        total = last = 0
        while chunk := os.read(process.stdout.fileno(), 1 << 20):
            if total < 30e6 <= total + len(chunk):
                peaks.append(_peak(process.pid))  # all buffers have been full by now
            total += len(chunk)
            last = _peak(process.pid) or last
        process.wait()
    peaks.append(last)
    grown = (peaks[-1] - peaks[0]) / 2**20
    rate = total / 1e6 / (time.monotonic() - begun)
    ours = f"{grown:.0f} MiB"
    rival = f"grown in {megabytes} MB, to {peaks[-1] / 2**20:.0f} MiB, at {rate:.0f} MB/s"
    yield Line("run: memory", ours, rival, grown / 32, most=1)


def _start(home: Path, url: str, megabytes: float, rate: float) -> "subprocess.Popen[bytes]":
    home.mkdir()
    speaker = [sys.executable, "-I", "-S", str(Path(__file__).with_name("speaking.py")), str(megabytes), str(rate)]
    options = ["--harness", "claude-code", "--key", str(KEY), "--store", url, "--log", "none"]
    return subprocess.Popen(
        [sys.executable, "-m", "incarnate", "run", *options, "--", *speaker, "-p", "speak"],
        stdout=subprocess.PIPE,
        env={**os.environ, "HOME": str(home), "INCARNATE_STATE_DIR": str(home / "state")},
    )


def _passed_on(stream: IO[bytes]) -> list[float]:
    """The seconds from the writing of each line to its end here."""
    lags: list[float] = []
    for line in stream:
        found = _STAMP.search(line)
        if found is not None:
            lags.append(time.time() - float(found[1]))
    return lags


def _watch(url: str, process: "subprocess.Popen[bytes]", lags: list[float]) -> None:
    """The seconds from the writing of each line until its event can be read by another process."""
    with SessionSystem.open(url, read_only=True) as system:
        offset = 0
        while True:
            is_over = process.poll() is not None
            seen = 0
            for appended in system.replay(KEY, offset):
                event = appended.event
                text = event.text if isinstance(event, AssistantMessage) else ""
                text = str(event.result) if isinstance(event, ToolResult) else text
                if text:
                    lags.append(time.time() - float(text.split(" ", 1)[0]))
                offset, seen = appended.offset + 1, seen + 1
            if is_over and not seen:
                return
            time.sleep(_LOOK_SECONDS)


def _line(name: str, lags: list[float], limit: int) -> Line:
    milliseconds = sorted(1000 * lag for lag in lags)
    median = statistics.median(milliseconds)
    late = milliseconds[len(milliseconds) * 99 // 100]
    return Line(
        name, f"{median:.1f} ms", f"median of {len(lags):,}; 99 in 100 by {late:.0f} ms", median / limit, most=1
    )


def _peak(pid: int) -> int:
    """The most bytes of memory that a process has held; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0
