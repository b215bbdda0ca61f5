"""What a harness prints goes to our standard output, whoever reads it."""

import os
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.system import SessionSystem
from incarnate.cli.run_output import Patient, passing_on, patient
from incarnate.cli.run_parts import stopped_by_signals
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.harness_files import SessionFolder
from incarnate.supervision.processes import ProcessEdge
from incarnate.supervision.registry import STOP_IN_HASTE
from incarnate.supervision.supervisor import Supervisor

S = TypeVar("S", bound=Supervisor)

MUCH = b"0123456789abcdef" * 65536


class Pipe(NamedTuple):
    reading: int
    writing: int


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe(*os.pipe())
    yield pipe
    os.close(pipe.writing)


def test_a_file_is_given_all_of_it(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb", buffering=0) as file, passing_on(file.fileno()) as pass_on:
        assert len(MUCH) == pass_on(MUCH)

    assert (tmp_path / "out").read_bytes() == MUCH


def test_a_pipe_that_nobody_reads_is_filled_and_not_waited_for(pipe: Pipe) -> None:
    with passing_on(pipe.writing) as pass_on:
        taken = pass_on(MUCH) or 0
        assert 0 < taken < len(MUCH)
        assert 0 == pass_on(MUCH)
        assert taken == len(os.read(pipe.reading, len(MUCH)))
        assert taken == pass_on(MUCH)
    os.close(pipe.reading)


def test_a_pipe_that_was_set_not_to_wait_is_no_reader_that_has_gone(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    with passing_on(pipe.writing) as pass_on:
        taken = pass_on(MUCH)
        assert 0 == pass_on(MUCH)

    assert taken == len(os.read(pipe.reading, len(MUCH)))
    os.close(pipe.reading)


def test_a_reader_that_has_gone_is_told(pipe: Pipe) -> None:
    os.close(pipe.reading)
    with passing_on(pipe.writing) as pass_on, pytest.raises(BrokenPipeError):
        pass_on(MUCH)


def test_a_terminal_that_nobody_reads_is_not_waited_for_and_others_still_wait() -> None:
    leader, terminal = os.openpty()
    with passing_on(terminal) as pass_on:
        taken = sum(iter(lambda: pass_on(MUCH) or 0, 0))

    assert taken > 0
    assert os.get_blocking(terminal)
    os.close(terminal)
    os.close(leader)


@contextmanager
def errors(descriptor: int) -> Generator[Patient]:
    """Standard error, written to a descriptor that is the test's to close."""
    with os.fdopen(descriptor, "w", closefd=False) as stream, patient(stream) as written:
        yield written


def test_lines_for_a_reader_that_has_gone_end_nothing(pipe: Pipe) -> None:
    os.close(pipe.reading)
    with errors(pipe.writing) as written:
        assert len("one\n") == written.write("one\n")


def test_lines_for_a_disk_that_is_full_end_nothing() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, patient(full) as written:
        assert len("one\n") == written.write("one\n")


def test_lines_for_a_terminal_that_was_closed_end_nothing() -> None:
    leader, terminal = os.openpty()
    with errors(terminal) as written:
        os.close(leader)
        assert len("one\n") == written.write("one\n")
    os.close(terminal)


def test_a_line_that_was_torn_has_no_other_one_stand_on_it(pipe: Pipe) -> None:
    with errors(pipe.writing) as written:
        written.write("x" * len(MUCH))
        os.read(pipe.reading, len(MUCH))
        written.write("next\n")

    assert os.read(pipe.reading, len(MUCH)) == b"\nnext\n"
    os.close(pipe.reading)


def test_letters_that_the_stream_cannot_write_are_escaped(pipe: Pipe) -> None:
    with os.fdopen(pipe.writing, "w", encoding="ascii", closefd=False) as stream, patient(stream) as written:
        written.write("\u00e4\udcff\n")

    assert os.read(pipe.reading, 99) == b"\\xe4\\udcff\n"
    os.close(pipe.reading)


def some_supervisor(system: SessionSystem, kind: type[S]) -> S:
    dialect = find_dialect("codex")
    harness = Harness(dialect, Command(("codex", "{prompt}")), SessionFolder(dialect, ()))
    return kind(system, ActivationKey("a", "b"), harness, edge=ProcessEdge(), runtime=make_runtime("calling"))


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SessionSystem.open("memory://") as system, stopped_by_signals(some_supervisor(system, Supervisor)):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGHUP, before)


class Counting(Supervisor):
    stops = 0

    def stop(self, code: int = 143) -> None:  # noqa: ARG002 - the supervisor's
        self.stops += 1


@pytest.mark.parametrize(
    ("heard", "stops"), [([STOP_IN_HASTE], 2), ([signal.SIGTERM, STOP_IN_HASTE], 2), ([STOP_IN_HASTE] * 2, 3)], ids=str
)
def test_a_stop_in_haste_is_the_second_stop_and_only_then_the_third(heard: list[signal.Signals], stops: int) -> None:
    """The third one waits for no store: what the harness said last would be missing."""
    with SessionSystem.open("memory://") as system:
        supervisor = some_supervisor(system, Counting)
        before = set(threading.enumerate())
        with stopped_by_signals(supervisor):
            for number in heard:
                signal.raise_signal(number)
        for thread in set(threading.enumerate()) - before:
            thread.join()

    assert stops == supervisor.stops
