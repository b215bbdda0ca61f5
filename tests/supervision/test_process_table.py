"""Who lives on this machine, by each way to know."""

import os
import signal
import sys
from pathlib import Path

import pytest

from incarnate.domain.errors import HarnessNotStartedError, MissingExtraError
from incarnate.supervision import process_tree
from incarnate.supervision.edge import RUN_ID_VARIABLE
from incarnate.supervision.process_table import KernelTable, PortableTable, Process, ProcessTable, process_table, send
from tests.support.started import Started
from tests.support.supervised import until

TABLES = [KernelTable(), PortableTable()]


@pytest.mark.parametrize("table", TABLES, ids=["kernel", "portable"])
class TestProcessTable:
    def test_a_tree_is_found_by_its_top_and_by_its_run_id(self, table: ProcessTable, start: Started) -> None:
        running = start.shell("setsid sleep 100 & echo up; wait")
        running.read(5)
        top = running.identity.pid
        assert top is not None
        below = set(process_tree.descendants(top))

        def carrying() -> set[int]:
            return {process.pid for process in table.carrying(RUN_ID_VARIABLE, running.identity.run_id)}

        assert below == {process.pid for process in table.below([top])}
        until(lambda: {top, *below} == carrying(), "all to have an environment")

    def test_a_process_is_itself_and_no_other(self, table: ProcessTable, start: Started) -> None:
        running = start.shell("sleep 100")
        [top] = [process for process in table.below([os.getpid()]) if process.pid == running.identity.pid]

        assert top == table.find(top.pid)
        assert os.getpid() == table.parent(top.pid)
        assert send(table, top, 0)
        assert not send(table, Process(top.pid, top.started + 1), signal.SIGKILL)
        running.close()
        assert table.find(top.pid) is None
        assert table.parent(top.pid) is None
        assert not send(table, top, signal.SIGKILL)

    def test_a_boot_has_a_name(self, table: ProcessTable) -> None:
        assert table.boot_id() == table.boot_id() != ""


def test_where_there_is_no_proc_the_extra_is_named_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "psutil", None)

    with pytest.raises(MissingExtraError, match="incarnate run needs the extra 'supervise'"):
        process_table()


def test_without_lists_of_children_the_table_of_processes_is_read(
    start: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start.shell("setsid sleep 100 & echo up; wait")
    running.read(5)
    assert running.identity.pid is not None
    listed = set(process_tree.descendants(running.identity.pid))

    def absent(_: int) -> list[int]:
        raise FileNotFoundError

    monkeypatch.setattr(process_tree, "_children", absent)

    assert listed == set(process_tree.descendants(running.identity.pid))


@pytest.mark.parametrize("pid", ["1", None])
def test_a_proc_with_the_processes_of_others_is_refused(monkeypatch: pytest.MonkeyPatch, pid: str | None) -> None:
    def readlink(_path: Path) -> str:
        if pid is None:
            raise FileNotFoundError
        return pid

    monkeypatch.setattr(os, "readlink", readlink)

    with pytest.raises(HarnessNotStartedError, match="has the processes of another namespace"):
        process_table()
