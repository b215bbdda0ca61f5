"""What views cost: one read after every event, one caught up from cold, ten of them beside an appending session."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any

from benchmarks import bare
from benchmarks.measuring import Comparison, Line, Settings, compare
from benchmarks.reading import checked, log_of
from benchmarks.workload import KEY, mixed_events
from incarnate import (
    AppendedEvent,
    ClientFrames,
    ModelHistory,
    Projection,
    ReplayAnalysis,
    Session,
    SessionEvent,
    SessionSystem,
    StudioTranscript,
    ToolCall,
    ToolResult,
    UsageTotals,
)
from incarnate.domain.projections.transcript import TranscriptRows

__all__ = ["anew", "calls", "cold", "get", "ten"]

_SHORT, _LONG = 10_000, 100_000
_ANEW, _EVERY = 2000, 10
_COLD = 200_000
_FEW_CALLS, _MANY_CALLS = 2000, 20_000


def get(settings: Settings) -> Iterator[Line]:
    """A history read after every event, its last message looked at: ten times the events must not cost much more.

    Timed is all of it, the emits too; then the projection alone.
    """
    events = list(islice(mixed_events(), _LONG))
    found = compare(lambda: _emit_and_get(events[:_SHORT]), lambda: _emit_and_get(events), settings.rounds(6))
    yield _growth("emit, get() of each", found, 12.0)
    log = _appended(events)
    found = compare(lambda: _apply_and_look(log[:_SHORT]), lambda: _apply_and_look(log), settings.rounds(6))
    yield _growth("apply and value of each", found, 12.0)


def _growth(name: str, found: Comparison, most: float) -> Line:
    return Line(f"{name}, {_LONG:,}", f"{found.rival:.2f} s", f"{_SHORT:,} {found.ours:.3f} s", found.ratio, most=most)


def anew(settings: Settings) -> Iterator[Line]:
    """The same against having no view: what is timed is the reading after each emit, and not the emit.

    The rival replays the log and folds it; then a fold of events in memory against the projection alone. Both rivals
    are timed at every tenth event, from the fifth on, and count tenfold: all of it takes six seconds.
    """
    events = list(islice(mixed_events(), _ANEW))
    found = compare(lambda: _get_after(events), lambda: _replay_after(events), settings.rounds(24))
    yield _saving("get() after each", found, "memory://, replayed and folded")
    log = _appended(events)
    found = compare(lambda: _apply_and_look(log), lambda: _fold_after(log), settings.rounds(24))
    yield _saving("apply and value of each", found, "folded")


def _saving(name: str, found: Comparison, rival: str) -> Line:
    return Line(
        f"{name}, {_ANEW:,}", f"{found.ours * 1000:.1f} ms", f"{rival} {found.rival:.2f} s", found.ratio, least=200
    )


def _get_after(events: Sequence[SessionEvent]) -> float:
    seconds = 0.0
    with SessionSystem.open("memory://") as system:
        session = system.claim(KEY)
        view = system.view(KEY, ModelHistory("valid"))
        for event in events:
            session.emit(event)
            start = time.perf_counter()
            _look(view.get())
            seconds += time.perf_counter() - start
    return seconds


def _replay_after(events: Sequence[SessionEvent]) -> float:
    seconds = 0.0
    with SessionSystem.open("memory://") as system:
        session = system.claim(KEY)
        for number, event in enumerate(events):
            session.emit(event)
            if number % _EVERY == _EVERY // 2:
                start = time.perf_counter()
                _look(_folded(system.replay(KEY)))
                seconds += time.perf_counter() - start
    return seconds * _EVERY


def _fold_after(log: Sequence[AppendedEvent]) -> float:
    start = time.perf_counter()
    for end in range(_EVERY // 2, len(log), _EVERY):
        _look(_folded(log[:end]))
    return (time.perf_counter() - start) * _EVERY


def _folded(log: Iterable[AppendedEvent]) -> Sequence[Any]:
    history = ModelHistory("valid")
    for appended in log:
        history.apply(appended)
    return history.value


def cold(settings: Settings) -> Iterator[Line]:
    """A view of a stored log, first asked for in a system that has just been opened, against the replay alone."""
    count = _COLD // 4 if settings.quick else _COLD
    url = bare.url_of(log_of(settings, count))

    def ours() -> float:
        with SessionSystem.open(url, read_only=True) as system:
            start = time.perf_counter()
            messages = system.view(KEY, ModelHistory("valid")).get()
            seconds = time.perf_counter() - start
            assert messages[-1].offset in range(count - 10, count), "the view ends where the log ends"
            return seconds

    def rival() -> float:
        with SessionSystem.open(url, read_only=True) as system:
            start = time.perf_counter()
            seen = sum(1 for _ in system.replay(KEY))
            return checked(start, seen, count)

    found = compare(ours, rival, settings.rounds(10))
    yield Line(
        f"ModelHistory from cold, {count:,}",
        f"{count / found.ours:,.0f}/s",
        f"replay alone {count / found.rival:,.0f}/s",
        found.ratio,
        least=0.3,
    )


def calls(settings: Settings) -> Iterator[Line]:
    """Tool calls in one run, which make one message of the model, and then with their results in the same order."""
    for name, run in (("calls in a run", _calls), ("calls, then results", _calls_and_results)):
        few, many = _appended(run(_FEW_CALLS)), _appended(run(_MANY_CALLS))
        found = compare(partial(_apply_and_look, few), partial(_apply_and_look, many), settings.rounds(24))
        yield Line(
            f"{_MANY_CALLS:,} {name}",
            f"{found.rival * 1000:.1f} ms",
            f"{_FEW_CALLS:,} {found.ours * 1000:.2f} ms",
            found.ratio,
            most=15.0,
        )


def _calls(count: int) -> list[SessionEvent]:
    return [
        ToolCall(id=f"call-{n}", parent_id=None, call_id=f"toolu_{n}", name="Read", args={"file_path": f"{n}.py"})
        for n in range(count)
    ]


def _calls_and_results(count: int) -> list[SessionEvent]:
    results = [
        ToolResult(id=f"result-{n}", parent_id=None, call_id=f"toolu_{n}", ok=True, result={"stdout": f"{n}"})
        for n in range(count)
    ]
    return [*_calls(count), *results]


class _SecondStudio(StudioTranscript):
    """Has a name of its own, and so a view of its own."""


class _SecondFrames(ClientFrames):
    """The same."""


_TEN: tuple[Callable[[], Projection[Any]], ...] = (
    StudioTranscript,
    _SecondStudio,
    ModelHistory,
    lambda: ModelHistory("reference"),
    ClientFrames,
    _SecondFrames,
    ReplayAnalysis,
    UsageTotals,
    TranscriptRows,
)


def ten(settings: Settings) -> Iterator[Line]:
    """A session that appends event by event, `durability=commit`: with ten views on it against none.

    Nobody reads the views meanwhile; what they have not taken in by the end of a round they do outside its time.
    """
    size = 200
    for name, followed in (("10 views", False), ("10 followed views", True)):
        found = _ten(settings, settings.rounds(24), size, followed=followed)
        yield Line(
            f"emit, FULL, with {name}",
            f"{size / found.rival:,.0f}/s",
            f"without a view {size / found.ours:,.0f}/s",
            found.ratio,
            most=2.0,
        )


def _ten(settings: Settings, rounds: int, size: int, *, followed: bool) -> Comparison:
    streams = [mixed_events(), mixed_events()]
    with ExitStack() as stack:
        without, beside = (
            stack.enter_context(SessionSystem.open(bare.url_of(settings.folder / f"{name}-{followed}.db")))
            for name in ("no-view", "ten-views")
        )
        alone, viewed = without.lease(KEY, 1), beside.lease(KEY, 1)
        views = [beside.view(KEY, projection()) for projection in _TEN]
        changes = [stack.enter_context(view.changes()) for view in views if followed]

        def emit(session: Session, stream: Iterator[SessionEvent]) -> float:
            events = list(islice(stream, size))
            start = time.perf_counter()
            for event in events:
                session.emit(event)
            return time.perf_counter() - start

        def settle() -> None:
            for view in views:
                view.get()
            for stream in changes:
                while stream.next(timeout=0) is not None:
                    pass

        def with_views() -> float:
            settle()
            return emit(viewed, streams[1])

        settle()
        return compare(lambda: emit(alone, streams[0]), with_views, rounds)


def _emit_and_get(events: Sequence[SessionEvent]) -> float:
    with SessionSystem.open("memory://") as system:
        session = system.claim(KEY)
        view = system.view(KEY, ModelHistory("valid"))
        start = time.perf_counter()
        for event in events:
            session.emit(event)
            _look(view.get())
        return time.perf_counter() - start


def _apply_and_look(log: Sequence[AppendedEvent]) -> float:
    history = ModelHistory("valid")
    start = time.perf_counter()
    for appended in log:
        history.apply(appended)
        _look(history.value)
    return time.perf_counter() - start


def _look(messages: Sequence[Any]) -> Any:
    return messages[-1] if messages else None


def _appended(events: Sequence[SessionEvent]) -> list[AppendedEvent]:
    return [AppendedEvent(offset, 1, 0, event) for offset, event in enumerate(events)]
