"""Harnesses that a test starts by the process edge, and what of them lives."""

import os
import uuid

from incarnate.supervision.edge import RUN_ID_VARIABLE, Deadlines
from incarnate.supervision.process_table import KernelTable, Process
from incarnate.supervision.processes import HarnessProcess, ProcessEdge

AT_ONCE = Deadlines(terminate=0)


class Started:
    """What a test has started; ended at its end."""

    def __init__(self) -> None:
        self.edge = ProcessEdge(orphaned=0.2)
        self._all: list[HarnessProcess] = []

    def shell(self, script: str, **env: str) -> HarnessProcess:
        running = self.edge.start(["sh", "-c", script], env={**os.environ, **env}, cwd=None, run_id=uuid.uuid4().hex)
        self._all.append(running)
        return running

    def close(self) -> None:
        for running in self._all:
            running.close()


def alive(running: HarnessProcess) -> list[Process]:
    return KernelTable().carrying(RUN_ID_VARIABLE, running.identity.run_id)
