"""Crews: threads that come with the work, and no work is ever left to nobody."""

import itertools
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from incarnate import ClosedError
from incarnate.actors import crews
from incarnate.actors.crews import Crew
from incarnate.actors.dispatchers import make_runtime
from tests.support.counters import Counter, actor_of, ask, switched_anywhere, together
from tests.support.signals import at_line
from tests.support.waiting import soon


@pytest.fixture
def crew() -> Generator[Crew]:
    made = Crew("test-crew", 3)
    yield made
    made.close()


def threads(name: str = "test-crew") -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def no_thread(_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_no_more_than_so_many_threads_work_at_once_and_all_work_is_done(crew: Crew) -> None:
    running, most, lock, full = [0], [0], threading.Lock(), threading.Event()
    done = threading.Semaphore(0)

    def work() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 3:
                full.set()
        full.wait(10)  # the first ones for each other, however seldom this machine lets one run
        time.sleep(0.001)
        with lock:
            running[0] -= 1
        done.release()

    for _ in range(60):
        crew.submit(work)

    assert all(done.acquire(timeout=10) for _ in range(60))
    assert most[0] == 3


def test_a_crew_without_a_bound_has_a_thread_for_all_who_wait() -> None:
    crew = Crew("test-crew")
    meeting = threading.Barrier(41)
    for _ in range(40):
        crew.submit(lambda: meeting.wait(20))

    assert meeting.wait(20) >= 0
    crew.close()


def test_idle_threads_go_and_come_again(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_IDLE_SECONDS", 0.01)
    for _ in range(3):
        done = threading.Event()
        crew.submit(done.set)
        assert done.wait(5)
        assert soon(lambda: threads() == 0)


def test_no_work_is_lost_where_threads_go_just_when_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_IDLE_SECONDS", 0.0)
    done: list[tuple[int, int]] = []
    with switched_anywhere():
        crew = Crew("test-crew", 2)

        def send(sender: int) -> None:
            for number in range(100):
                crew.submit(lambda number=number: done.append((sender, number)))  # type: ignore[misc]

        assert [] == together(4, send)
    assert soon(lambda: len(done) == 400), f"{400 - len(done)} lost"
    crew.close()
    assert {(sender, number) for sender in range(4) for number in range(100)} == set(done)


def test_what_work_raises_ends_no_thread(crew: Crew) -> None:
    def fail() -> None:
        raise SystemExit

    for _ in range(9):
        crew.submit(fail)
    done = threading.Event()
    crew.submit(done.set)

    assert done.wait(5)


def test_a_crew_that_is_closed_does_what_it_has_and_takes_no_more() -> None:
    crew = Crew("test-crew", 2)
    done: list[int] = []
    for number in range(50):
        crew.submit(lambda number=number: (time.sleep(0.001), done.append(number)))  # type: ignore[misc,func-returns-value]
    crew.close()

    assert sorted(done) == list(range(50))
    assert threads() == 0
    with pytest.raises(ClosedError):
        crew.submit(done.clear)


def test_closing_waits_no_longer_than_it_may() -> None:
    crew, go_on = Crew("test-crew", 2), threading.Event()
    crew.submit(go_on.wait)
    started = time.monotonic()
    crew.close(0.05)

    assert time.monotonic() - started < 5
    go_on.set()
    crew.close()


def test_an_interrupt_at_any_line_of_a_sender_keeps_no_thread_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_IDLE_SECONDS", 60.0)

    assert next(line for line in itertools.count(1) if not ends_after_an_interrupt(line)) > 3


def ends_after_an_interrupt(line: int) -> bool:
    """Whether a sender had a line of that number; interrupted there, its crew works on and ends."""
    crew, done = Crew("test-crew", 2), threading.Event()
    crew.submit(time.time)
    assert soon(lambda: len(vars(crew)["_idle"]) == 1)
    with suppress(KeyboardInterrupt), at_line(crews.__file__, line, interrupt) as seen:
        crew.submit(time.time)
    crew.submit(done.set)

    assert done.wait(5), f"interrupted at line {line}"
    crew.close(5)
    assert threads() == 0, f"interrupted at line {line}"
    return seen[0] >= line


def test_where_no_thread_can_be_had_the_sender_is_told_and_the_next_may_have_more_luck(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        for _ in range(5):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                crew.submit(time.time)
    done = threading.Event()
    crew.submit(done.set)

    assert done.wait(5)


def test_where_no_thread_can_be_had_an_asker_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = make_runtime("calling")
    ref: Any = runtime.start(Counter)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        ref.tell("told")
        assert ask(ref, "asked") == 2
        assert ask(ref, lambda _: threading.get_ident(), timeout=5) == threading.get_ident()
        with pytest.raises(KeyboardInterrupt):
            ask(ref, interrupt, timeout=5)
    assert ["told", "asked"] == actor_of(ref).seen[:2]
    runtime.close()


def interrupt(_: object = None) -> None:
    raise KeyboardInterrupt
