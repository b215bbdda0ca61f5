"""Who lives on this machine: processes by their start, by those above them, and by the run id in their environment."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from incarnate.domain.errors import HarnessNotStartedError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KernelTable", "PortableTable", "Process", "ProcessTable", "process_table", "send"]


class Process(NamedTuple):
    """One process, told from every other one that has or had its pid by when it was started."""

    pid: int
    started: int


class ProcessTable(Protocol):
    """The processes of this machine, as far as this user may see them. Zombies are none."""

    def boot_id(self) -> str:
        """What tells this boot from all others."""
        ...

    def find(self, pid: int) -> Process | None:
        """The process that has a pid now."""
        ...

    def parent(self, pid: int) -> int | None:
        """The pid of the process above; None where there is none."""
        ...

    def carrying(self, variable: str, value: str) -> list[Process]:
        """Those in whose environment the variable was set so when their program was started."""
        ...

    def marked(self, mark: int) -> list[Process]:
        """Those that the keeper's mark was given to, or to one that started them; none where there are no marks."""
        ...

    def below(self, tops: Iterable[int]) -> list[Process]:
        """All that descend from any of some pids."""
        ...


def process_table() -> ProcessTable:
    """The one of this machine.

    Raises:
        MissingExtraError: it is not Linux, and psutil is not installed.
        HarnessNotStartedError: /proc is not there, or has other processes under our pids.
    """
    if sys.platform != "linux":
        return PortableTable()
    pid = ""
    with suppress(OSError):
        pid = str(Path("/proc/self").readlink())
    if pid != str(os.getpid()):  # in a namespace of pids with the /proc of another one: whom would we end?
        refused = HarnessNotStartedError("a harness", "/proc is not there, or has the processes of another namespace")
        refused.hint = "mount /proc where it runs, as containers do by themselves: unshare --pid --fork --mount-proc"
        raise refused
    return KernelTable()


class KernelTable:
    """Read from /proc."""

    def boot_id(self) -> str:
        """As the port."""
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

    def find(self, pid: int) -> Process | None:
        """As the port."""
        stat = _stat(pid)
        return None if stat is None else Process(pid, stat.started)

    def parent(self, pid: int) -> int | None:
        """As the port."""
        stat = _stat(pid)
        return None if stat is None else stat.parent

    def carrying(self, variable: str, value: str) -> list[Process]:
        """As the port."""
        wanted = os.fsencode(f"{variable}={value}")
        found: list[Process] = []
        for pid in _pids():
            with suppress(OSError):  # another user's, or just ended
                if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found += filter(None, [self.find(pid)])
        return found

    def marked(self, mark: int) -> list[Process]:
        """As the port."""
        wanted = b" %d " % mark
        found: list[Process] = []
        for pid in _pids():
            with suppress(OSError):
                if wanted in Path(f"/proc/{pid}/limits").read_bytes():
                    found += filter(None, [self.find(pid)])
        return found

    def below(self, tops: Iterable[int]) -> list[Process]:
        """As the port."""
        stats = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
        return _below(tops, {pid: stat.parent for pid, stat in stats.items()}, {p: s.started for p, s in stats.items()})


class PortableTable:
    """By psutil, where there is no /proc."""

    def __init__(self) -> None:
        try:
            import psutil  # noqa: PLC0415 - only where it is needed
        except ImportError as error:
            raise MissingExtraError("supervise", "incarnate run") from error
        self._psutil = psutil

    def boot_id(self) -> str:
        """As the port."""
        return str(int(self._psutil.boot_time()))

    def find(self, pid: int) -> Process | None:
        """As the port."""
        try:
            process = self._psutil.Process(pid)
            is_zombie = process.status() == self._psutil.STATUS_ZOMBIE
        except self._psutil.Error:
            return None
        return None if is_zombie else Process(pid, int(process.create_time() * 1000))

    def parent(self, pid: int) -> int | None:
        """As the port."""
        try:
            return int(self._psutil.Process(pid).ppid())
        except self._psutil.Error:
            return None

    def carrying(self, variable: str, value: str) -> list[Process]:
        """As the port."""
        found: list[Process] = []
        for process in self._psutil.process_iter():
            with suppress(self._psutil.Error, OSError):
                if process.environ().get(variable) == value:
                    found += filter(None, [self.find(process.pid)])
        return found

    def marked(self, mark: int) -> list[Process]:  # noqa: ARG002 - the port's
        """As the port: none."""
        return []

    def below(self, tops: Iterable[int]) -> list[Process]:
        """As the port."""
        found: dict[int, Process] = {}
        for top in tops:
            with suppress(self._psutil.Error):
                for process in self._psutil.Process(top).children(recursive=True):
                    found.update({known.pid: known for known in [self.find(process.pid)] if known is not None})
        return list(found.values())


class _Stat(NamedTuple):
    parent: int
    started: int


def _stat(pid: int) -> _Stat | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if not fields or fields[0] in {b"Z", b"X"}:
        return None
    return _Stat(int(fields[1]), int(fields[19]))


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def _below(tops: Iterable[int], parents: dict[int, int], started: dict[int, int]) -> list[Process]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, None] = {}
    to_do = list(tops)
    while to_do:
        for child in children.get(to_do.pop(), ()):
            if child not in found:
                found[child] = None
                to_do.append(child)
    return [Process(pid, started[pid]) for pid in found]


def send(table: ProcessTable, process: Process, number: int) -> bool:
    """Send a signal to this process and no other that got its pid meanwhile; whether it was there."""
    handle = -1
    try:
        if sys.platform == "linux":
            with suppress(OSError):  # an old kernel, or one that forbids it
                handle = os.pidfd_open(process.pid)
        if table.find(process.pid) != process:
            return False
        if sys.platform == "linux" and handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True
