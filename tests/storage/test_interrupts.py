"""An interrupt at any line of a store's write leaves the log as it was or as it should become."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count as count_from
from pathlib import Path

import pytest

import incarnate.storage
from incarnate.domain.keys import ActivationKey
from incarnate.storage.port import Store
from tests.support.signals import at_line
from tests.support.stores import BACKENDS, Backend, Log, checkpoint

pytestmark = pytest.mark.timeout(120, method="thread")  # a lock left locked would hang the teardown as well

STORAGE = str(Path(incarnate.storage.__file__).parent)


@pytest.fixture
def store(backend: Backend, swift_path: Path) -> Iterator[Store]:
    with backend.open(swift_path) as opened:
        yield opened


def prepared(store: Store, name: str) -> Log:
    log = Log(store, ActivationKey("interrupted", name))
    log.append(0, "abcd")
    log.put(checkpoint("low", 1))
    log.put(checkpoint("high", 4))
    return log


WRITES: dict[str, Callable[[Log], object]] = {
    "append": lambda log: log.append(4, "xyz"),
    "rewind": lambda log: log.append(2, "xyz"),
    "rewind of a newer incarnation": lambda log: log.append(1, "x", incarnation=5),
    "checkpoint": lambda log: log.put(checkpoint("new", 2)),
    "claim": Log.claim,
    "turn": Log.next_turn,
}


def interrupt() -> None:
    raise KeyboardInterrupt


def survives(store: Store, backend: Backend, folder: Path, write: Callable[[Log], object]) -> int:
    """How many lines the write has; it is interrupted at each of them in turn."""
    expected = prepared(store, "expected")
    before = expected.everything()
    write(expected)
    after = expected.everything()
    with ExitStack() as stack:
        # Where a second opening finds the same log: it would wait if a transaction were still open.
        other = stack.enter_context(backend.open(folder)) if backend.keeps else store
        for line in count_from(1):
            log = prepared(store, str(line))
            try:
                with at_line(STORAGE, line, interrupt) as count:
                    write(log)
            except KeyboardInterrupt:
                assert log.everything() in (before, after), f"line {line}"
                Log(other, log.key).claim()
                log.append(log.head.next_offset, "e", incarnation=9)
                assert log.names in ("abcde", "abcdxyze", "abxyze", "axe")
            else:
                assert count[0] < line
                return line
    raise AssertionError


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_interrupt_at_any_line_leaves_the_log_whole(
    store: Store, backend: Backend, swift_path: Path, write: Callable[[Log], object]
) -> None:
    assert survives(store, backend, swift_path, write) > 5


def interrupted_at_the_32nd_commit(folder: Path, line: int) -> int:
    """How many lines that commit took, after which the store makes its write-ahead log longer."""
    with BACKENDS["sqlite"].open(folder) as store:
        log = Log(store)
        for offset in range(31):
            log.append_one(offset, "e")
        with suppress(KeyboardInterrupt), at_line(STORAGE, line, interrupt) as count:
            log.append_one(31, "e")
        with BACKENDS["sqlite"].open(folder) as other:
            Log(other).claim()
        assert log.offsets in (list(range(31)), list(range(32)))
    return count[0]


def test_an_interrupt_while_the_log_file_is_made_longer_leaves_it_unlocked(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lines = interrupted_at_the_32nd_commit(tmp_path_factory.mktemp("whole"), 0)

    for line in range(lines - 30, lines + 1):
        assert line == interrupted_at_the_32nd_commit(tmp_path_factory.mktemp("torn"), line)
