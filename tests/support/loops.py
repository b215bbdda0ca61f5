"""Tests that are coroutines, each on an event loop of its own."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

__all__ = ["on_a_loop", "turns"]

P = ParamSpec("P")

_SECONDS = 30


def on_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on an event loop. What nobody waited for may not have failed, and no task may be left."""

    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        unheard: list[dict[str, Any]] = []

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unheard.append(context))
            async with asyncio.timeout(_SECONDS):
                await test(*arguments, **named)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert set() == left

        asyncio.run(main())
        assert [] == unheard

    return run


async def turns(count: int = 3) -> None:
    """Let the loop turn, so that what was started has begun."""
    for _ in range(count):
        await asyncio.sleep(0)
