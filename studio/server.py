"""The studio on a socket."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from incarnate.studio.connections import BACKLOG, Connection, room_for_connections

if TYPE_CHECKING:
    from incarnate.studio.app import Studio

__all__ = ["Server", "listening"]

_QUEUE = 512
"""How many may wait to be accepted: a browser whose first packet is dropped comes back after a second."""

_LAST_SECONDS = 1


class Server(uvicorn.Server):
    """Serves one studio on a socket that listens already. A signal ends its streams at once."""

    def __init__(self, studio: Studio, listener: socket.socket, connections: int | None = None) -> None:
        """`connections`: how many there may be at once; as many as the system allows, unless it is given."""
        room = room_for_connections() if connections is None else connections
        super().__init__(
            uvicorn.Config(
                studio,
                lifespan="on",
                log_config=None,
                access_log=False,  # a log of requests would hold what people looked at
                server_header=False,
                date_header=True,
                proxy_headers=False,
                ws="none",
                http=type("Connection", (Connection,), {"most": room}),
                loop="asyncio",
                backlog=BACKLOG,
                timeout_graceful_shutdown=_LAST_SECONDS,
            )
        )
        self._studio = studio
        self._listener = listener

    def serve_until_told(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`."""
        self.run(sockets=[self._listener])

    def stop(self) -> None:
        """Serve no longer; any thread may call it."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept, a few at one go, from a queue that is longer than that."""
        await super().startup(sockets)
        self._listener.listen(_QUEUE)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, which would else never end, and then the rest."""
        self._studio.hub.close()
        await super().shutdown(sockets)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at `host`; port 0 takes a free one.

    Raises:
        OSError: nobody may listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_QUEUE)
