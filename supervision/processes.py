"""The one module that starts harnesses: each below a keeper of its own, which holds and ends all of its tree."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from incarnate.domain.errors import HarnessNotStartedError
from incarnate.supervision import keeper
from incarnate.supervision.edge import RUN_ID_VARIABLE, Deadlines, Ended, Identity, mark_of
from incarnate.supervision.leftovers import end_leftovers
from incarnate.supervision.process_table import process_table, send
from incarnate.supervision.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from incarnate.supervision.edge import SignalKind
    from incarnate.supervision.process_table import Process, ProcessTable

__all__ = ["HarnessProcess", "ProcessEdge"]

_READ_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024  # a harness that prints in bursts does not wait for us; 1 MiB is what anybody may ask for
_NOW = Deadlines(terminate=0.0)
_STARTING_SECONDS = 60.0
_GOING_SECONDS = 1.0
_STUCK_SECONDS = 5.0  # how much longer than it was told a keeper may take
_SIGNALS: dict[SignalKind, int] = {
    "interrupt": signal.SIGINT,
    "terminate": signal.SIGTERM,
    "kill": signal.SIGKILL,
}


class ProcessEdge:
    """Starts processes on this machine, as `Edge` has it.

    `orphaned` is how many seconds a harness has between SIGTERM and SIGKILL when its supervisor has died. `linger` is
    how many what it started may outlive it while a living supervisor says nothing.
    """

    def __init__(self, *, orphaned: float = 2.0, linger: float = 60.0) -> None:
        self._orphaned = orphaned
        self._linger = linger
        self._table = process_table()

    def check(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        """As the port."""
        find_program(argv[0], env, cwd)

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, run_id: str) -> HarnessProcess:
        """As the port. Standard input is empty: what a first life reads, a second one would lack.

        Raises:
            HarnessNotStartedError: there is no such program, or it may not be run.
            OSError: the system is short of something, such as processes or descriptors.
        """
        header = {
            "argv": [_letters(word) for word in argv],
            "env": {_letters(name): _letters(value) for name, value in {**env, RUN_ID_VARIABLE: run_id}.items()},
            "cwd": None if cwd is None else _letters(cwd),
            "mark": mark_of(run_id),
            "orphaned": self._orphaned,
            "linger": self._linger,
        }
        started = HarnessProcess(self._table, argv[0], run_id)
        try:
            started.launch(json.dumps(header).encode())
        except BaseException:
            started.close()
            raise
        return started

    def identity(self, run_id: str) -> Identity:
        """As the port."""
        return Identity(run_id, self._table.boot_id())

    def leftovers(self, identity: Identity, deadlines: Deadlines) -> Ended:
        """As the port."""
        return end_leftovers(self._table, identity, deadlines)


class HarnessProcess:
    """A harness below its keeper, as `Running` has it."""

    def __init__(self, table: ProcessTable, program: str, run_id: str) -> None:
        self._table = table
        self._program = program
        self._changed = threading.Condition()
        self._started: tuple[int, int] | None = None  # the inner keeper, the harness
        self._failure: str | None = None
        self._shortage: OSError | None = None
        self._status: int | None = None
        self._ended: Ended | None = None
        self._is_over = False  # both keepers are gone
        self._at_end = self._is_closed = False
        self._output, output = os.pipe()
        self._awake, self._wake = os.pipe()  # readable once the harness's own process has ended
        self._control, control = socket.socketpair()
        try:
            self._keeper = _start_keeper(control, output, run_id)
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(output)
            control.close()
        self._outer = found = table.find(self._keeper.pid)
        self._inner: Process | None = None
        self._identity = Identity(run_id, table.boot_id(), self._keeper.pid, found.started if found else None)
        self._listener = threading.Thread(target=self._listen, name="incarnate-keeper", daemon=True)
        self._listener.start()

    def launch(self, header: bytes) -> None:
        """Have the keeper start the harness, and wait until it runs.

        Raises:
            HarnessNotStartedError: there is no such program, or it may not be run.
            OSError: the system is short of something.
        """
        with suppress(OSError):  # a keeper that has died is seen below
            self._control.sendall(b"%010d%b" % (len(header), header))
        with self._changed:
            self._changed.wait_for(self._is_told, _STARTING_SECONDS)
            if self._shortage is not None:
                raise self._shortage
            if self._started is None and not self._is_killed():
                if self._failure is None:
                    raise OSError(errno.EAGAIN, "its keeper has ended")
                raise HarnessNotStartedError(self._program, self._failure)

    def _is_told(self) -> bool:
        """Whether it runs, or will not."""
        return self._started is not None or self._is_over or bool(self._failure or self._shortage)

    def _is_killed(self) -> bool:
        """Whether somebody killed a keeper before it told of a start: that is a death as any other, not a refusal."""
        return self._is_over and self._failure is None and (self._keeper.returncode or 0) <= 0

    @property
    def identity(self) -> Identity:
        """As the port."""
        return self._identity

    def read(self, timeout: float) -> bytes | None:
        """As the port."""
        if self._at_end:
            return b""
        # The end of the tree is looked up before the pipe: what was written before it is in the pipe by then.
        is_over = self._is_over
        ready = keeper.readable([self._output, self._awake], timeout)
        if self._output in ready:
            chunk = os.read(self._output, _READ_BYTES)
            self._at_end = not chunk
            return chunk
        if is_over:  # held open by somebody outside of the tree
            self._at_end = True
            return b""
        return None

    def signal(self, kind: SignalKind) -> None:
        """As the port."""
        self._say(f"signal {int(_SIGNALS[kind])}")

    def poll(self) -> int | None:
        """As the port."""
        return self._status

    def descendants(self) -> tuple[int, ...]:
        """As the port."""
        ours = {self._keeper.pid, *(self._started or ())}
        below = self._table.below([self._keeper.pid, *(self._started or ())])
        return tuple(sorted({process.pid for process in below} - ours))

    def end(self, deadlines: Deadlines) -> Ended:
        """As the port."""
        self._say(f"end {deadlines.interrupt} {deadlines.terminate} {deadlines.give_up}")
        self._to_keepers(signal.SIGCONT)  # one that is stopped ends nothing
        in_time = deadlines.interrupt + deadlines.terminate + deadlines.give_up + _STUCK_SECONDS
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_over, in_time):
                self._to_keepers(signal.SIGKILL)  # it was stopped again, or hangs: what it held is ended without it
                self._changed.wait_for(lambda: self._is_over)
            if self._ended is not None:
                return self._ended
        # The keepers were killed, so nobody held the tree: what is left of it is found by its identity.
        ended = end_leftovers(self._table, self._identity, deadlines)
        self._ended = ended
        return ended

    def close(self) -> None:
        """As the port."""
        if self._is_closed:
            return
        self._is_closed = True
        self.end(_NOW)
        self._listener.join()
        self._let_go()

    def _let_go(self) -> None:
        self._control.close()
        for descriptor in (self._output, self._awake, self._wake):
            os.close(descriptor)

    # the keeper

    def _to_keepers(self, number: int) -> None:
        for process in (self._inner, self._outer):
            if process is not None:
                send(self._table, process, number)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # it is gone, and with it all that it could be told about
            self._control.sendall(f"{line}\n".encode())

    def _listen(self) -> None:
        for line in _lines(self._control):
            word, _, rest = line.partition(" ")
            with self._changed:
                self._hear(word, rest)
                self._changed.notify_all()
        self._keeper.wait()
        if self._started is not None:
            self._await(self._started[0])
        with self._changed:
            self._is_over = True
            self._exit(-signal.SIGKILL)
            self._changed.notify_all()

    def _await(self, inner: int) -> None:
        """Until the inner keeper, which has let go of its socket, is gone too."""
        try:
            os.waitpid(inner, 0)  # ours if the outer one was killed and we are a container's first process
        except ChildProcessError:
            until = time.monotonic() + _GOING_SECONDS
            while self._table.find(inner) is not None and time.monotonic() < until:
                time.sleep(0.001)

    def _hear(self, word: str, rest: str) -> None:
        if word == "started":
            inner, harness = map(int, rest.split())
            self._started = (inner, harness)
            self._inner = self._table.find(inner)
        elif word == "failed":
            number, where = rest.split()
            reason = os.strerror(int(number))
            if where == "process":
                self._shortage = OSError(int(number), reason)
            else:
                self._failure = reason if where == "program" else f"its working directory: {reason}"
        elif word == "exited":
            self._exit(int(rest))
        elif word == "ended":
            orphans, _, pids = rest.partition(" ")
            self._ended = Ended(int(orphans), tuple([int(pid) for pid in pids.split(",") if pid]))

    def _exit(self, status: int) -> None:
        if self._status is None:
            self._status = status
            os.write(self._wake, b".")


def _start_keeper(control: socket.socket, output: int, run_id: str) -> subprocess.Popen[bytes]:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # a user at the limit of what pipes may take
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    # Of the environment it has what its interpreter may need to start, and the id by which it is found.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(control.fileno()), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=output,
        pass_fds=[control.fileno()],
        env={**env, RUN_ID_VARIABLE: run_id},
        start_new_session=True,
    )


def _lines(stream: socket.socket) -> Iterator[str]:
    rest = b""
    while True:
        try:
            some = stream.recv(4096)
        except OSError:
            return
        if not some:
            return
        *lines, rest = (rest + some).split(b"\n")
        for line in lines:
            yield line.decode()


def _letters(text: str) -> str:
    return os.fsencode(text).decode("latin-1")  # JSON holds no bytes; a letter for each does
