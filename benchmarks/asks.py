"""What an ask of an actor costs, what an idle actor weighs, and how fast many are started; beside pykka's own."""

import gc
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pykka

from benchmarks.measuring import Line, Settings, compare
from incarnate import SessionSystem
from incarnate.actors.contained import ContainedActor
from incarnate.actors.directory import Directory
from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.references import Reference

__all__ = ["asks", "idle"]

_NAME = "pykka ThreadingActor"
_THREADS = 64


class _Echo(ContainedActor):
    def handle(self, message: Any) -> Any:
        return message


class _Rival(pykka.ThreadingActor):
    use_daemon_thread = True

    def on_receive(self, message: Any) -> Any:
        return message


class _EchoReference(Reference):
    """As a system's own references, to an actor that does nothing."""

    __slots__ = ("_directory",)

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        self._directory = directory

    def _start(self) -> Any:
        return self._directory.services.runtime.start(_Echo)


def asks(settings: Settings) -> Iterator[Line]:
    """One thread that asks one actor, then 64 that ask one."""
    count = 500 if settings.quick else 4000
    rounds = settings.rounds(24)
    calling, threads = make_runtime("calling"), make_runtime("thread")
    rival = _Rival.start()
    with SessionSystem.open("memory://") as system:
        reference = _EchoReference(vars(system)["_directory"])
        theirs = _asking(rival, count)
        for name, asked, least in (
            ("ask, calling", calling.start(_Echo), 10.0),
            ("ask, calling, by a reference", reference, 10.0),
            ("ask, dispatcher=thread", threads.start(_Echo), None),
        ):
            found = compare(_asking(asked, count), theirs, rounds)
            yield _rates(name, count / found.ours, count / found.rival, found.ratio, least)
        found = compare(_asking_together(calling.start(_Echo)), _asking_together(rival), settings.rounds(12))
        total = _THREADS * _ASKS_A_THREAD
        yield _rates(f"ask, calling, {_THREADS} threads", total / found.ours, total / found.rival, found.ratio, None)
        reference.stop()
    rival.stop()
    calling.close()
    threads.close()


def idle(settings: Settings) -> Iterator[Line]:
    """Starting actors, and what each of them weighs once it has answered."""
    count = 200 if settings.quick else 1000
    runtime = make_runtime("calling")

    def ours() -> float:
        gc.collect()
        start = time.perf_counter()
        kept = [runtime.start(_Echo) for _ in range(count)]
        return (time.perf_counter() - start) * bool(kept)

    def rival() -> float:
        start = time.perf_counter()
        kept = [_Rival.start() for _ in range(count)]
        took = time.perf_counter() - start
        for ref in kept:
            ref.stop()
        return took

    found = compare(ours, rival, settings.rounds(12))
    yield _rates("start an actor, calling", count / found.ours, count / found.rival, found.ratio, None)
    size = _bytes_of_an_idle_actor(lambda: runtime.start(_Echo), count)
    yield Line("memory of an idle actor", f"{size:,.0f} bytes", "limit 5 KB", size / 5120, most=1.0)
    runtime.close()


_ASKS_A_THREAD = 50


def _asking(asked: Any, count: int) -> Callable[[], float]:
    def ask() -> float:
        start = time.perf_counter()
        for number in range(count):
            asked.ask(number)
        return time.perf_counter() - start

    return ask


def _asking_together(asked: Any) -> Callable[[], float]:
    def ask() -> float:
        barrier = threading.Barrier(_THREADS + 1)

        def work() -> None:
            barrier.wait()
            for number in range(_ASKS_A_THREAD):
                asked.ask(number)

        threads = [threading.Thread(target=work) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        barrier.wait()
        start = time.perf_counter()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    return ask


def _bytes_of_an_idle_actor(make: Callable[[], Any], count: int) -> float:
    make().ask("warm")
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [make() for _ in range(count)]
    for ref in kept:
        ref.ask("once")
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(kept)


def _rates(name: str, ours: float, rival: float, ratio: float, least: float | None) -> Line:
    return Line(name, f"{ours:,.0f}/s", f"{_NAME} {rival:,.0f}/s", ratio, least)
