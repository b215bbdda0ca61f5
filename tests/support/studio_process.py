"""`incarnate studio` in a process of its own, and a line to it that can be cut."""

import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

import psutil

__all__ = ["CutLine", "StudioProcess"]


class StudioProcess:
    """A server over a store; it can be ended and begun again at the same address."""

    def __init__(self, store: str, *options: str) -> None:
        self._store = store
        self._options = options
        self.port = 0
        self.start()

    def start(self) -> None:
        line = [sys.executable, "-m", "incarnate", "studio", "--store", self._store, "--port", str(self.port)]
        self._process = subprocess.Popen([*line, *self._options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip().rstrip("/")
        assert self.url, self._process.communicate()[1].decode()
        self.port = urlsplit(self.url).port or 0

    @property
    def seconds(self) -> float:
        """What it has taken of the processor."""
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class CutLine:
    """Passes connections on to a port of this machine until it is cut; cut, it refuses new ones."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open: list[socket.socket] = []
        self.port = 0
        self.mend()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Take connections, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, args=(self._listener,), daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """Break every connection, and take no new one."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open = []

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while some := source.recv(65536):
            sink.sendall(some)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
