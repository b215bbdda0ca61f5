"""The asynchronous system: entering, leaving, whose loop it is, and what runs where."""

import asyncio
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    AsyncSessionSystem,
    ClosedError,
    FaultyStore,
    ForeignLoopError,
    ForkedError,
    LogRewoundError,
    OffsetError,
    SessionSystem,
    StoreFileError,
    StoreUrlError,
    open_store,
)
from tests.support.loops import on_a_loop, turns
from tests.support.waiting import soon

KEY = ActivationKey("pik-1", "implement-task")
FORK = ActivationKey("pik-1", "fork")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def stored(url: str) -> list[str]:
    with SessionSystem.open(url) as system:
        return [appended.event.id for appended in system.replay(KEY)]


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("incarnate-async")}


def is_over(store: FaultyStore | None = None) -> bool:
    """Whether no thread is left, and the store is closed."""
    if store is not None:
        with pytest.raises(ClosedError):
            store.head(KEY)
    return soon(lambda: not threads())


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(open_store("memory://"))


@on_a_loop
async def test_an_operator_finds_every_call(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        await session.emit_many([said(text) for text in "abc"])
        await session.restore(rewind=True)
        await session.emit(said("d"))
        fork = await system.fork(KEY, FORK, 1)

        assert ["a", "b", "c"] == [one.event.id async for one in system.replay_superseded(KEY, 1)]
        assert [0] == [rewind.cut for rewind in await system.rewinds(KEY)]
        assert [FORK, KEY] == [info.key async for info in system.activations()]
        assert 1 == fork.next_offset
        assert [True, True] == [not diagnosis.findings async for diagnosis in system.examine()]
        with open_store("memory://") as target:
            assert {KEY, FORK} == {copied.key async for copied in system.copy_to(target)}
        await system.retire(FORK)
        await system.sweep(timedelta(days=-1))
        await system.vacuum()
        assert [KEY] == [info.key async for info in system.activations()]
        assert (await system.metrics()).rewinds == 1


@on_a_loop
async def test_a_replay_comes_in_pages_and_reads_no_further_than_it_is_asked(store: FaultyStore) -> None:
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)
        await session.emit_many([said(str(number)) for number in range(5000)])
        store.calls.clear()
        replay = system.replay(KEY, 1000)
        first = await anext(replay)

        assert (1000, 2) == (first.offset, store.calls["read"]), "the head, and one page"
        assert list(range(1001, 5000)) == [one.offset async for one in replay]
        assert 5 == store.calls["read"]


@on_a_loop
async def test_a_replay_refuses_and_fails_as_the_other_face_does(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        with pytest.raises(OffsetError):
            await anext(system.replay(KEY, 3, 2))
        session = await system.claim(KEY)
        await session.emit_many([said(str(number)) for number in range(1500)])
        replay = system.replay(KEY)
        await anext(replay)
        await session.restore(rewind=True)
        await session.emit(said("a"))

        with pytest.raises(LogRewoundError):
            _ = [one async for one in replay]


def noting(function: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    """`function`, each call of which is noted."""

    def call(*arguments: Any, **named: Any) -> Any:
        note()
        return function(*arguments, **named)

    return call


@on_a_loop
async def test_nothing_of_a_store_or_an_actor_runs_on_the_thread_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[str, set[int]] = {}

    def note(name: str) -> None:
        ran.setdefault(name, set()).add(threading.get_ident())

    store = FaultyStore(open_store("memory://"))
    for name in ("transact", "snapshot", "head", "activations", "fork", "sweep"):
        monkeypatch.setattr(store, name, noting(getattr(store, name), functools.partial(note, name)))

    def opened() -> SessionSystem:
        note("open")
        return SessionSystem(store)

    monkeypatch.setattr(SessionSystem, "close", noting(SessionSystem.close, functools.partial(note, "close")))
    async with AsyncSessionSystem.over(opened) as system:
        session = await system.claim(KEY)
        await session.emit(said("a"))
        await (await session.emit_soon(said("b")))
        await session.checkpoint("sha")
        await session.restore()
        _ = [one async for one in system.replay(KEY)]
        _ = [one async for one in system.activations()]
        await system.fork(KEY, FORK, 0)
        await system.sweep(timedelta(0))

    assert {"open", "transact", "snapshot", "activations", "fork", "sweep", "close"} <= ran.keys()
    assert threading.get_ident() not in set().union(*ran.values())


def test_opening_fails_where_it_is_entered(tmp_path: Path) -> None:
    @on_a_loop
    async def enter(url: str) -> None:
        async with AsyncSessionSystem.open(url):
            pytest.fail("entered")

    with pytest.raises(StoreUrlError):
        enter("nothing://")
    with pytest.raises(StoreFileError):
        enter(f"sqlite:///{tmp_path}/no/such/folder/sessions.db")
    assert is_over()


@on_a_loop
async def test_several_live_on_one_loop(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    async with AsyncSessionSystem.open(url) as one, AsyncSessionSystem.open(url) as other:
        first = await one.claim(KEY)
        second = await other.claim(KEY)

        assert (1, 2) == (first.incarnation, second.incarnation)


def test_a_call_from_another_loop_is_refused(url: str) -> None:
    async def refused(call: Any) -> None:
        with pytest.raises(ForeignLoopError, match="another event loop"):
            await call

    @on_a_loop
    async def scenario() -> None:
        async with AsyncSessionSystem.open(url) as system:
            session = await system.claim(KEY)
            for call in (system.claim(KEY), session.emit(said("a")), anext(system.replay(KEY)), system.close()):
                await asyncio.to_thread(asyncio.run, refused(call))

            assert 0 == (await session.emit(said("a"))).offset

    scenario()


def test_each_loop_may_have_a_system_of_its_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"

    async def write(name: str) -> int:
        async with AsyncSessionSystem.open(url) as system:
            session = await system.claim(ActivationKey("pik", name))
            return sum([(await session.emit(said(str(number)))).offset for number in range(20)])

    @on_a_loop
    async def scenario() -> None:
        runs = [asyncio.to_thread(asyncio.run, write(str(number))) for number in range(4)]

        assert [190] * 4 == await asyncio.gather(*runs)

    scenario()


@on_a_loop
async def test_leaving_waits_for_what_is_in_flight_and_the_loop_goes_on_meanwhile(store: FaultyStore) -> None:
    go = threading.Event()
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)
        held = store.delay(go)
        tasks = [asyncio.create_task(session.emit(said(str(number)))) for number in range(100)]
        await asyncio.to_thread(held.reached.wait, 10)
        asyncio.get_running_loop().call_later(0.05, go.set)  # only a loop that is not blocked comes to it

    assert list(range(100)) == [(await task).offset for task in tasks]
    assert is_over()


@on_a_loop
async def test_a_closed_system_refuses_every_call(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        await system.close()
        await system.close()
        for call in (system.claim(KEY), session.emit(said("a")), session.restore(), anext(system.replay(KEY))):
            with pytest.raises(ClosedError):
                await call


@on_a_loop
async def test_a_task_that_is_cancelled_while_it_leaves_goes_at_once_and_the_system_is_closed(
    store: FaultyStore,
) -> None:
    go = threading.Event()

    async def use() -> None:
        async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
            session = await system.claim(KEY)
            held = store.delay(go)
            lost = asyncio.create_task(session.emit(said("a")))
            await asyncio.to_thread(held.reached.wait, 10)
            lost.cancel()
            await turns()

    task = asyncio.create_task(use())
    while "incarnate-close" not in {one.get_name() for one in asyncio.all_tasks()}:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    [closing] = [one for one in asyncio.all_tasks() if one.get_name() == "incarnate-close"]
    await closing

    assert is_over(store)


def test_a_loop_that_ends_with_calls_in_flight_loses_none_that_had_begun(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    acknowledged: list[str] = []

    async def emit_on(system: AsyncSessionSystem) -> None:
        session = await system.claim(KEY)
        for number in range(100_000):
            await session.emit(said(str(number)))
            acknowledged.append(str(number))

    async def main() -> None:
        async with AsyncSessionSystem.open(url) as system:
            task = asyncio.create_task(emit_on(system))
            while len(acknowledged) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0)
            task.cancel()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    written = stored(url)

    assert acknowledged == written[: len(acknowledged)]
    assert len(written) - len(acknowledged) in {0, 1}
    assert is_over()


def test_a_task_that_the_end_of_the_loop_cancels_closes_its_system(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    systems: list[AsyncSessionSystem] = []

    async def serve() -> None:
        async with AsyncSessionSystem.open(url) as system:
            systems.append(system)
            session = await system.claim(KEY)
            for number in range(100_000):
                await session.emit(said(str(number)))

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(serve())
        while not systems:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        return task  # and the loop ends

    assert asyncio.run(main()).cancelled()
    assert is_over()
    assert list(map(str, range(len(stored(url))))) == stored(url)


NEVER_LEFT = """
import asyncio, sys
from incarnate import ActivationKey, AsyncSessionSystem, UserMessage

async def main():
    entered = AsyncSessionSystem.open(sys.argv[1])
    system = await entered.__aenter__()
    session = await system.claim(ActivationKey("pik-1", "implement-task"))
    await session.emit(UserMessage(id="a", parent_id=None, text="a"))
    asyncio.create_task(session.emit(UserMessage(id="b", parent_id=None, text="b")))
    await asyncio.sleep(0)
    return entered

entered = asyncio.run(main())
print("over")
"""


def test_a_program_that_never_leaves_its_system_ends_all_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    command = [sys.executable, "-c", NEVER_LEFT, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)

    assert "over\n" == done.stdout
    assert stored(url) in (["a"], ["a", "b"])


@on_a_loop
async def test_a_system_whose_opening_was_cancelled_is_closed(store: FaultyStore) -> None:
    go, begun = threading.Event(), threading.Event()

    def opened() -> SessionSystem:
        begun.set()
        go.wait(10)
        return SessionSystem(store)

    async def use() -> None:
        async with AsyncSessionSystem.over(opened):
            pytest.fail("entered")

    task = asyncio.create_task(use())
    await asyncio.to_thread(begun.wait, 10)
    asyncio.get_running_loop().call_later(0.02, go.set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert is_over(store)


@on_a_loop
async def test_a_forked_child_is_refused_and_leaves_the_system_alone(tmp_path: Path) -> None:
    async with AsyncSessionSystem.open(f"sqlite:///{tmp_path}/sessions.db") as system:
        session = await system.claim(KEY)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                await session.emit(said("child"))
            except ForkedError:
                await system.close()
                code = 0
            finally:
                os._exit(code)

        _, status = await asyncio.to_thread(os.waitpid, child, 0)

        assert 0 == os.waitstatus_to_exitcode(status)
        assert 0 == (await session.emit(said("parent"))).offset
