"""The asynchronous face of an object whose methods block: the same methods, awaited.

There is one implementation, the object itself. A face holds it and carries each call over to a thread: it knows how to
wait and how to be cancelled, and nothing else. `forwarded` and `paged` make its methods from those of the object, so
that names, arguments, types and docstrings are the same.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from incarnate.actors.replay import Paged

if TYPE_CHECKING:
    from incarnate.actors.async_bridge import Bridge
    from incarnate.actors.async_lane import Lane

__all__ = ["Face", "forwarded", "paged"]

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")


class Face(Generic[C]):
    """The asynchronous face of `core`. Its calls go in the order of `lane`, or without one in none."""

    def __init__(self, core: C, bridge: Bridge, lane: Lane | None = None) -> None:
        self._core = core
        self._bridge = bridge
        self._lane = lane

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._core!r}>"

    async def _carry(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> T:
        """What comes of `work`, done with the core on a thread.

        Where the task that awaits it is cancelled, work that had begun goes on to its end, and other work is not done.
        """
        lane = self._lane
        future = (self._bridge if lane is None else lane).call(work, self._core, *arguments, **named)
        try:
            value: T = await future
        except asyncio.CancelledError:
            if lane is not None and future.done() and not future.cancelled():  # it was there, and the task never saw it
                lane.unheard = future.exception() or lane.unheard
            raise
        return value


def forwarded(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """`method` of the core as one of its face, to be awaited."""

    @functools.wraps(method)
    async def call(face: Face[Any], /, *arguments: P.args, **named: P.kwargs) -> T:
        return await face._carry(method, *arguments, **named)  # noqa: SLF001 - it becomes a method of the face

    return _named(call)


def paged(
    method: Callable[Concatenate[Any, P], Iterator[T]], most: int = 1
) -> Callable[Concatenate[Any, P], AsyncGenerator[T]]:
    """`method` of the core, which gives an iterator, as one of its face that gives an asynchronous one.

    It reads a page at a time, or `most` items where they do not come in pages, and only when asked for more. Begun
    when the first item is asked for: it raises then.
    """

    @functools.wraps(method)
    async def iterate(face: Face[Any], /, *arguments: P.args, **named: P.kwargs) -> AsyncGenerator[T]:
        found = await face._carry(method, *arguments, **named)  # noqa: SLF001 - as above
        pages = found.pages if isinstance(found, Paged) else iter(lambda: list(islice(found, most)), [])
        while page := await face._bridge.call(next, pages, ()):  # noqa: SLF001
            for item in page:
                yield item

    return _named(iterate)


def _named(function: Callable[P, T]) -> Callable[P, T]:
    function.__qualname__ = f"Async{function.__qualname__}"
    return function
