"""Who is below a process, of this machine's kernel: for the keeper, of the standard library alone."""

from __future__ import annotations

import errno
import os
import sys

__all__ = ["IS_LINUX", "descendants", "group_as_tree", "group_of", "kill", "living"]

IS_LINUX = sys.platform == "linux"


def kill(pid: int, number: int) -> bool:
    """Send a signal; whether there is such a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's, such as below sudo: told as what could not be ended
    return True


def descendants(pid: int) -> list[int]:
    """All processes below one, of this machine's kernel: parents first."""
    found: list[int] = []
    to_do = [pid]
    try:
        while to_do:
            children = _children(to_do.pop())
            found += children
            to_do += children
    except FileNotFoundError:  # a kernel without the lists of children
        return _descendants_by_scan(pid)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    folder = f"/proc/{pid}/task"
    try:
        threads = os.listdir(folder)
    except OSError:
        return children  # it has just ended; what it left is ours, and found in the next round
    for thread in threads:
        try:
            with open(f"{folder}/{thread}/children", "rb", buffering=0) as stream:
                children += map(int, (stream.read(1 << 20) or b"").split())
        except OSError as error:
            if error.errno == errno.ENOENT and os.path.exists(f"{folder}/{thread}/stat"):
                raise FileNotFoundError(folder) from error
    return children


def _descendants_by_scan(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _stat(int(name))
            if stat is not None:
                children.setdefault(int(stat[1]), []).append(int(name))
    found = list(children.get(pid, ()))
    for child in found:
        found += children.get(child, ())  # grows while it is walked
    return found


def _stat(pid: int) -> list[bytes] | None:
    """State, parent and what follows; None of a process that is not there."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            data = stream.read(4096) or b""
    except OSError:
        return None
    return data.rpartition(b")")[2].split() or None


def group_of(pid: int) -> int:
    """Its process group."""
    stat = _stat(pid) if IS_LINUX else None
    return pid if stat is None else int(stat[2])  # that of a process that has just ended is empty, or its own


def living(pids: list[int]) -> list[int]:
    """Those that are no zombies, which a parent that lives may leave for long."""
    if not IS_LINUX:
        return pids
    return [pid for pid in pids if (_stat(pid) or [b"Z"])[0] not in {b"Z", b"X"}]


def group_as_tree(leader: int) -> list[int]:
    """What stands for the tree where it cannot be seen: the group that the harness leads, while anybody is in it."""
    if leader == 0:
        return []  # it was not started
    try:
        os.killpg(leader, 0)
    except OSError:
        return []
    return [-leader]
