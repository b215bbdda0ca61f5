"""The asynchronous session handle: what its calls do, in which order, and how one is told that it was taken over."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AskTimeoutError,
    AssistantMessage,
    AsyncSessionSystem,
    EffectEntry,
    FaultyStore,
    HeadMovedError,
    IncarnateError,
    MalformedCommandError,
    OutcomeUnknownError,
    SessionSystem,
    StaleIncarnationError,
    UnencodableEventError,
    open_store,
)
from incarnate.actors.dispatchers import DispatcherName
from incarnate.actors.together import Emit
from tests.support.loops import on_a_loop

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


async def ids(system: AsyncSessionSystem, key: ActivationKey = KEY) -> list[str]:
    return [appended.event.id async for appended in system.replay(key)]


@on_a_loop
async def test_a_session_writes_checkpoints_and_restores(url: str, dispatcher: DispatcherName) -> None:
    async with AsyncSessionSystem.open(url, dispatcher=dispatcher) as system:
        session = await system.lease(KEY, incarnation=3)
        written = [await session.emit(said("a")), *await session.emit_many([said("b"), said("c")])]
        checkpoint = await session.checkpoint("sha", [EffectEntry(id="x", kind="git-push")])
        await session.emit(said("lost"))
        seed = await session.restore()
        await session.emit(said("d"))

        assert [(0, 3), (1, 3), (2, 3)] == [(one.offset, one.incarnation) for one in written]
        assert (checkpoint, 3, 1) == (seed.checkpoint, seed.next_offset, seed.discards)
        assert (KEY, 3, 4) == (session.key, session.incarnation, session.next_offset)
        assert ["a", "b", "c", "d"] == await ids(system)


@on_a_loop
async def test_turns_are_numbered_by_the_log(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)

        assert (0, "turn-1") == (await session.next_turn(), await session.next_turn_id())


@on_a_loop
async def test_calls_of_many_tasks_are_done_in_the_order_in_which_they_were_made(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        numbers = [str(number) for number in range(300)]
        appended = await asyncio.gather(*[session.emit(said(number)) for number in numbers])

        assert list(range(300)) == [one.offset for one in appended]
        assert numbers == await ids(system)


@on_a_loop
async def test_many_sessions_each_keep_their_order() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        sessions = [await system.claim(ActivationKey("pik", str(number))) for number in range(200)]
        await asyncio.gather(*[session.emit(said(str(index))) for index in range(20) for session in sessions])

        expected = [str(index) for index in range(20)]
        assert [expected] * 200 == [await ids(system, session.key) for session in sessions]


@on_a_loop
async def test_one_that_fails_leaves_those_before_and_after_it_alone(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        done = await asyncio.gather(
            *[session.emit(said(text)) for text in ("a", "\ud800", "b")], return_exceptions=True
        )

        assert isinstance(done[1], UnencodableEventError)
        assert ["a", "b"] == await ids(system)


@on_a_loop
async def test_a_zombie_is_refused(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        zombie = await system.claim(KEY)
        await system.claim(KEY)
        with pytest.raises(StaleIncarnationError):
            await zombie.emit(said("z"))

        assert [] == await ids(system)


@on_a_loop
async def test_a_lost_answer_may_be_asked_for_again() -> None:
    store = FaultyStore(open_store("memory://"))
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)
        store.lose()
        with pytest.raises(OutcomeUnknownError):
            await session.emit(said("a"))

        assert 0 == (await session.emit(said("a"))).offset
        assert ["a"] == await ids(system)


@on_a_loop
async def test_events_in_flight_keep_their_order_and_share_commits() -> None:
    store = FaultyStore(open_store("memory://"))
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)
        go = threading.Event()
        store.delay(go)
        futures = [await session.emit_soon(said(str(number))) for number in range(200)]
        go.set()
        appended = await asyncio.gather(*futures)

        assert list(range(200)) == [one.offset for one in appended]
        assert store.calls["write"] < 20


@on_a_loop
async def test_what_stopped_emit_soon_is_told_once_by_the_next_call(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        futures = [await session.emit_soon(said(text)) for text in ("a", "\ud800", "b")]
        with pytest.raises(UnencodableEventError):
            await session.settle()
        failed = await asyncio.gather(*futures, return_exceptions=True)

        assert [False, True, True] == [isinstance(one, UnencodableEventError) for one in failed]
        assert 1 == (await session.emit(said("c"))).offset


@on_a_loop
async def test_settle_waits_for_what_emit_soon_sent() -> None:
    store = FaultyStore(open_store("memory://"))
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)
        go = threading.Event()
        held = store.delay(go)
        sent = await session.emit_soon(said("a"))
        await asyncio.to_thread(held.reached.wait, 10)
        settled = asyncio.create_task(session.settle())
        await asyncio.sleep(0.05)
        assert not settled.done()
        go.set()
        await settled
        assert sent.done()

        assert 1 == session.next_offset


@on_a_loop
async def test_a_take_over_is_told_on_the_loop(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        fenced: asyncio.Future[threading.Thread] = asyncio.get_running_loop().create_future()
        await session.on_fenced(lambda: fenced.set_result(threading.current_thread()))
        await system.claim(KEY)

        assert threading.current_thread() is await fenced


@on_a_loop
async def test_a_take_over_can_cancel_the_task_of_the_agent(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        agent = asyncio.create_task(asyncio.Event().wait())
        await session.on_fenced(agent.cancel)
        await system.claim(KEY)

        with pytest.raises(asyncio.CancelledError):
            await agent


@on_a_loop
async def test_whatever_a_call_raises_is_its_answer() -> None:
    ids_given = iter(["only"])
    async with AsyncSessionSystem.open("memory://", new_id=lambda: next(ids_given)) as system:
        session = await system.claim(KEY)
        await session.checkpoint("sha")
        with pytest.raises(RuntimeError, match="StopIteration"):
            await session.checkpoint("sha")

        assert 0 == (await session.emit(said("a"))).offset


@on_a_loop
async def test_a_call_that_takes_no_such_argument_is_refused_as_any_other(url: str) -> None:
    async with AsyncSessionSystem.open(url) as system:
        session = await system.claim(KEY)
        with pytest.raises(TypeError):
            await session.emit()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
        with pytest.raises(IncarnateError):
            await session.emit_many([said("\ud800")])


@on_a_loop
async def test_emits_of_many_sessions_share_a_commit(tmp_path: Path) -> None:
    async with AsyncSessionSystem.open(f"sqlite:///{tmp_path}/log.db") as system:
        sessions = [await system.claim(ActivationKey("pik", str(number))) for number in range(64)]
        before = (await system.metrics()).group_sizes.count
        appended = await asyncio.gather(*[session.emit(said("a")) for session in sessions])

        assert [0] * 64 == [one.offset for one in appended]
        assert 1 == (await system.metrics()).group_sizes.count - before


@on_a_loop
async def test_sessions_that_once_sent_without_waiting_share_a_commit_again(tmp_path: Path) -> None:
    async with AsyncSessionSystem.open(f"sqlite:///{tmp_path}/log.db") as system:
        sessions = [await system.claim(ActivationKey("pik", str(number))) for number in range(16)]
        for session in sessions:
            await (await session.emit_soon(said("soon")))
            await session.settle()
        before = (await system.metrics()).group_sizes.count
        await asyncio.gather(*[session.emit(said("a")) for session in sessions])

        assert 1 == (await system.metrics()).group_sizes.count - before
        assert ["soon", "a"] == await ids(system, sessions[7].key)


@on_a_loop
async def test_a_session_that_is_busy_keeps_nobody_else_waiting() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        busy, free = await system.claim(KEY), await system.claim(ActivationKey("pik", "free"))
        held = store.delay(go)
        first = asyncio.create_task(busy.emit_many([said("a"), said("b")]))
        await asyncio.to_thread(held.reached.wait, 10)
        second = asyncio.create_task(busy.emit(said("c")))

        assert 0 == (await free.emit(said("x"))).offset
        assert not second.done()
        go.set()
        assert (2, 2) == ((await second).offset, len(await first))


@on_a_loop
async def test_an_activation_that_another_handle_keeps_busy_is_waited_for() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        mine, theirs = await system.lease(KEY, 1), await system.lease(KEY, 1)
        held = store.delay(go)
        under_way = asyncio.create_task(theirs.emit_many([said("theirs")]))
        await asyncio.to_thread(held.reached.wait, 10)
        waiting = asyncio.create_task(mine.emit(said("mine")))
        free = await system.claim(ActivationKey("pik", "free"))
        await free.emit(said("x"))
        go.set()

        assert 1 == len(await under_way)
        with pytest.raises(HeadMovedError):
            await waiting


@on_a_loop
async def test_a_session_whose_store_is_slow_keeps_no_other_waiting() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        sessions = [await system.claim(ActivationKey("pik", str(number))) for number in range(5)]
        store.delay(go, key=sessions[0].key)
        slow, *others = [asyncio.create_task(session.emit(said("a"))) for session in sessions]

        assert [0] * 4 == [one.offset for one in await asyncio.gather(*others)]
        assert not slow.done()
        go.set()
        assert 0 == (await slow).offset


@on_a_loop
async def test_as_many_calls_as_there_are_threads_for_keep_no_emit_of_others_waiting() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    store.commits_together = True
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        keys = [ActivationKey("pik", str(number)) for number in range(64)]
        stuck, again = [await system.lease(key, 1) for key in keys], [await system.lease(key, 1) for key in keys[:8]]
        free = await system.claim(KEY)
        held = [store.delay(go, key=key) for key in keys]
        waiting = [asyncio.create_task(session.checkpoint("sha")) for session in stuck]
        assert all([await asyncio.to_thread(one.reached.wait, 10) for one in held])
        left = [asyncio.create_task(session.emit(said("left"))) for session in again]
        try:
            async with asyncio.timeout(10):
                assert [0, 1, 2] == [(await free.emit(said(text))).offset for text in "abc"]
        finally:
            go.set()

        assert {0} == {checkpoint.offset for checkpoint in await asyncio.gather(*waiting)}
        assert {0} == {appended.offset for appended in await asyncio.gather(*left)}


@on_a_loop
async def test_an_emit_waits_no_longer_than_a_call_may() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    store.commits_together = True
    async with AsyncSessionSystem.over(lambda: SessionSystem(store, ask_timeout=0.05)) as system:
        session = await system.claim(KEY)
        store.delay(go)
        try:
            async with asyncio.timeout(10):
                with pytest.raises(AskTimeoutError):
                    await session.emit(said("a"))
        finally:
            go.set()


@on_a_loop
async def test_emits_that_no_batch_can_be_made_of_are_done_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    async with AsyncSessionSystem.open("memory://") as system:
        sessions = [await system.claim(ActivationKey("pik", str(number))) for number in range(5)]
        async with asyncio.timeout(10):
            with monkeypatch.context() as patch:
                patch.setattr(Emit, "__init__", no_memory)
                emits = [session.emit(said("a")) for session in sessions for _ in range(3)]
                assert 15 == len(await asyncio.gather(*emits))
            assert 3 == (await sessions[0].emit(said("b"))).offset


def test_what_one_answer_raises_on_the_loop_keeps_no_other_from_arriving() -> None:
    told: list[BaseException] = []

    class Raises:
        def settle(self) -> None:
            raise ZeroDivisionError

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        async with AsyncSessionSystem.open("memory://") as system:
            bridge, arrived = vars(system)["_bridge"], asyncio.Event()
            bridge.hand_back(Raises(), Signalled(arrived))
            async with asyncio.timeout(5):
                await arrived.wait()

    asyncio.run(main())
    assert [ZeroDivisionError] == [type(error) for error in told]


class Signalled:
    """What a thread hands back, and the loop notes."""

    def __init__(self, arrived: asyncio.Event) -> None:
        self._arrived = arrived

    def settle(self) -> None:
        self._arrived.set()


class OfSomebodyElse:
    """A store that is no `Store`, and older than `transact_each`."""

    def __init__(self) -> None:
        self._store = open_store("memory://")
        self.url = self._store.url

    def __getattr__(self, name: str) -> Any:
        if name in {"transact_each", "commits_together"}:
            raise AttributeError(name)
        return getattr(self._store, name)


@on_a_loop
async def test_a_store_that_knows_nothing_of_many_at_once_is_written_to() -> None:
    store: Any = OfSomebodyElse()
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        session = await system.claim(KEY)

        assert [0, 1] == [(await session.emit(said(text))).offset for text in "ab"]


@on_a_loop
async def test_a_callback_that_would_never_run_is_refused_at_once() -> None:
    async def stop() -> None:
        raise AssertionError("nobody awaits it")

    wrong: list[Any] = [None, 5, stop]
    async with AsyncSessionSystem.open("memory://") as system:
        session = await system.claim(KEY)
        for callback in wrong:
            with pytest.raises(MalformedCommandError, match=r"on_fenced\.callback must be a plain function"):
                await session.on_fenced(callback)
