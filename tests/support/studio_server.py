"""The studio on a socket of this machine, served by a thread of this process."""

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Self

import httpx

from incarnate.studio.app import Studio
from incarnate.studio.archive import Archive
from incarnate.studio.guard import Bucket, Guard
from incarnate.studio.listing import Listing
from incarnate.studio.server import Server, listening
from tests.support.studio_app import Event

__all__ = ["Served", "events_of"]

MANY = 1e9


class Served:
    """A studio that serves for as long as its block lasts; `port` 0 takes a free one."""

    def __init__(
        self,
        url: str,
        *,
        mask: bool = False,
        token: str | None = None,
        port: int = 0,
        requests: Bucket | None = None,
        files: tuple[float, float] = (MANY, MANY),
        connections: int | None = None,
        **named: Any,
    ) -> None:
        self.archive = Archive(url, mask=mask)
        self._listing = Listing(self.archive)
        guard = Guard((), token, requests=requests or Bucket(MANY, MANY), files=files)
        listener = listening("127.0.0.1", port)
        self.port: int = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.studio = Studio(self.archive, self._listing, guard, **named)
        self.server = Server(self.studio, listener, connections)
        self._thread = threading.Thread(target=self.server.serve_until_told)

    def __enter__(self) -> Self:
        self._thread.start()
        self.client = httpx.Client(base_url=self.url, timeout=20)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.client.close()
        self.server.stop()
        self._thread.join()
        self._listing.close()
        self.archive.close()

    def json(self, path: str) -> Any:
        answer = self.client.get(path)
        assert 200 == answer.status_code, answer.text
        return answer.json()


@contextmanager
def events_of(base: str, path: str, headers: dict[str, str] | None = None) -> Generator[Iterator[Event]]:
    """The events of a stream, one after the other."""
    with httpx.Client(base_url=base, timeout=10) as client, client.stream("GET", path, headers=headers) as answer:
        assert 200 == answer.status_code
        yield _parsed(answer.iter_bytes())


def _parsed(chunks: Iterator[bytes]) -> Iterator[Event]:
    rest = b""
    for chunk in chunks:
        rest += chunk
        while b"\n\n" in rest:
            block, _, rest = rest.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
            if "event" in fields:
                yield Event(fields["event"], fields.get("id"), json.loads(fields["data"]))
