"""The user's functions, of which a simulation calls plain ones alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from incarnate.domain.errors import SimulationFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_plain"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well


def call_plain(function: Callable[..., object], *arguments: object) -> None:
    """Call `function`, and refuse one that only made something to be awaited or iterated: nothing of it was run.

    Such a run would break no promise, whatever the supervisor does.

    Raises:
        SimulationFailedError: it is a coroutine function or a generator function.
    """
    made: Any = function(*arguments)
    kind = "a coroutine" if inspect.iscoroutine(made) else "a generator" if inspect.isgenerator(made) else ""
    if kind:
        made.close()  # else Python warns that nobody awaited it
    elif inspect.isasyncgen(made):
        kind = "an asynchronous generator"
    if kind:
        raise SimulationFailedError(
            f"{made.__qualname__} is {kind} function, of which nothing was run: a simulation calls plain functions "
            "(docs/testing.md shows how an asyncio supervisor is tested)",
            kind="plain_function",
        )
