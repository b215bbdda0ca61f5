"""Several processes on one store, and the sudden death of one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from incarnate.domain.errors import StaleIncarnationError
from incarnate.storage.contract.harness import Capability, Contract, needs
from incarnate.storage.contract.log import Log, soon
from incarnate.storage.contract.peer import race

__all__ = ["Processes"]

_PATIENCE = 60
_ENOUGH = 30
"""How many events a process was acknowledged when it is killed."""


@contextmanager
def peer(url: str, errand: str) -> Generator[subprocess.Popen[str]]:
    """Another process on the store, dead at the end of the block."""
    line = [sys.executable, "-m", "incarnate.storage.contract.peer", url, errand]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    with process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


class Processes(Contract):
    """A store is one store for all its processes, and a process that dies takes nothing with it."""

    @needs(Capability.PROCESSES)
    def test_i2_a_process_is_refused_once_another_has_taken_over(self, tmp_path: Path) -> None:
        with self.open_store(tmp_path) as store:
            log = Log(store)
            log.append(0, "a")
            before = store.version()
            with peer(self.store_url(tmp_path), "take-over") as process:
                process.communicate(timeout=_PATIENCE)
                assert 0 == process.returncode

            with pytest.raises(StaleIncarnationError) as refusal:
                log.append(1, "b")
            assert (7, "ap") == (refusal.value.current, log.names)
            assert soon(lambda: before != store.version())

    @needs(Capability.PROCESSES)
    def test_i1_two_processes_that_race_lose_and_double_nothing(self, tmp_path: Path) -> None:
        with self.open_store(tmp_path) as store, peer(self.store_url(tmp_path), "race") as process:
            assert "ready" == told(process)
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            written = race(Log(store), "ours")
            answer, _ = process.communicate(timeout=_PATIENCE)
            for line in answer.splitlines():
                offset, name = line.split()
                written[int(offset)] = name

            assert sorted(written.items()) == [(one.offset, one.event.id) for one in Log(store).events]

    @needs(Capability.PROCESSES, Capability.DURABLE)
    def test_i6_what_a_killed_process_was_acknowledged_is_there(self, tmp_path: Path) -> None:
        self.open_store(tmp_path).close()
        with peer(self.store_url(tmp_path), "go-on") as process:
            lines = [told(process) for _ in range(_ENOUGH)]
            process.kill()
            assert process.stdout is not None
            lines += process.stdout.read().splitlines()
        acknowledged = [line.split()[1] for line in lines if len(line.split()) == 2]

        with self.open_store(tmp_path) as store:
            names = [one.event.id for one in Log(store).events]
            assert len(names) - 1 <= len(acknowledged) <= len(names)
            assert names[: len(acknowledged)] == acknowledged
            assert 2 == Log(store).claim().fence
