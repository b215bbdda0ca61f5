"""The program that holds one harness together with all it starts, and ends it: `python -I -S keeper.py FD PID`.

It is a program of its own, of the standard library alone, so that it starts at once and lives on when the
supervisor is killed. It is two processes. The inner one starts the harness and is a child subreaper: whatever a harness
starts, into whatever session, is below it to the end, so it can wait for all of it and end all of it. The outer one
does nothing but wait for the inner one, and takes its place should that be killed; if the outer one is killed, the
inner one ends the tree. Both end it when the supervisor (PID) dies. Only a kill of all three at once leaves something,
which the next supervisor finds by the recorded identity.

FD is a socket to the supervisor. It sends the length of a JSON header in ten digits, the header (argv, env, cwd, mark,
orphaned, linger), and lines: `signal N`, `end INTERRUPT TERMINATE GIVE_UP`. It is sent lines: `started INNER HARNESS`
or `failed ERRNO WHERE`, `exited STATUS`, `ended ORPHANS PID,PID`.

Where there is no subreaper (anything but Linux), the process group of the harness is what is held and ended.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from .process_tree import IS_LINUX, descendants, group_as_tree, group_of, kill, living
else:  # the program: python -I looks for modules nowhere but in the standard library
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # pathlib takes 10 ms to import
    from process_tree import IS_LINUX, descendants, group_as_tree, group_of, kill, living

__all__ = ["main", "readable"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_PAUSE = 0.005  # between rounds of SIGKILL once a round found nobody new
_MOST_ROUNDS = 500  # without a pause, while what is killed forks on
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP, signal.SIGTTOU)
_SIZE_DIGITS = 10
_STUCK_SECONDS = 30.0  # how long the inner one may take once the supervisor has died, more than any ending
_LEAST_MARK = 1 << 61
_LADDER_END = 0  # no signal: the rung at which everything is killed


def main(arguments: list[str]) -> int:
    """Keep one harness; exits once nothing of it lives."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    # Whoever started the supervisor may have blocked some, and ignored the one of which nobody waits for a child.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)  # a ^C is the supervisor's to act on
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    supervisor = _Parent(int(arguments[1]))
    try:
        inner = os.fork()
    except OSError as error:
        _tell(control, _no_process(error))
        return 0
    if inner == 0:
        outer = os.getppid()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # a fork does not pass it on
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        keeper = _Keeper(control, supervisor)
        if os.getppid() != outer:
            return 0  # killed before we could ask to be told; nothing was started
        return keeper.run()
    _let_go_of_output()
    signal.signal(signal.SIGTERM, lambda *_: kill(inner, signal.SIGTERM))
    status = _watch(inner, supervisor)
    if status != 0 or descendants(os.getpid()):
        stand_in = _Keeper(control, supervisor)
        stand_in.begin((), 10.0)
        stand_in.loop()
    return 0


def readable(descriptors: list[int], timeout: float | None) -> list[int]:
    """Those that can be read, or are at their end, in so many seconds; None waits for one.

    As select has it, which takes no number above 1023: a program may have more descriptors than that.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [ready for ready, _ in poll.poll(None if timeout is None else math.ceil(timeout * 1000))]


def _watch(inner: int, supervisor: _Parent) -> int:
    """Wait for the inner one; once the supervisor has died, not for ever: it may be stopped, and then ends nothing."""
    with suppress(OSError, AttributeError):
        handle = os.pidfd_open(inner)
        is_seen = supervisor.handle >= 0
        watched = [handle, supervisor.handle] if is_seen else [handle]
        while not (ready := readable(watched, None if is_seen else 1.0)) and not supervisor.look():
            pass
        if handle not in ready:
            kill(inner, signal.SIGCONT)
            if not readable([handle], _STUCK_SECONDS):
                kill(inner, signal.SIGKILL)
    return os.waitpid(inner, 0)[1]


class _Parent:
    """The supervisor, which is watched through a handle of the kernel, so that no other process of its pid is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = -1
        with suppress(OSError, AttributeError):
            self.handle = os.pidfd_open(pid)
        self.is_gone = os.getppid() != pid

    def look(self) -> bool:
        """Whether it has died."""
        if not self.is_gone:
            if self.handle >= 0:
                self.is_gone = bool(readable([self.handle], 0))
            else:
                with suppress(PermissionError):
                    self.is_gone = not kill(self.pid, 0)
        return self.is_gone


class _Keeper:
    def __init__(self, control: socket.socket, supervisor: _Parent) -> None:
        self._control = control
        self._supervisor = supervisor
        self._harness = 0
        self._status: int | None = None
        self._orphans = 0
        self._asked = b""
        self._is_open = True  # the control socket
        self._orphaned, self._linger = 2.0, 60.0
        # The ending: what is sent still, until when the last one may take, and how long SIGKILL may.
        self._rungs: list[tuple[int, float]] | None = None
        self._until: float | None = None
        self._kill_from = 0.0
        self._give_up = 10.0
        self._terminated = False
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "_terminated", True))
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def run(self) -> int:
        """Start the harness, and keep it to the end of all it started."""
        header = json.loads(self._read_header())
        self._orphaned, self._linger = header["orphaned"], header["linger"]
        _mark(header["mark"])
        argv, env = [_bytes(word) for word in header["argv"]], header["env"]
        failure = self._start(argv, {_bytes(name): _bytes(env[name]) for name in env}, header["cwd"])
        _let_go_of_output()
        if failure is not None:
            self._tell(failure)
            return 0
        self._tell(f"started {os.getpid()} {self._harness}")
        self.loop()
        kill(os.getppid(), signal.SIGCONT)  # the outer one, if it was stopped: it has nothing to wait for any more
        return 0

    def loop(self) -> None:
        """Until nothing lives, or cannot be killed."""
        while True:
            if self._reap():
                break
            now = time.monotonic()
            if self._supervisor.look() or not self._is_open or self._terminated:
                self.begin(((signal.SIGTERM, self._orphaned),), 10.0)
            elif self._until is not None and self._rungs is None and now >= self._until:
                self.begin(((signal.SIGTERM, self._orphaned),), 10.0)  # nobody told us to, in a minute
            if self._rungs is not None and not self._climb(now):
                break
            self._wait()
        left = ",".join(map(str, living(self._below())))
        self._tell(f"ended {self._orphans} {left}")

    def begin(self, rungs: tuple[tuple[int, float], ...], give_up: float) -> None:
        """Begin to end the tree; if that has begun, it takes no longer than this would."""
        now = time.monotonic()
        kill_from = now + sum([seconds for _, seconds in rungs])
        if self._rungs is None:
            self._rungs = [*[rung for rung in rungs if rung[1] > 0], (_LADDER_END, give_up)]
            self._until, self._kill_from = now, kill_from
            if self._status is None and self._harness:
                self._count_orphans()
        elif self._rungs and self._until is not None:
            self._kill_from = min(self._kill_from, kill_from)
            self._until = min(self._until, self._kill_from)

    def _climb(self, now: float) -> bool:
        """Send what is due; False once even SIGKILL was given up."""
        assert self._rungs is not None
        assert self._until is not None
        if now >= self._until:
            if not self._rungs:
                return False
            number, seconds = self._rungs.pop(0)
            self._until = now + seconds
            if number != _LADDER_END:
                self._until = min(self._until, self._kill_from)
                # Parents first: a shell whose command was ended before it would go on with the next one.
                for pid in self._below():
                    kill(pid, number)
                    kill(pid, signal.SIGCONT)  # what is stopped would never hear of it
        if not self._rungs:
            self._kill_all()
        return True

    def _kill_all(self) -> None:
        """SIGKILL to all, at once again to whoever is new: what forks on is overtaken, or nothing is left."""
        seen: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            below = self._below()
            if seen.issuperset(below):
                return
            # A group is killed at once, whoever forks in it meanwhile. None of them is ours: the harness has a session
            # of its own, and nobody leaves a session for another one's group.
            groups = {-group_of(pid) for pid in below} if seen else set[int]()
            for pid in (*groups, *below):
                kill(pid, signal.SIGKILL)
            seen.update(below)
            if self._reap():
                return

    # the harness

    def _start(self, argv: list[bytes], env: dict[bytes, bytes], cwd: str | None) -> str | None:
        told, tell = os.pipe()
        try:
            self._harness = os.fork()
        except OSError as error:
            return _no_process(error)
        if self._harness == 0:
            _exec(argv, env, cwd, tell)
        os.close(tell)
        with os.fdopen(told, "rb") as stream:
            failure = stream.read().decode()
        if failure:
            os.waitpid(self._harness, 0)
        return f"failed {failure}" if failure else None

    def _reap(self) -> bool:
        """Take the exit status of all that ended below us; whether nothing is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return IS_LINUX or not self._below()
            if pid == 0:
                return False
            if pid == self._harness and self._status is None:
                self._status = os.waitstatus_to_exitcode(status)
                if self._rungs is None:
                    self._count_orphans()
                    self._until = time.monotonic() + self._linger
                self._tell(f"exited {self._status}")

    def _count_orphans(self) -> None:
        self._orphans = len([pid for pid in living(self._below()) if pid != self._harness])

    def _below(self) -> list[int]:
        return descendants(os.getpid()) if IS_LINUX else group_as_tree(self._harness)

    # the supervisor

    def _wait(self) -> None:
        now = time.monotonic()
        timeout = None if self._until is None else max(0.0, self._until - now)
        if self._rungs == []:
            timeout = _KILL_PAUSE
        watched = [self._wake]
        if self._is_open:
            watched.append(self._control.fileno())
        if not self._supervisor.is_gone:
            if self._supervisor.handle >= 0:
                watched.append(self._supervisor.handle)
            else:
                timeout = min(0.5, 0.5 if timeout is None else timeout)
        ready = readable(watched, timeout)
        if self._wake in ready:
            with suppress(BlockingIOError):
                while os.read(self._wake, 4096):
                    pass
        if self._is_open and self._control.fileno() in ready:
            self._hear()

    def _hear(self) -> None:
        try:
            some = self._control.recv(4096)
        except OSError:
            some = b""
        self._is_open = bool(some)
        self._asked += some
        *lines, self._asked = self._asked.split(b"\n")
        for line in lines:
            word, *numbers = line.decode().split()
            if word == "signal" and self._status is None and self._harness:
                kill(self._harness, int(numbers[0]))  # it was not reaped yet, so the pid is its own
            elif word == "end":
                interrupt, terminate, give_up = map(float, numbers)
                self.begin(((signal.SIGINT, interrupt), (signal.SIGTERM, terminate)), give_up)

    def _tell(self, line: str) -> None:
        _tell(self._control, line)

    def _read_header(self) -> bytes:
        size = self._control.recv(_SIZE_DIGITS, socket.MSG_WAITALL)
        header = self._control.recv(int(size), socket.MSG_WAITALL) if len(size) == _SIZE_DIGITS else b""
        if not header or len(header) < int(size):
            sys.exit(0)  # the supervisor has died before it said what to start
        return header


def _tell(control: socket.socket, line: str) -> None:
    with suppress(OSError):
        control.sendall(f"{line}\n".encode())


def _no_process(error: OSError) -> str:
    """That the system has no process for us now, as the supervisor is told it."""
    return f"failed {error.errno or errno.EAGAIN} process"


def _exec(argv: list[bytes], env: dict[bytes, bytes], cwd: str | None, tell: int) -> None:
    """Become the harness. Its own session keeps a terminal's signals away; no disposition of ours is passed on."""
    where = "cwd"
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError):
                signal.signal(number, signal.SIG_DFL)
        if cwd is not None:
            os.chdir(_bytes(cwd))
        where = "program"
        os.execvpe(argv[0], argv, env)  # noqa: S606 - a list, no shell
    except BaseException as error:  # noqa: BLE001 - told to whoever waits at the other end
        code = (error.errno if isinstance(error, OSError) else None) or errno.EINVAL
        os.write(tell, f"{code} {where}".encode())
    os._exit(127)


def _mark(mark: int) -> None:
    """Give all that is started from here a limit that no program reaches or notices, and no environment takes away.

    It is how long a process of a real-time class may run without a pause, in microseconds: some 70,000 years.
    """
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not every system has it

        soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
        if soft == resource.RLIM_INFINITY or soft >= _LEAST_MARK:  # else somebody means it
            resource.setrlimit(resource.RLIMIT_RTTIME, (mark, hard))


def _prctl(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _let_go_of_output() -> None:
    """Or the harness's output never ends."""
    os.dup2(0, 1)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")  # each letter is a byte, whatever the locale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
