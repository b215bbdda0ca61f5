"""`incarnate run` in processes of their own over the fake harness, and who of them lives."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

from incarnate.actors.system import SessionSystem
from incarnate.domain.events import AppendedEvent, ToolCall, ToolResult, TurnEnd, TurnStart
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import CallBlock
from incarnate.supervision import keeper

HARNESS = Path(__file__).with_name("fake_harness.py")
KEY = ActivationKey("supervised", "run")
MARK = "INCARNATE_TEST_MARK"

T = TypeVar("T")


def until(look: Callable[[], T], what: str, seconds: float = 30) -> T:
    """The first answer that is not empty."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.005)
    return found


class Place:
    """A home folder with a store, and all processes that were started with it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.state = folder / "state"
        self.url = f"sqlite:///{folder / 'sessions.db'}"
        self._run_ids: set[str] = set()
        self._started: list[subprocess.Popen[bytes]] = []
        SessionSystem.open(self.url).close()  # so that it can be read before anybody has written
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("INCARNATE")},
            "HOME": str(folder),
            "INCARNATE_STATE_DIR": str(self.state),
            "INCARNATE_STORE": self.url,
            MARK: str(folder),
        }

    def run(
        self,
        *harness: str,
        options: Sequence[str] = (),
        dialect: str = "claude-code",
        prompt: str = "Do all the steps.",
        state: str = "state",
        below: Sequence[str] = (),
    ) -> "Supervising":
        """Start one. With another `state` it knows of those of this machine what one of another machine does.

        `below` is a command that starts it.
        """
        command = [*below, sys.executable, "-m", "incarnate", "run", "--harness", dialect, "--key", str(KEY)]
        command += ["--backoff", "0", "--log", "none", "--grace", "0.5", "--prompt", prompt, *options]
        command += ["--", sys.executable, "-I", "-S", str(HARNESS), *harness, "-p", prompt]
        env = {**self.env, "INCARNATE_STATE_DIR": str(self.home / state)}
        with (self.home / "stderr").open("ab") as stderr, (self.home / "stdout").open("ab") as stdout:
            process = subprocess.Popen(command, env=env, cwd=self.home, stdout=stdout, stderr=stderr)
        self._started.append(process)
        return Supervising(process)

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        line = [sys.executable, "-m", "incarnate", *words]
        return subprocess.run(line, env=self.env, cwd=self.home, capture_output=True, text=True, check=False)

    def records(self) -> list[dict[str, Any]]:
        """Those of supervisors, dead ones too."""
        found: list[dict[str, Any]] = []
        for path in self.state.glob("*.json"):
            with suppress(FileNotFoundError):
                found.append(json.loads(path.read_bytes()))
        self._run_ids.update(record["identity"]["run_id"] for record in found if record["identity"])
        return found

    def lives(self) -> list[tuple[str, int]]:
        """The run id and the pid of each harness that began to speak, in their order."""
        try:
            lines = (self.home / "lives").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        lives = [(line.split()[0], int(line.split()[1])) for line in lines]
        self._run_ids.update(run_id for run_id, _ in lives)
        return lives

    def processes(self) -> dict[int, str]:
        """All that live of all that was started here, and their command lines."""
        self.records()
        self.lives()
        marks = {f"{MARK}={self.home}".encode(), *(f"INCARNATE_RUN_ID={one}".encode() for one in self._run_ids)}
        found: dict[int, str] = {}
        for entry in os.scandir("/proc"):
            with suppress(OSError):
                if entry.name.isdigit() and marks & set(Path(entry, "environ").read_bytes().split(b"\0")):
                    found[int(entry.name)] = Path(entry, "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return {pid: line for pid, line in found.items() if line}  # a zombie has none

    def keepers(self) -> list[int]:
        return [pid for pid, line in self.processes().items() if str(keeper.__file__) in line]

    def harnesses(self) -> list[int]:
        return [pid for pid, line in self.processes().items() if line.startswith(f"{sys.executable} -I -S {HARNESS} ")]

    def tools(self) -> list[int]:
        return [pid for pid, line in self.processes().items() if line.startswith("sleep ")]

    def events(self) -> list[AppendedEvent]:
        with SessionSystem.open(self.url, read_only=True) as system:
            return list(system.replay(KEY))

    def expect_nobody(self) -> None:
        until(lambda: not self.processes(), f"nobody to live, but {self.processes()}", 15)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for pid in self.processes():
            kill(pid)
        for process in self._started:
            process.wait()


class Supervising:
    """One `incarnate run`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.pid = process.pid

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 40) -> int:
        return self.process.wait(seconds)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def check(place: Place, steps: int | None = None) -> None:
    """The log is whole, and each step of a scripted session is done."""
    check_log(place)
    events = [one.event for one in place.events()]
    calls = [event.call_id for event in events if isinstance(event, ToolCall)]
    assert len(set(calls)) == len(calls)
    done = _results(events)
    assert [f"did {step}" for step in range(len(done) if steps is None else steps)] == done


def check_log(place: Place) -> None:
    """Gap-free, each id once, each turn begun and ended once, each call answered once."""
    check_events(place.events())


def check_events(appended: Sequence[AppendedEvent]) -> None:
    """The same, of what was read of a log."""
    events = [one.event for one in appended]

    assert list(range(len(appended))) == [one.offset for one in appended]
    assert all(before.incarnation <= after.incarnation for before, after in pairwise(appended))
    assert len({event.id for event in events}) == len(events)
    turns = [event.turn for event in events if isinstance(event, TurnStart)]
    assert sorted(set(turns)) == turns
    assert turns == [event.turn for event in events if isinstance(event, TurnEnd)]
    calls = [event.call_id for event in events if isinstance(event, ToolCall)]
    assert sorted(calls) == sorted(event.call_id for event in events if isinstance(event, ToolResult))
    history = ModelHistory()
    for one in appended:
        history.apply(one)
    asked = [block.content.id for message in history.value for block in message.content if isinstance(block, CallBlock)]
    assert asked == [message.tool_call_id for message in history.value if message.role == "tool"]


def _results(events: Sequence[object]) -> list[str]:
    told = {event.result for event in events if isinstance(event, ToolResult) and event.ok}
    return sorted((str(one) for one in told), key=lambda one: int(one.split()[1]))
