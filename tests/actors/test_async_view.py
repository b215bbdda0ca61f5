"""The asynchronous view: its value, its changes, and waiting for it without a thread."""

import asyncio
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pykka
import pytest

from incarnate import (
    ActivationKey,
    AppendedEvent,
    AssistantMessage,
    AsyncSessionSystem,
    AsyncView,
    Change,
    ClosedError,
    FaultyStore,
    ModelHistory,
    SessionSystem,
    StudioTranscript,
    ViewBehindError,
    ViewFailedError,
    apply_change,
    open_store,
)
from tests.support.loops import on_a_loop

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


class Broken(StudioTranscript):
    """A projection that takes no event."""

    def apply(self, appended: AppendedEvent) -> Change:
        raise RuntimeError(appended.event.id)


async def followed(view: AsyncView[Any], length: int) -> list[Any]:
    """The items of a view, from its changes alone, once there are so many."""
    items: list[Any] = []
    async with aclosing(view.changes()) as changes:
        async for change in changes:
            apply_change(items, change)
            if len(items) == length:
                break
    return items


@on_a_loop
async def test_a_value_includes_all_that_was_acknowledged_before(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        view = await system.view(KEY, ModelHistory())
        for number in range(20):
            await session.emit(said(str(number)))
            assert number + 1 == len(await view.get())
        assert (KEY, ModelHistory().name) == (view.key, view.name)
        assert await view.diagnostics() is not None


@on_a_loop
async def test_changes_are_the_view_and_then_what_happens_to_it(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        await session.emit(said("a"))
        view = await system.view(KEY, StudioTranscript())
        task = asyncio.create_task(followed(view, 500))
        for number in range(499):
            await session.emit(said(str(number)))

        assert list(await view.get()) == await task


@on_a_loop
async def test_changes_tell_of_a_rewind(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        await session.emit_many([said(text) for text in "abc"])
        view = await system.view(KEY, StudioTranscript())
        async with aclosing(view.changes()) as changes:
            items = list((await anext(changes)).items)
            await session.restore(rewind=True)
            await session.emit(said("d"))
            while items != list(await view.get()):
                apply_change(items, await anext(changes))

        assert 1 == len(items)

        assert list(await view.get()) == items


@on_a_loop
async def test_changes_of_another_process_come_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    async with AsyncSessionSystem.open(url) as here, AsyncSessionSystem.open(url) as there:
        view = await here.view(KEY, StudioTranscript())
        task = asyncio.create_task(followed(view, 3))
        session = await there.claim(KEY)
        await session.emit_many([said(text) for text in "abc"])

        assert 3 == len(await task)


@on_a_loop
async def test_a_hundred_followers_and_waiters_hold_no_threads(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        view = await system.view(KEY, StudioTranscript())
        tasks = [asyncio.create_task(followed(view, 3)) for _ in range(100)]
        waiting = [asyncio.create_task(view.get((0, 3))) for _ in range(100)]
        await asyncio.sleep(0.05)
        before = threading.active_count()
        await session.emit_many([said(text) for text in "abc"])

        assert [3] * 200 == [len(await task) for task in [*tasks, *waiting]]
        assert before < 100


@on_a_loop
async def test_a_follower_that_left_is_told_nothing_more(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        await session.emit(said("a"))
        view = await system.view(KEY, StudioTranscript())
        await followed(view, 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(followed(view, 9), 0.02)
        with pytest.raises(ViewBehindError):
            await view.get((0, 9), 0.01)
        while view._core.is_followed:  # noqa: SLF001, ASYNC110
            await asyncio.sleep(0.001)


@on_a_loop
async def test_changes_end_when_the_system_is_closed(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        view = await system.view(KEY, StudioTranscript())
        seen: list[Change] = []

        async def follow() -> None:
            async for change in view.changes():
                seen.append(change)  # noqa: PERF401 - the test waits for the first

        tasks = [asyncio.create_task(follow()) for _ in range(3)]
        while len(seen) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    await asyncio.gather(*tasks)
    assert 3 == len(seen)


@on_a_loop
async def test_who_waits_for_a_view_is_told_that_the_system_was_closed(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        view = await system.view(KEY, StudioTranscript())
        waiting = asyncio.create_task(view.get((0, 9)))
        await asyncio.sleep(0.02)

    with pytest.raises(ClosedError):
        await waiting


@on_a_loop
async def test_a_view_is_waited_for_in_time_or_not(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        view = await system.view(KEY, StudioTranscript())
        waiting = asyncio.create_task(view.get((0, 2), timeout=10))
        await session.emit(said("a"))
        await session.emit(said("b"))

        assert 2 == len(await waiting)
        assert 2 == len(await view.get((0, 2), timeout=0))
        with pytest.raises(ViewBehindError, match=r"stands at \(0, 2\) after 0\.01 seconds; \(0, 3\) was asked for"):
            await view.get((0, 3), timeout=0.01)


@on_a_loop
async def test_a_projection_that_fails_is_told_to_whoever_asks_or_follows() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        session = await system.claim(KEY)
        await session.emit(said("a"))
        view = await system.view(KEY, Broken())
        with pytest.raises(ViewFailedError):
            await view.get()
        with pytest.raises(ViewFailedError):
            await anext(view.changes())


@on_a_loop
async def test_an_actor_may_be_told_of_changes(url: str) -> None:
    heard = threading.Event()

    class Listening(pykka.ThreadingActor):
        def on_receive(self, message: Any) -> None:
            if message.change.items:
                heard.set()

    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        view = await system.view(KEY, StudioTranscript())
        actor = Listening.start()
        try:
            await view.subscribe(actor)
            await session.emit(said("a"))
            assert await asyncio.to_thread(heard.wait, 10)
            await view.unsubscribe(actor)
        finally:
            await asyncio.to_thread(actor.stop)


@on_a_loop
async def test_a_slow_consumer_gets_the_view_anew_and_not_all_that_it_missed() -> None:
    store = FaultyStore(open_store("memory://"))
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)
        view = await system.view(KEY, StudioTranscript())
        async with aclosing(view.changes()) as changes:
            items = list((await anext(changes)).items)
            for number in range(3000):
                await (await session.emit_soon(said(str(number))))
            taken = 0
            while len(items) < 3000:
                apply_change(items, await anext(changes))
                taken += 1

        assert taken < 3000
        assert list(await view.get()) == items


@on_a_loop
async def test_who_waits_for_a_view_is_told_when_the_system_closes(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        await system.claim(KEY)
        view = await system.view(KEY, ModelHistory())
        waiting = asyncio.ensure_future(view.get(at_least=(0, 5)))
        while not vars(view)["_core"].is_followed:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)

    with pytest.raises(ClosedError):
        await asyncio.wait_for(waiting, 10)


@on_a_loop
async def test_a_wait_for_a_change_that_is_given_up_ends_its_iteration_and_no_other() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        view = await system.view(KEY, StudioTranscript())
        changes = view.changes()
        await anext(changes)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(changes), timeout=0.01)
        with pytest.raises(StopAsyncIteration):
            await anext(changes)

        assert 0 == len((await anext(view.changes())).items)
