"""A thousand sessions on one event loop, each awaiting its emits, beside sixty-four that have a thread each."""

import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from benchmarks.bare import url_of
from benchmarks.group import in_threads
from benchmarks.measuring import Comparison, Line, Settings, compare
from benchmarks.workload import mixed_events
from incarnate import ActivationKey, AsyncSession, AsyncSessionSystem, Session, SessionEvent, SessionSystem

__all__ = ["sessions"]

_SESSIONS = 1000
_THREADS = 64
_EVENTS = 8000
_SLEEP_SECONDS = 0.001

_stream = mixed_events()

Batch = Sequence[SessionEvent]


def sessions(settings: Settings) -> Iterator[Line]:
    """One append in flight for each, FULL; and how late a task that sleeps meanwhile is woken."""
    with asyncio.Runner() as runner, _entered(runner, url_of(settings.folder / "asyncio.db")) as system:
        leased = runner.run(_leased(system))
        found = _against_threads(settings, runner, leased)
        yield Line(
            f"asyncio, {_SESSIONS:,} sessions, FULL",
            f"{_EVENTS / found.ours:,.0f}/s",
            f"{_THREADS} sessions in threads {_EVENTS / found.rival:,.0f}/s",
            found.ratio,
            0.7,
        )
        idle, busy = runner.run(_late(asyncio.sleep(1.0))), runner.run(_late(_emitted(leased, _dealt(_SESSIONS))))
        yield Line("asyncio, a task woken late, p99", f"{busy * 1e3:.1f} ms", f"idle {idle * 1e3:.1f} ms", None)


@contextmanager
def _entered(runner: asyncio.Runner, url: str) -> Generator[AsyncSessionSystem]:
    entering = AsyncSessionSystem.open(url)
    yield runner.run(entering.__aenter__())
    runner.run(entering.__aexit__(None, None, None))


def _against_threads(settings: Settings, runner: asyncio.Runner, leased: Sequence[AsyncSession]) -> Comparison:
    with SessionSystem.open(url_of(settings.folder / "asyncio-threads.db")) as system:
        threaded = [system.lease(key, 1) for key in _keys(_THREADS)]

        def ours() -> float:
            dealt = _dealt(_SESSIONS)
            start = time.perf_counter()
            runner.run(_emitted(leased, dealt))
            return time.perf_counter() - start

        def rival() -> float:
            pairs = zip(threaded, _dealt(_THREADS), strict=True)
            return in_threads([_work(session, events) for session, events in pairs])

        return compare(ours, rival, settings.rounds(16))


def _keys(count: int) -> list[ActivationKey]:
    return [ActivationKey("benchmark", f"agent-{number}") for number in range(count)]


def _dealt(sessions: int) -> list[Batch]:
    """The next events, as many for each of `sessions`."""
    return [list(islice(_stream, _EVENTS // sessions)) for _ in range(sessions)]


async def _leased(system: AsyncSessionSystem) -> list[AsyncSession]:
    return await asyncio.gather(*[system.lease(key, 1) for key in _keys(_SESSIONS)])


async def _emitted(sessions: Sequence[AsyncSession], dealt: Sequence[Batch]) -> None:
    async def emit(session: AsyncSession, events: Batch) -> None:
        for event in events:
            await session.emit(event)

    await asyncio.gather(*[emit(session, events) for session, events in zip(sessions, dealt, strict=True)])


async def _late(work: Coroutine[Any, Any, None]) -> float:
    """By how many seconds a sleep of a millisecond is too long while `work` goes on, but for one in a hundred."""
    task = asyncio.create_task(work)
    late: list[float] = []
    while not task.done():
        start = time.perf_counter()
        await asyncio.sleep(_SLEEP_SECONDS)
        late.append(time.perf_counter() - start - _SLEEP_SECONDS)
    await task
    return statistics.quantiles(late, n=100)[-1]


def _work(session: Session, events: Batch) -> Callable[[], None]:
    def work() -> None:
        for event in events:
            session.emit(event)

    return work
