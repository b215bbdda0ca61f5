"""Sixty-four sessions on one file, a thread each: what they gain by sharing a sync of the disk, and what they could."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import count, islice

from benchmarks.bare import BareLog, encoded, url_of
from benchmarks.measuring import Comparison, Line, Settings, compare
from benchmarks.workload import mixed_events
from incarnate import ActivationKey, AppendedEvent, Session, SessionEvent, SessionSystem

__all__ = ["in_threads", "sessions"]

_SESSIONS = 64
_IN_FLIGHT = 32

Write = Callable[[Session, Sequence[SessionEvent]], None]


def sessions(settings: Settings) -> Iterator[Line]:
    """With one append in flight each, and with 32; against a loop that commits the same rows one by one."""
    for write, in_flight, size, rounds, least in ((_one, 1, 20, 20, 2.0), (_many, _IN_FLIGHT, 160, 12, 8.0)):
        found = _against_a_loop(settings, write, size, settings.rounds(rounds))
        events = size * _SESSIONS
        yield Line(
            f"{_SESSIONS} sessions, {in_flight} in flight, FULL",
            f"{events / found.ours:,.0f}/s",
            f"sqlite3 loop {events / found.rival:,.0f}/s",
            found.ratio,
            least,
        )
        by_hand = _by_hand(settings, in_flight, settings.rounds(rounds))
        yield Line(
            "  by hand: encoded, a future each, one commit",
            f"{_SESSIONS * in_flight / by_hand.ours:,.0f}/s",
            f"sqlite3 loop {_SESSIONS * in_flight / by_hand.rival:,.0f}/s",
            by_hand.ratio,
        )


def _against_a_loop(settings: Settings, write: Write, size: int, rounds: int) -> Comparison:
    """Each session writes `size` events; the loop writes as many rows as all of them."""
    name = f"group-{size}"
    stream, bare_stream = mixed_events(), mixed_events()
    bare = BareLog(settings.folder / f"{name}-bare.db", "FULL")
    with SessionSystem.open(url_of(settings.folder / f"{name}.db")) as system:
        leased = [system.lease(ActivationKey("benchmark", f"agent-{number}"), 1) for number in range(_SESSIONS)]

        def ours() -> float:
            return in_threads([_work(write, session, list(islice(stream, size))) for session in leased])

        def rival() -> float:
            return bare.seconds_for_each(list(islice(bare_stream, size * _SESSIONS)))

        found = compare(ours, rival, rounds)
    bare.close()
    return found


def _by_hand(settings: Settings, in_flight: int, rounds: int) -> Comparison:
    """What one thread reaches that commits all in flight at once, with no actor, fence or check, and nobody to wake."""
    name = f"group-hand-{in_flight}"
    stream, bare_stream = mixed_events(), mixed_events()
    together, bare = (BareLog(settings.folder / f"{name}-{kind}.db", "FULL") for kind in ("together", "bare"))
    size, starts = _SESSIONS * in_flight, count(step=in_flight)

    def ours() -> float:
        events = list(islice(stream, size))
        begun = time.perf_counter()
        futures: list[Future[int]] = [Future() for _ in events]
        payloads, first = encoded(events), next(starts)
        now_ms = time.time_ns() // 1_000_000
        together.insert_all(
            [
                (1 + index % _SESSIONS, first + index // _SESSIONS, 1, now_ms, payload)
                for index, payload in enumerate(payloads)
            ]
        )
        for number, future in enumerate(futures):
            future.set_result(number)
        for future in futures:
            future.result()
        return time.perf_counter() - begun

    def rival() -> float:
        return bare.seconds_for_each(list(islice(bare_stream, size)))

    found = compare(ours, rival, rounds)
    together.close()
    bare.close()
    return found


def _work(write: Write, session: Session, events: Sequence[SessionEvent]) -> Callable[[], None]:
    return lambda: write(session, events)


def _one(session: Session, events: Sequence[SessionEvent]) -> None:
    for event in events:
        session.emit(event)


def _many(session: Session, events: Sequence[SessionEvent]) -> None:
    waiting: deque[Future[AppendedEvent]] = deque()
    for event in events:
        if len(waiting) == _IN_FLIGHT:
            waiting.popleft().result()
        waiting.append(session.emit_soon(event))
    for future in waiting:
        future.result()


def in_threads(works: Sequence[Callable[[], object]]) -> float:
    """Do all of `works` at once, each in a thread of its own; the seconds from the first start to the last end."""
    started: list[float] = []
    # The last to come notes the time: this thread might be the last to go on.
    gate = threading.Barrier(len(works), action=lambda: started.append(time.perf_counter()))
    failed: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        gate.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below: half of a round is none
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started[0]
    if failed:
        raise failed[0]
    return seconds
