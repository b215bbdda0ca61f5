"""What a run left alive, found by its recorded identity and ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from incarnate.supervision.edge import RUN_ID_VARIABLE, Deadlines, Ended, Identity, mark_of
from incarnate.supervision.process_table import send

if TYPE_CHECKING:
    from incarnate.supervision.process_table import Process, ProcessTable

__all__ = ["end_leftovers", "find_leftovers"]

_PAUSE = 0.02
_KILL_PAUSE = 0.005
_LOOKS = 2  # in a row that find nobody


def find_leftovers(table: ProcessTable, identity: Identity) -> list[Process]:
    """The recorded process, those that carry the run id or its mark, and all below; never us, nor who started us.

    Parents stand before their children: a shell whose command was ended first would go on with the next one.
    """
    carrying = [*table.carrying(RUN_ID_VARIABLE, identity.run_id), *table.marked(mark_of(identity.run_id))]
    found = {process.pid: process for process in carrying}
    recorded = None if identity.pid is None else table.find(identity.pid)
    if recorded is not None and recorded.started == identity.started:
        found[recorded.pid] = recorded
    ours = _ours(table)
    for pid in ours & set(found):
        del found[pid]  # what is below us is ours too, unless it carries the id itself
    below = {process.pid for process in table.below(found)}
    tops = [process for process in found.values() if process.pid not in below]
    return [one for one in (*tops, *table.below([top.pid for top in tops])) if one.pid not in ours]


def end_leftovers(table: ProcessTable, identity: Identity, deadlines: Deadlines) -> Ended:
    """End them, and wait until none is left: SIGTERM, then SIGKILL again and again.

    The keeper is among them; told to, it ends what is below it, whatever that carries.
    """
    if not identity.run_id or identity.boot_id != table.boot_id():
        return Ended()  # after a boot nothing is left, and all pids are somebody else's
    seen: set[Process] = set()
    for process in find_leftovers(table, identity):
        _send(table, process, signal.SIGTERM)
        seen.add(process)
    killed_from = time.monotonic() + deadlines.terminate
    give_up = killed_from + deadlines.give_up
    empty = 0
    while True:
        found = find_leftovers(table, identity)
        seen.update(found)
        _reap(seen)
        # A process that is just becoming another program has no environment for a moment: it is looked for again.
        empty = 0 if found else empty + 1
        now = time.monotonic()
        if empty == _LOOKS or now >= give_up:
            return Ended(len(seen), tuple(sorted(process.pid for process in found)))
        if now >= killed_from:
            for process in found:
                _send(table, process, signal.SIGKILL)
        time.sleep(_PAUSE if found and now < killed_from else _KILL_PAUSE)


def _send(table: ProcessTable, process: Process, number: int) -> None:
    with suppress(PermissionError):  # told in the end as what could not be ended
        if send(table, process, number) and number == signal.SIGTERM:
            send(table, process, signal.SIGCONT)  # what is stopped would never hear of it


def _reap(processes: set[Process]) -> None:
    """As the first process of a container we are given orphans, and nobody else takes their exit status."""
    if os.getpid() == 1:
        for process in processes:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _ours(table: ProcessTable) -> set[int]:
    """This process and those above it: a run inside a run carries the outer one's id until it is given its own."""
    ours = {os.getpid()}
    pid: int | None = os.getppid()
    while pid is not None and pid > 0 and pid not in ours:
        ours.add(pid)
        pid = table.parent(pid)
    return ours
