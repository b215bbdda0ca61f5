"""What `incarnate studio` costs the session that is watched, and the memory that a follower takes who never reads."""

import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.measuring import Line, Settings
from benchmarks.workload import KEY, mixed_events
from incarnate import SessionSystem

__all__ = ["followers", "memory"]

_FOLLOWERS = 200
_UNREAD = 20


def followers(settings: Settings) -> Iterator[Line]:
    """The rate of a session, followed and not, in turn; the server, the followers and the session are processes."""
    url = _store(settings.folder / "followers.db")
    seconds = 2 if settings.quick else 4
    pairs: list[tuple[float, float]] = []
    with _server(url, settings.folder) as (address, _):
        for _ in range(settings.rounds(7)):
            alone = _rate(url, seconds)
            with _child("follow", address, _FOLLOWERS, stdin=subprocess.PIPE) as watching:
                assert watching.stdout is not None
                assert watching.stdin is not None
                assert watching.stdout.readline() == b"open\n"
                time.sleep(1)  # until they have come level
                followed = _rate(url, seconds)
                watching.stdin.close()
                came = int(watching.stdout.read())
            assert came > _FOLLOWERS * followed, "the followers were not told"
            pairs.append((followed, alone))
    ratio = statistics.median([followed / alone for followed, alone in pairs])
    ours, rival = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    yield Line("studio: 200 followers", f"{ours:,.0f}/s", f"{rival:,.0f}/s without a follower", ratio, least=0.8)


def memory(settings: Settings) -> Iterator[Line]:
    """What the server grows by while followers that never read owe it many megabytes."""
    url = _store(settings.folder / "unread.db")
    events = [*islice(mixed_events(), 1000)]
    batches = 20 if settings.quick else 100
    with _server(url, settings.folder) as (address, pid), SessionSystem.open(url) as system:
        session = system.claim(KEY)
        streams = [_unread(address) for _ in range(_UNREAD)]
        sizes: list[int] = []
        for batch in range(batches):
            session.emit_many(events)
            time.sleep(0.1)
            if batch >= batches // 4:  # what is bounded is full by then
                sizes.append(_resident(pid))
        for stream in streams:
            stream.close()
    grown = (max(sizes) - sizes[0]) / 2**20
    told = f"{_UNREAD} that never read, {batches * len(events):,} events, to {max(sizes) / 2**20:.0f} MiB"
    yield Line("studio: memory", f"{grown:.0f} MiB", told, grown / 32, most=1)


def _store(path: Path) -> str:
    url = f"sqlite:///{path}?durability=process"
    with SessionSystem.open(url) as system:
        system.claim(KEY)
    return url


@contextmanager
def _server(url: str, folder: Path) -> Generator[tuple[str, int]]:
    command = [sys.executable, "-m", "incarnate", "studio", "--store", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip(), process.pid
        finally:
            process.terminate()


def _child(task: str, where: str, number: float, stdin: int | None = None) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "benchmarks.studio_child", task, where, str(number)]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])


def _rate(url: str, seconds: float) -> float:
    with _child("append", url, seconds) as process:
        out, _ = process.communicate()
    return float(out)


def _unread(address: str) -> socket.socket:
    place = urlsplit(address)
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.connect((place.hostname, place.port))
    path = f"/api/sessions/{quote(str(KEY), safe='')}/changes?view=events"
    stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    return stream


def _resident(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    return 0 if found is None else 1024 * int(found[1])
