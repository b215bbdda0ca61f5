"""On which thread an actor runs.

`calling` (the default): on the asking thread while it is idle, on a small shared pool for tells. Costs nothing while
idle and no thread switch a message. `thread`: a thread each, pykka's own way; for callers that must not run a commit
on their own thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Protocol

import pykka

from incarnate.actors.calling import CallingActor
from incarnate.actors.threaded import ThreadActor

__all__ = ["Dispatcher", "DispatcherName", "make_dispatcher"]

DispatcherName = Literal["calling", "thread"]

_POOL_THREADS = 4


class Dispatcher(Protocol):
    """Starts actors of one kind."""

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        """A running actor of class `actor`, made with `args`."""
        ...

    def close(self) -> None:
        """Wait for what was told, then let the threads go."""
        ...


class _Calling:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_POOL_THREADS, thread_name_prefix="incarnate")

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        started: Any = _mixed(actor, CallingActor)(*args)
        started.actor_inbox.pool = self._pool
        started._start_actor_loop()  # noqa: SLF001 - pykka's hook; its start() would register a fleet in a list
        ref: pykka.ActorRef[Any] = started.actor_ref
        return ref

    def close(self) -> None:
        self._pool.shutdown()


class _Threads:
    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        started: Any = _mixed(actor, ThreadActor)(*args)
        started._start_actor_loop()  # noqa: SLF001 - as above
        ref: pykka.ActorRef[Any] = started.actor_ref
        return ref

    def close(self) -> None:
        """Each thread ends with its actor."""


@functools.cache
def _mixed(actor: Any, runtime: type[pykka.Actor]) -> type[pykka.Actor]:
    return type(actor.__name__, (runtime, actor), {})


def make_dispatcher(name: str) -> Dispatcher:
    """The dispatcher of that name.

    Raises:
        ValueError: there is none.
    """
    match name:
        case "calling":
            return _Calling()
        case "thread":
            return _Threads()
        case _:
            raise ValueError(f"no dispatcher {name!r}: use 'calling' or 'thread'")
