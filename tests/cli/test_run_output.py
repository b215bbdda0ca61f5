"""What a harness prints goes to our standard output, whoever reads it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from incarnate.cli.run_output import passing_on

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
