"""The processes around a studio: `python -m benchmarks.studio_child append URL SECONDS` prints events a second.

`... follow ADDRESS COUNT` opens streams, prints a line when all are open, reads until its input ends, and prints how
many bytes came.
"""

import selectors
import socket
import sys
import time
from itertools import cycle, islice
from urllib.parse import quote, urlsplit

from benchmarks.workload import KEY, mixed_events
from incarnate import SessionSystem

_CHUNK = 1 << 20


def append(url: str, seconds: float) -> float:
    """The events a second that one session appends, one by one."""
    events = cycle(tuple(islice(mixed_events(), 1000)))
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        session.emit(next(events))
        begun = time.perf_counter()
        count = 0
        while time.perf_counter() - begun < seconds:
            session.emit(next(events))
            count += 1
        return count / (time.perf_counter() - begun)


def follow(address: str, count: int) -> int:
    """The bytes that came over `count` streams of the log's events, from where it stands."""
    place = urlsplit(address)
    path = f"/api/sessions/{quote(str(KEY), safe='')}"
    streams = selectors.DefaultSelector()
    for _ in range(count):
        stream = socket.create_connection((place.hostname, place.port))
        request = f"GET {path}/changes?view=events&after=0.0 HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n"
        stream.sendall(request.encode())
        streams.register(stream, selectors.EVENT_READ)
    for key in streams.get_map().values():
        assert key.fileobj.recv(9).endswith(b" "), "the stream was not opened"  # type: ignore[union-attr]
    print("open", flush=True)
    streams.register(sys.stdin, selectors.EVENT_READ)
    came = 0
    while True:
        for key, _ in streams.select():
            if key.fileobj is sys.stdin:
                return came
            came += len(key.fileobj.recv(_CHUNK))  # type: ignore[union-attr]


if __name__ == "__main__":
    task, where, number = sys.argv[1:]
    print(append(where, float(number)) if task == "append" else follow(where, int(number)))
