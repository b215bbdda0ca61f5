"""Stores of ours in a forked child: what it inherits must neither lose what it writes nor keep others out."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from incarnate.domain.errors import ForkedError, IncarnateError
from incarnate.domain.keys import ActivationKey
from incarnate.storage import jsonl_writer
from incarnate.storage.jsonl import JsonlStore
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from tests.support.stores import Log, jsonl_url, sqlite_url

CHILD = ActivationKey("pik-1", "child")


def in_a_child(work: Callable[[], str]) -> str:
    """What `work` answers in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, work().encode())
        except IncarnateError as error:
            os.write(writer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def written(url: str) -> str:
    """What another opening of the store has of the child's log when the child has written to it."""
    with open_store(url) as own:
        Log(own, CHILD).append(0, "abc")
        return Log(own, CHILD).names


@pytest.mark.parametrize("opened", [open_store, partial(open_store, read_only=True)], ids=["to write", "to read"])
def test_a_sqlite_file_that_was_open_at_the_fork_is_refused_in_the_child(
    tmp_path: Path, opened: Callable[[str], Store]
) -> None:
    url = sqlite_url(tmp_path)
    with open_store(url) as store:
        log = Log(store)
        log.append(0, "a")

        assert ForkedError.__name__ == in_a_child(lambda: str(opened(url)))
        log.append(1, "b")
        assert "ab" == log.names


def test_a_sqlite_file_that_was_closed_before_the_fork_is_the_child_s(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with open_store(url) as store:
        Log(store).append(0, "a")

    assert "abc" == in_a_child(lambda: written(url))
    with open_store(url) as store:
        assert "abc" == Log(store, CHILD).names


def test_a_jsonl_store_that_was_open_at_the_fork_is_opened_again_in_the_child(tmp_path: Path) -> None:
    url = jsonl_url(tmp_path)
    with open_store(url) as store:
        Log(store).append(0, "a")

        assert "abc" == in_a_child(lambda: written(url))
        assert "abc" == Log(store, CHILD).names


def test_a_writer_that_is_killed_in_a_commit_leaves_no_lock_to_a_child_that_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()

    def fork_and_die(_lines: object, _crc: object) -> None:
        """What a thread that forks in the middle of a commit, and then a kill, come to."""
        child = os.fork()
        if child:
            os.write(writer, f"{child}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    def write() -> str:
        with JsonlStore(f"{tmp_path}/journals") as own:
            Log(own).append(0, "a")
            monkeypatch.setattr(jsonl_writer, "seal", fork_and_die)
            Log(own).append(1, "bc")
        return "alive"

    child = os.fork()
    if child == 0:
        write()
    os.waitpid(child, 0)
    grandchild = int(os.read(reader, 20))
    try:
        with JsonlStore(f"{tmp_path}/journals", busy_seconds=0.2) as store:
            Log(store).append(1, "b")
            assert "ab" == Log(store).names
    finally:
        os.kill(grandchild, signal.SIGKILL)
