"""Tasks that are cancelled while they await: the log and the handle stay whole, and what was written can be known."""

import asyncio
import contextlib
import random
import threading
from pathlib import Path

import pytest

from incarnate import (
    ActivationKey,
    AppendedEvent,
    AssistantMessage,
    AsyncSession,
    AsyncSessionSystem,
    FaultyStore,
    OutcomeUnknownError,
    SessionSystem,
    StaleIncarnationError,
    open_store,
)
from tests.support.loops import on_a_loop, turns

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


async def ids(system: AsyncSessionSystem) -> list[str]:
    return [appended.event.id async for appended in system.replay(KEY)]


class Held:
    """A store in memory whose next write is held up."""

    def __init__(self) -> None:
        self.store = FaultyStore(open_store("memory://"))
        self.go = threading.Event()

    def opened(self) -> contextlib.AbstractAsyncContextManager[AsyncSessionSystem]:
        return AsyncSessionSystem.over(lambda: SessionSystem(self.store))

    async def emit(self, session: AsyncSession, text: str) -> asyncio.Task[AppendedEvent]:
        """A task whose event is on its way to the log."""
        fault = self.store.delay(self.go)
        task = asyncio.create_task(session.emit(said(text)))
        assert await asyncio.to_thread(fault.reached.wait, 10)
        return task


async def cancelled(task: asyncio.Task[AppendedEvent]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@on_a_loop
async def test_a_call_that_had_begun_goes_on_and_is_known_afterwards() -> None:
    held = Held()
    async with held.opened() as system:
        session = await system.claim(KEY)
        await cancelled(await held.emit(session, "a"))
        held.go.set()
        await session.settle()

        assert 1 == session.next_offset
        assert 1 == (await session.emit(said("b"))).offset
        assert ["a", "b"] == await ids(system)


@on_a_loop
async def test_a_call_that_had_not_begun_is_left_out() -> None:
    held = Held()
    async with held.opened() as system:
        session = await system.claim(KEY)
        first = await held.emit(session, "a")
        second = asyncio.create_task(session.emit(said("b")))
        third = asyncio.create_task(session.emit(said("c")))
        await turns()
        await cancelled(second)
        held.go.set()
        await asyncio.gather(first, third)

        assert 2 == session.next_offset
        assert ["a", "c"] == await ids(system)


@on_a_loop
async def test_a_call_that_ran_out_of_time_may_have_written_and_the_next_one_goes_on_after_it() -> None:
    held = Held()
    async with held.opened() as system:
        session = await system.claim(KEY)
        held.store.delay(held.go)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.emit(said("a")), 0.02)
        asyncio.get_running_loop().call_later(0.02, held.go.set)

        assert 1 == (await session.emit(said("b"))).offset
        assert ["a", "b"] == await ids(system)


@on_a_loop
async def test_what_a_cancelled_call_failed_with_is_told_once_by_settle() -> None:
    held = Held()
    async with held.opened() as system:
        session = await system.claim(KEY)
        held.store.lose()
        await cancelled(await held.emit(session, "a"))
        held.go.set()
        with pytest.raises(OutcomeUnknownError):
            await session.settle()
        await session.settle()

        assert 0 == (await session.emit(said("a"))).offset, "repeated, and not written twice"
        assert ["a"] == await ids(system)


@on_a_loop
async def test_an_answer_that_came_in_the_turn_in_which_its_task_was_cancelled_is_not_lost_either() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        zombie = await system.claim(KEY)
        await system.claim(KEY)
        task = asyncio.create_task(zombie.emit(said("z")))
        settled = zombie._calls.settled  # noqa: SLF001 - called once the answer is there and before the task goes on

        def settle_and_cancel() -> None:
            settled()
            task.cancel()

        zombie._calls.settled = settle_and_cancel  # type: ignore[method-assign] # noqa: SLF001
        with pytest.raises(asyncio.CancelledError):
            await task
        zombie._calls.settled = settled  # type: ignore[method-assign] # noqa: SLF001

        with pytest.raises(StaleIncarnationError):
            await zombie.settle()


@on_a_loop
async def test_a_task_group_that_fails_leaves_the_session_usable() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        session = await system.claim(KEY)

        async def fail() -> None:
            await session.emit(said("first"))
            raise ValueError

        async def together() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                for number in range(200):
                    group.create_task(session.emit(said(str(number))))

        with pytest.raises(ExceptionGroup):
            await together()
        await session.settle()
        written = await ids(system)

        assert len(written) == session.next_offset
        assert len(written) == (await session.emit(said("next"))).offset
        assert [*written, "next"] == await ids(system)


@on_a_loop
async def test_a_cancelled_restore_leaves_the_handle_where_it_was() -> None:
    held = Held()
    async with held.opened() as system:
        session = await system.claim(KEY)
        await session.checkpoint("sha")
        await session.emit(said("a"))
        fault = held.store.delay(held.go, kind="read")
        task = asyncio.create_task(session.restore())
        assert await asyncio.to_thread(fault.reached.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.go.set()
        await session.settle()

        assert 1 == session.next_offset
        assert 1 == (await session.emit(said("b"))).offset
        assert ["a", "b"] == await ids(system)


@on_a_loop
async def test_a_restore_that_was_not_cancelled_is_kept() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        session = await system.claim(KEY)
        await session.checkpoint("sha")
        await session.emit(said("a"))
        await session.restore()
        await session.settle()

        assert 0 == (await session.emit(said("b"))).offset
        assert ["b"] == await ids(system)


@on_a_loop
async def test_a_cancelled_claim_takes_the_activation_or_not_but_harms_nothing() -> None:
    held = Held()
    async with held.opened() as system:
        first = await system.claim(KEY)
        fault = held.store.delay(held.go)
        task = asyncio.create_task(system.claim(KEY))
        assert await asyncio.to_thread(fault.reached.wait, 10)
        task.cancel()
        await asyncio.wait([task])
        held.go.set()
        second = await system.claim(KEY)

        assert second.incarnation > first.incarnation
        assert 0 == (await second.emit(said("a"))).offset


async def emit_and_cancel(session: AsyncSession, chance: random.Random) -> tuple[list[str], set[str]]:
    """Emit 300 events from many tasks and cancel some at any time: those acknowledged, in order, and the rest."""
    acknowledged: list[tuple[int, str]] = []
    lost: set[str] = set()

    async def emit(text: str) -> None:
        try:
            acknowledged.append(((await session.emit(said(text))).offset, text))
        except asyncio.CancelledError:
            lost.add(text)
            raise

    tasks: list[asyncio.Task[None]] = []
    for number in range(300):
        tasks.append(asyncio.create_task(emit(str(number))))
        for _ in range(chance.choice([0, 0, 1, 3, 9])):
            await asyncio.sleep(chance.choice([0, 0, 0.0005]))
        if chance.random() < 0.4:
            chance.choice(tasks[-20:]).cancel()
    await asyncio.wait(tasks)
    never_begun = {str(number) for number, task in enumerate(tasks) if task.cancelled()} - lost
    offsets = [offset for offset, _ in acknowledged]
    assert sorted(offsets) == offsets
    return [text for _, text in acknowledged], lost | never_begun


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("back_end", ["memory", "sqlite"])
def test_whatever_is_cancelled_the_log_holds_what_was_acknowledged_once_and_in_order(
    seed: int, back_end: str, tmp_path: Path
) -> None:
    url = "memory://" if back_end == "memory" else f"sqlite:///{tmp_path}/sessions.db"

    @on_a_loop
    async def scenario() -> None:
        async with AsyncSessionSystem.open(url) as system:
            session = await system.claim(KEY)
            acknowledged, lost = await emit_and_cancel(session, random.Random(seed))
            await session.settle()
            written = [(appended.offset, appended.event.id) async for appended in system.replay(KEY)]
            texts = [text for _, text in written]

            assert list(range(session.next_offset)) == [offset for offset, _ in written]
            assert sorted(texts, key=int) == texts, "in the order of the calls"
            assert len(set(texts)) == len(texts), "none twice"
            assert acknowledged == [text for text in texts if text not in lost]
            assert set(acknowledged) | lost == {str(number) for number in range(300)}
            assert lost, "some were cancelled"
            assert session.next_offset == (await session.emit(said("next"))).offset

    scenario()


@on_a_loop
async def test_tasks_of_many_sessions_cancelled_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    """What was written is in the log and known to the handle, whoever stopped waiting for it."""
    rng = random.Random(7)
    async with AsyncSessionSystem.open(f"sqlite:///{tmp_path}/log.db") as system:
        sessions = [await system.claim(ActivationKey("pik", str(number))) for number in range(40)]
        for _ in range(15):
            tasks = [asyncio.create_task(session.emit(said("a"))) for session in sessions]
            await turns(rng.randrange(8))
            for task in rng.sample(tasks, 20):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for session in sessions:
            await session.settle()

        for session in sessions:
            assert session.next_offset == len([one async for one in system.replay(session.key)])
            assert session.next_offset == (await session.emit(said("after"))).offset
