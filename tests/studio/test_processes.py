"""`incarnate studio` as a process of its own, beside those that write: what it sees, and how it ends."""

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from incarnate import ActivationKey, Session, SessionSystem, UserMessage
from tests.support.studio_app import Copy, Event, address
from tests.support.studio_server import Served, events_of
from tests.support.waiting import soon

KEY = ActivationKey("pik-1", "implement")
OTHER = ActivationKey("pik-2", "implement")


class Process:
    """The command, with what it printed as it began."""

    def __init__(self, url: str, *options: str, home: Path) -> None:
        command = [sys.executable, "-m", "incarnate", "studio", "--store", url, *options]
        env = {**os.environ, "HOME": str(home), "INCARNATE_STATE_DIR": str(home / "state")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.port = int(re.sub(r".*:(\d+)/.*|.*", r"\1", self.address) or 0)

    def end(self, number: int) -> tuple[int, float, str]:
        """Its code, the seconds that it took, and what else it printed."""
        begun = time.monotonic()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, time.monotonic() - begun, out + err


@contextmanager
def studio(url: str, *options: str, home: Path) -> Generator[Process]:
    started = Process(url, *options, home=home)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def note(session: Session, text: str) -> None:
    session.emit(UserMessage(id="e", parent_id=None, text=text))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/sessions.db"


def test_what_another_process_appends_is_there_within_a_second_and_no_lease_is_taken(url: str, tmp_path: Path) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        note(session, "before")
        with studio(url, home=tmp_path) as process:
            with events_of(process.address, address(KEY, "/changes?view=events")) as events:
                copy = Copy()
                copy.take(next(events))
                took = list[float]()
                for number in range(5):
                    begun = time.monotonic()
                    note(session, f"news {number}")
                    copy.take(next(events))
                    took.append(time.monotonic() - begun)
                assert statistics.median(took) < 1, took
                assert [0, 1, 2, 3, 4, 5] == copy.offsets
            httpx.get(process.address.rstrip("/") + address(KEY))
            code, _, rest = process.end(signal.SIGINT)
        assert (0, True) == (code, "Traceback" not in rest)
        [info] = system.activations()
        assert 1 == info.head.fence
        note(session, "the session is still its writer's")


def test_nothing_in_the_store_is_touched(url: str, tmp_path: Path) -> None:
    with SessionSystem.open(url) as system:
        note(system.claim(KEY), "hi")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("sessions.db")}
    with studio(url, home=tmp_path) as process:
        for rest in ("", "/messages?view=model", "/stats", "/rewinds", "/timeline", "/find?q=hi"):
            assert 200 == httpx.get(process.address.rstrip("/") + address(KEY, rest)).status_code
        process.end(signal.SIGTERM)
    assert before == {path.name: path.read_bytes() for path in tmp_path.glob("sessions.db")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_soon_whoever_still_follows(url: str, tmp_path: Path, number: int) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        note(session, "hi")
        with studio(url, home=tmp_path) as process:
            streams = [unread(process.port) for _ in range(10)]
            streams.append(half_signed_in(process.port))
            with events_of(process.address, address(KEY, "/changes?view=model")) as events:
                next(events)
                note(
                    session, "x" * 1_000_000
                )  # more than a socket holds: those who do not read are in the middle of it
                next(events)
                code, seconds, rest = process.end(number)
            for stream in streams:
                stream.close()
    assert seconds < 15  # it takes one or two; those who follow would have had it wait for ever
    assert code in {0, -signal.SIGTERM}
    assert "Traceback" not in rest


def half_signed_in(port: int) -> socket.socket:
    """One whose token is still to come."""
    stream = socket.create_connection(("127.0.0.1", port))
    head = "POST /api/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
    stream.sendall(f"{head}\r\n{{".encode())
    return stream


def unread(port: int) -> socket.socket:
    """A follower that never reads."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.connect(("127.0.0.1", port))
    stream.sendall(f"GET {address(KEY, '/changes?view=events')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return stream


@pytest.mark.timeout(180)
def test_followers_that_never_read_hold_up_nobody_and_take_no_memory(url: str, tmp_path: Path) -> None:
    with SessionSystem.open(f"{url}?durability=process") as system, studio(url, home=tmp_path) as process:
        session = system.claim(KEY)
        note(session, "hi")
        streams = [unread(process.port) for _ in range(10)]
        with events_of(process.address, address(KEY, "/changes?view=events")) as events:
            copy, sizes = Copy(), list[int]()
            copy.take(next(events))
            for number in range(60):
                session.emit_many([UserMessage(id="e", parent_id=None, text="x" * 10_000) for _ in range(100)])
                while not copy.is_at(0, 1 + 100 * (number + 1)):
                    copy.take(next(events))
                sizes.append(resident(process.process.pid))
        for stream in streams:
            stream.close()
    # Each of ten is owed 60 MB. What is bounded is full after the first third.
    assert max(sizes) - sizes[20] < 30_000_000


def resident(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return 1024 * int(found[1])


def test_a_server_that_was_restarted_goes_on_from_the_last_id(url: str) -> None:
    copy = Copy()
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        for number in range(3):
            note(session, f"before {number}")
            with (
                Served(url) as served,
                events_of(served.url, address(KEY, "/changes?view=studio"), copy.headers) as events,
            ):
                change = next(events)
                assert number == change.data["keep"]
                copy.take(change)
        view = [item["content"] for item in copy.items]
    assert ["before 0", "before 1", "before 2"] == view


def test_the_list_is_told_what_changes(url: str) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        note(session, "hi")
        with Served(url) as served, events_of(served.url, "/api/sessions/changes") as events:
            assert [str(KEY)] == [row["key"] for row in next(events).data["sessions"]]
            note(system.claim(OTHER), "new")
            assert str(OTHER) in told_in(events)


def told_in(events: Iterator[Event]) -> list[Any]:
    return [row["key"] for row in next(events).data["sessions"]]


def test_a_host_that_others_reach_asks_for_a_token_that_is_told_once(url: str, tmp_path: Path) -> None:
    SessionSystem.open(url).close()
    with studio(url, "--host", "0.0.0.0", home=tmp_path) as process:
        base = f"http://127.0.0.1:{process.port}"
        assert soon(lambda: httpx.get(f"{base}/api/sessions").status_code == 401)
        assert "0.0.0.0" not in process.address  # nobody else can go there
        assert soon(lambda: httpx.get(f"{process.address}api/sessions").status_code == 401)
        _, _, rest = process.end(signal.SIGTERM)
    [token] = re.findall(r"^token: (\S+)$", rest, flags=re.MULTILINE)
    assert 1 == rest.count(token)
    assert token not in process.address


def test_a_program_that_starts_it_is_told_where_it_is(url: str, tmp_path: Path) -> None:
    SessionSystem.open(url).close()
    with studio(url, "--json", home=tmp_path) as process:
        told = json.loads(process.address)
        assert {"url", "store", "token"} == told.keys()
        assert None is told["token"]
        assert 200 == httpx.get(f"{told['url']}api/sessions").status_code


def test_an_empty_token_is_refused(url: str, tmp_path: Path) -> None:
    SessionSystem.open(url).close()
    process = Process(url, "--token", "", home=tmp_path)
    assert "the token is empty" in process.process.communicate()[1]
    assert 2 == process.process.returncode


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--host", "0.0.0.0", "--token", "short"), "give a longer one, or none"),
        (("--host", "nobody.invalid"), "choose another --host"),
        (("--host", "192.0.2.1"), "choose another --host"),
    ],
)
def test_what_cannot_be_served_is_told_with_what_to_do(
    url: str, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    SessionSystem.open(url).close()
    process = Process(url, *options, home=tmp_path)
    assert told in process.process.communicate()[1]


def test_a_port_that_is_taken_is_told(url: str, tmp_path: Path) -> None:
    SessionSystem.open(url).close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = Process(url, "--port", str(taken.getsockname()[1]), home=tmp_path)
        _, err = process.process.communicate()
    assert 1 == process.process.returncode
    assert "cannot listen at 127.0.0.1 port" in err


def test_without_its_extra_it_says_what_to_install(url: str, tmp_path: Path) -> None:
    SessionSystem.open(url).close()
    program = "import sys; sys.modules['uvicorn'] = None; from incarnate.cli import main; main()"
    command = [sys.executable, "-c", program, "studio", "--store", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert 1 == done.returncode
    assert "incarnate studio needs the extra 'studio'" in done.stderr
    assert 'pip install "incarnate[studio]"' in done.stderr
