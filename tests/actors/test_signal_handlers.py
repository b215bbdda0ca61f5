"""A signal handler that calls in, at any line: nothing hangs, and what it was answered stays so."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

import incarnate
from incarnate import ActivationKey, AssistantMessage, ModelHistory, ReentrantCallError, SessionSystem
from tests.support.signals import at_line

pytestmark = pytest.mark.timeout(120, method="thread")  # what hangs here holds the main thread

PACKAGE = str(Path(incarnate.__file__).parent)
KEY, NEW, OTHER = (ActivationKey("pik-1", name) for name in ("implement-task", "new", "other"))
EVERY = 5  # lines: all of them would take minutes


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


Act = Callable[[SessionSystem], object]

CALLS: dict[str, Act] = {
    "claim": lambda system: system.claim(NEW),
    "a new view": lambda system: system.view(NEW, ModelHistory()).get(),
    "fork": lambda system: system.fork(KEY, NEW, 1),
    "sweep": lambda system: system.sweep(timedelta(0)),
    "metrics": SessionSystem.metrics,
}


def survives(url: str, call: Act, come_in: Callable[[SessionSystem, list[str]], None], line: int) -> bool:
    """Whether `call` had a line of that number; what came in there and was answered has to be in the log."""
    with SessionSystem.open(url, clock=count(1).__next__) as system:
        session = system.claim(KEY)
        session.emit_many([said("first"), said("second")])
        session.checkpoint("sha")
        session.emit(said("lost"))
        session.restore()
        session.emit(said("third"))  # a rewind, for the sweep
        answered: list[str] = []
        with suppress(ReentrantCallError), at_line(PACKAGE, line, lambda: come_in(system, answered)) as seen:
            call(system)

        assert ["first", "second", "third", *answered] == [one.event.id for one in system.replay(KEY)]
        return seen[0] >= line


def emits(system: SessionSystem, answered: list[str]) -> None:
    with suppress(ReentrantCallError):
        system.claim(KEY).emit(said("last words"))
        answered.append("last words")


def begins_another(system: SessionSystem, _answered: list[str]) -> None:
    with suppress(ReentrantCallError):
        system.claim(OTHER)
        system.view(OTHER, ModelHistory()).get()
        system.metrics()


def soon_and_last_words(line: int) -> bool:
    """Whether `emit_soon` had a line of that number, at which a handler emitted with the same handle."""
    with SessionSystem.open("memory://") as system:
        session = system.claim(KEY)
        answered: list[str] = []

        def last_words() -> None:
            with suppress(ReentrantCallError):
                session.emit(said("last words"))
                answered.append("last words")

        with at_line(PACKAGE, line, last_words) as seen:
            future = session.emit_soon(said("soon"))
        future.result(timeout=10)

        assert {"soon", *answered} == {one.event.id for one in system.replay(KEY)}
        return seen[0] >= line


def test_a_handler_that_emits_while_an_event_is_added_to_those_in_flight_hangs_nothing() -> None:
    lines = next(line for line in count(1) if not soon_and_last_words(line))

    assert lines > EVERY


@pytest.mark.parametrize("come_in", [emits, begins_another])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("backend", ["memory", "sqlite", "jsonl"])
def test_a_handler_at_any_line_hangs_nothing_and_what_it_emitted_stays(
    backend: str, call: Act, come_in: Callable[[SessionSystem, list[str]], None], swift_path: Path
) -> None:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{swift_path}/", "jsonl": f"jsonl:///{swift_path}/"}
    for line in count(1, EVERY):
        url = urls[backend] if backend == "memory" else f"{urls[backend]}{line}"
        if not survives(url, call, come_in, line):
            assert line > EVERY
            return
