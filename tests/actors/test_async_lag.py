"""The loop goes on while sessions wait for the disk: how late a task that only sleeps is woken."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from incarnate import ActivationKey, AssistantMessage, AsyncSessionSystem, SessionSystem
from tests.support.loops import on_a_loop

SESSIONS = 64
SLEEP = 0.001
A_FEW_MILLISECONDS = 0.005

KEYS = [ActivationKey("pik", str(number)) for number in range(SESSIONS)]


def said(number: int) -> AssistantMessage:
    return AssistantMessage(id=str(number), parent_id=None, text="x" * 300)


async def late(times: int = 300) -> list[float]:
    """By how much each of many sleeps was too long, the least first."""
    found: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        await asyncio.sleep(SLEEP)
        found.append(time.perf_counter() - start - SLEEP)
    return sorted(found)


async def late_beside(emit: Callable[[int], Awaitable[object]], times: int = 300) -> list[float]:
    """The same while every session emits one event after the other."""
    over = asyncio.Event()

    async def work(session: int) -> None:
        while not over.is_set():
            await emit(session)

    async with asyncio.TaskGroup() as group:
        for session in range(SESSIONS):
            group.create_task(work(session))
        found = await late(times)
        over.set()
    return found


def p90(late: list[float]) -> float:
    return late[len(late) * 9 // 10]


@on_a_loop
async def test_a_task_beside_64_sessions_that_sync_the_disk_is_late_by_no_more_than_milliseconds(
    tmp_path: Path,
) -> None:
    async with AsyncSessionSystem.open(f"sqlite:///{tmp_path}/sessions.db") as system:
        sessions = [await system.claim(key) for key in KEYS]
        # The machine may be busy with other things: of five looks, each beside one at an idle loop, the best counts.
        looks = [(await late_beside(lambda one: sessions[one].emit(said(0))), await late()) for _ in range(5)]

    assert min(statistics.median(busy) - statistics.median(idle) for busy, idle in looks) < A_FEW_MILLISECONDS
    assert min(p90(busy) - p90(idle) for busy, idle in looks) < 2 * A_FEW_MILLISECONDS


@on_a_loop
async def test_the_same_probe_sees_commits_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    system: Any = await asyncio.to_thread(SessionSystem.open, f"sqlite:///{tmp_path}/sessions.db")
    sessions = [system.claim(key) for key in KEYS]

    async def emit(one: int) -> None:
        sessions[one].emit(said(0))
        await asyncio.sleep(0)

    found = await late_beside(emit, 5)
    await asyncio.to_thread(system.close)

    assert statistics.median(found) > 2 * A_FEW_MILLISECONDS
