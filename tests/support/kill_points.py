"""Runs a script of commands over and over, each time killed by SIGKILL at the next system call that changes a file.

`python kill_points.py FOLDER`: for each k it forks, the child runs the script on `FOLDER/k/journals` and dies at its
k-th point, and what it was told to be done stands in `FOLDER/k/done`. Points are before and behind each call that
writes, syncs, renames, cuts or removes, and, of a write, also in the middle of it.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from incarnate.domain.commands import (
    Append,
    AppendMany,
    Claim,
    Lease,
    NextTurn,
    PutCheckpoint,
    Retire,
    WriteCommand,
)
from incarnate.domain.errors import RefusedError
from incarnate.domain.keys import ActivationKey
from incarnate.storage.jsonl import JsonlStore
from incarnate.storage.port import Store
from tests.support.stores import KEY, Log, checkpoint, note, notes

FORK = ActivationKey("pik-1", "forked")
SEGMENT_BYTES = 1200

Step = Callable[[Store], object]


def do(command: WriteCommand, key: ActivationKey = KEY, now_ms: int = 0) -> Step:
    return lambda store: Log(store, key).do(command, now_ms)


STEPS: dict[str, Step] = {
    "claim": do(Claim()),
    "append": do(Append(1, 0, note("a"))),
    "batch": do(AppendMany(1, 1, notes("bcd"))),
    "turn": do(NextTurn(1)),
    "checkpoint": do(PutCheckpoint(1, checkpoint("cp", 2))),
    "large batch": do(AppendMany(1, 4, tuple(note(name, "x" * 300) for name in "efg"))),
    "rewind": do(AppendMany(1, 2, notes("xy")), now_ms=5),
    "refused: above the head": do(Append(1, 9, note("never"))),
    "take-over": do(Lease(4)),
    "refused: stale": do(Append(1, 4, note("never"))),
    "append in a new segment": do(Append(4, 4, note("z", "z" * 900))),
    "second rewind": do(Append(4, 1, note("q")), now_ms=50),
    "fork": lambda store: store.fork(KEY, FORK, 1, 7),
    "append to the fork": do(Append(4, 1, note("f")), FORK),
    "sweep of the old archive": lambda store: store.sweep(10),
    "append behind the sweep": do(Append(4, 2, note("r"))),
    "retire": do(Retire(), now_ms=60),
    "sweep of all": lambda store: store.sweep(100),
    "vacuum": lambda store: store.vacuum(),
}


class Killer:
    """Counts the points of this process, and ends it at one of them."""

    def __init__(self, at: int) -> None:
        self._left = at
        for name in ("fsync", "fdatasync", "ftruncate", "replace", "rename", "unlink", "link", "mkdir"):
            setattr(os, name, self._counted(getattr(os, name)))
        self._write, self._pwrite = os.write, os.pwrite
        os.write, os.pwrite = self.write, self.pwrite  # type: ignore[assignment]

    def point(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, descriptor: int, data: bytes) -> int:
        self.point()
        if self._left == 1:
            self._write(descriptor, data[: len(data) // 2])
        self.point()
        written = self._write(descriptor, data)
        self.point()
        return written

    def pwrite(self, descriptor: int, data: bytes, byte: int) -> int:
        self.point()
        if self._left == 1:
            self._pwrite(descriptor, data[: len(data.rstrip()) // 2], byte)
        self.point()
        written = self._pwrite(descriptor, data, byte)
        self.point()
        return written

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.point()
            result = call(*arguments, **named)
            self.point()
            return result

        return counted


def run(store: Store, told: Callable[[str], object]) -> None:
    for name, step in STEPS.items():
        try:
            step(store)
        except RefusedError:
            assert name.startswith("refused")
        told(name)


def run_and_die(folder: Path, durability: Any, at: int) -> None:
    done = os.open(folder / "done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    write = os.write
    Killer(at)
    with JsonlStore(str(folder / "journals"), durability=durability, segment_bytes=SEGMENT_BYTES) as store:
        run(store, lambda name: write(done, name.encode() + b"\n"))


def main(folder: Path, durability: Any) -> None:
    for at in count(1):
        place = folder / str(at)
        place.mkdir()
        child = os.fork()
        if child == 0:
            run_and_die(place, durability, at)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            os.write(1, b"%d\n" % at)
            return
        assert os.WIFSIGNALED(status), status


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
