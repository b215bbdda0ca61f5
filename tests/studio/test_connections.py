"""Who connects and does not ask, or asks in an odd way: nobody else is kept out, and nothing is held for ever."""

import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from incarnate import ActivationKey, SessionSystem, UserMessage
from incarnate.studio import app, connections
from tests.support.studio_app import address
from tests.support.studio_server import Served

KEY = ActivationKey("pik-1", "implement")
PAGE = "/api/changes?session=pik-1%2Fimplement&view=model"
TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def url(swift_path: Path) -> str:
    url = f"sqlite:///{swift_path}/sessions.db"
    with SessionSystem.open(url) as system:
        system.claim(KEY).emit(UserMessage(id="e", parent_id=None, text="hi"))
    return url


def asked(served: Served, request: str) -> bytes:
    """What comes back until the server closes the connection."""
    with connected(served) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=20)


def test_who_sends_no_whole_request_has_to_go(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_BODY_SECONDS", 0.05)
    head = "POST /api/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with Served(url, token=TOKEN) as served:
        with monkeypatch.context() as patch:
            patch.setattr(connections, "REQUEST_SECONDS", 0.05)
            for begun in ("", "GET / HTTP/1.1\r\nHost: lo"):
                with suppress(ConnectionError):  # it may have to go before it has said that much
                    assert b"" == asked(served, begun)
        assert b"HTTP/1.1 408 " == asked(served, f"{head}Content-Length: 99\r\n\r\n{{")[:13]


def test_however_many_wait_there_is_room_for_one_who_asks(url: str) -> None:
    with ExitStack() as stack, Served(url, connections=8) as served:
        waiting = [stack.enter_context(connected(served)) for _ in range(40)]
        assert 200 == served.client.get("/api/sessions").status_code
        waiting[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200 OK" == waiting[-1].recv(15)


def test_a_request_that_names_the_whole_address_is_answered(url: str) -> None:
    with Served(url) as served:
        for target in ("http://localhost/api/openapi.json", "HTTP://localhost:1/", "http://localhost"):
            told = asked(served, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"HTTP/1.1 200 OK" == told[:15], target


@pytest.mark.parametrize("path", ["/api/sessions/changes", address(KEY, "/changes"), "/api/changes", PAGE])
def test_the_head_of_a_stream_ends(url: str, path: str) -> None:
    with Served(url) as served:
        answer = served.client.head(path)
        assert (200, "text/event-stream; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
        assert 0 == served.studio.hub.followers
