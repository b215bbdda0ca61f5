"""On which thread an actor runs.

`calling` (the default): on the asking thread while it is idle, on a small shared pool for tells. Costs nothing while
idle and no thread switch a message. `thread`: a thread each, pykka's own way; for callers that must not run a commit
on their own thread.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, cast

from incarnate.actors.calling import CallingActor
from incarnate.actors.runtime import Runtime
from incarnate.actors.threaded import ThreadActor
from incarnate.domain.errors import ClosedError

if TYPE_CHECKING:
    import pykka

    from incarnate.actors.runtime import Condition, Event, Lock, RLock

__all__ = ["DispatcherName", "make_runtime"]

DispatcherName = Literal["calling", "thread"]

_TOLD_THREADS = 4
_SUBMITTED_THREADS = 8
"""Commits of `emit_soon` under way at once; the store puts them together, so more would only wait."""


class _Threads(Runtime):
    """The process's own threads, locks and clock; a subclass says on which of them an actor runs."""

    def __init__(self) -> None:
        self._submitted = ThreadPoolExecutor(_SUBMITTED_THREADS, thread_name_prefix="incarnate-submitted")

    def spawn(self, work: Callable[[], object], name: str) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def submit(self, work: Callable[[], object]) -> None:
        try:
            self._submitted.submit(work)
        except RuntimeError as error:
            raise ClosedError("the system is closed") from error

    def current(self) -> int:
        return threading.get_ident()

    def monotonic(self) -> float:
        return time.monotonic()

    def lock(self) -> Lock:
        return threading.Lock()

    def rlock(self) -> RLock:
        return cast("RLock", threading.RLock())

    def event(self) -> Event:
        return threading.Event()

    def condition(self) -> Condition:
        return threading.Condition()

    def future(self) -> Future[Any]:
        return Future()

    def drain(self) -> None:
        self._submitted.shutdown()

    def close(self) -> None:
        self._submitted.shutdown()


class _Calling(_Threads):
    def __init__(self) -> None:
        super().__init__()
        self._told = ThreadPoolExecutor(_TOLD_THREADS, thread_name_prefix="incarnate")

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        started: Any = _mixed(actor, CallingActor)(*args)
        started.actor_inbox.pool = self._told
        started._start_actor_loop()  # noqa: SLF001 - pykka's hook; its start() would register a fleet in a list
        ref: pykka.ActorRef[Any] = started.actor_ref
        return ref

    def close(self) -> None:
        super().close()
        self._told.shutdown()


class _Threaded(_Threads):
    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        started: Any = _mixed(actor, ThreadActor)(*args)
        started._start_actor_loop()  # noqa: SLF001 - as above
        ref: pykka.ActorRef[Any] = started.actor_ref
        return ref


@functools.cache
def _mixed(actor: Any, runtime: type[pykka.Actor]) -> type[pykka.Actor]:
    return type(actor.__name__, (runtime, actor), {})


_DISPATCHERS: dict[str, Callable[[], Runtime]] = {"calling": _Calling, "thread": _Threaded}


def make_runtime(dispatcher: DispatcherName | Runtime) -> Runtime:
    """The runtime of that name, or the one that is given.

    Raises:
        ValueError: there is none.
    """
    if not isinstance(dispatcher, str):
        return dispatcher
    if dispatcher not in _DISPATCHERS:
        raise ValueError(f"no dispatcher {dispatcher!r}: use 'calling' or 'thread'")
    return _DISPATCHERS[dispatcher]()
