"""What our session gives beyond the SDK's own: fences, archives, certain outcomes, views, a free event loop."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Generator
from typing import Any

import pytest
from agents import Agent, Runner, TResponseInputItem, function_tool

from incarnate import (
    ActivationKey,
    FaultyStore,
    HeadMovedError,
    KeyFormatError,
    ModelHistory,
    OffsetError,
    OutcomeUnknownError,
    SessionSystem,
    StaleIncarnationError,
    StoreBusyError,
    TurnEnd,
    TurnStart,
    UnencodableEventError,
    open_store,
)
from incarnate.bridges.openai_agents import IncarnateSession
from tests.support.commands import run as command
from tests.support.fake_model import FakeModel, calls, says, thinks

KEY = ActivationKey("pik", "task")


def said(text: object) -> TResponseInputItem:
    return {"role": "user", "content": str(text)}


def texts(items: list[TResponseInputItem]) -> list[Any]:
    return [item.get("content") for item in items]


@pytest.fixture
def faulty(url: str) -> Generator[FaultyStore]:
    with FaultyStore(open_store(url)) as store:
        yield store


@pytest.fixture
def shaky(faulty: FaultyStore) -> Generator[SessionSystem]:
    with SessionSystem(faulty) as system:
        yield system


# Ownership


def test_the_first_call_claims_and_a_later_session_takes_over(system: SessionSystem) -> None:
    async def scenario() -> None:
        zombie, successor = IncarnateSession(system, KEY), IncarnateSession(system, str(KEY))
        assert "None" == str(zombie.incarnation)
        await zombie.add_items([said("first")])
        assert ["first"] == texts(await successor.get_items())
        assert (1, 2) == (zombie.incarnation, successor.incarnation)
        for call in (
            zombie.add_items([said("late")]),
            zombie.get_items(),
            zombie.get_items(limit=1),
            zombie.pop_item(),
            zombie.clear_session(),
            zombie.add_items([said("late")]),
        ):
            with pytest.raises(StaleIncarnationError):
                await call
        assert ["first"] == texts(await successor.get_items())

    asyncio.run(scenario())


def test_a_session_may_be_told_its_incarnation(system: SessionSystem) -> None:
    async def scenario() -> None:
        first = IncarnateSession(system, KEY, incarnation=7)
        assert 7 == await first.claim()
        again = IncarnateSession(system, KEY, incarnation=7)
        assert 7 == await again.claim()
        with pytest.raises(StaleIncarnationError):
            await IncarnateSession(system, KEY, incarnation=6).get_items()

    asyncio.run(scenario())


def test_an_agent_that_was_taken_over_runs_no_tool(system: SessionSystem) -> None:
    ran = []

    @function_tool
    def push() -> str:
        """Push."""
        ran.append("push")
        return "pushed"

    async def scenario() -> None:
        zombie = IncarnateSession(system, KEY)
        await zombie.claim()
        await IncarnateSession(system, KEY).claim()
        with pytest.raises(StaleIncarnationError):
            await Runner.run(
                Agent(name="a", model=FakeModel([[calls("push", "{}")]]), tools=[push]), "go", session=zombie
            )

    asyncio.run(scenario())
    assert [] == ran


def test_two_writers_of_one_incarnation_are_told_of_each_other(system: SessionSystem) -> None:
    async def scenario() -> None:
        one, other = (IncarnateSession(system, KEY, incarnation=1) for _ in range(2))
        await one.claim()
        await other.add_items([said("theirs")])
        with pytest.raises(HeadMovedError):
            await one.add_items([said("mine")])
        assert ["theirs"] == texts(await one.get_items())
        await one.add_items([said("mine, knowing it")])
        assert ["theirs", "mine, knowing it"] == texts(await one.get_items())

    asyncio.run(scenario())


def test_a_pop_never_takes_an_item_that_it_did_not_see(system: SessionSystem) -> None:
    async def scenario() -> None:
        one, other = (IncarnateSession(system, KEY, incarnation=1) for _ in range(2))
        await one.add_items([said("seen")])
        await other.add_items([said("unseen")])
        with pytest.raises(HeadMovedError):
            await one.pop_item()
        assert ["seen", "unseen"] == texts(await other.get_items())

    asyncio.run(scenario())


def test_a_key_that_names_nothing_is_refused(system: SessionSystem) -> None:
    with pytest.raises(KeyFormatError):
        IncarnateSession(system, "user_123")


# What is taken away


def test_what_was_popped_or_cleared_stays_in_the_archive(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        await session.add_items([said("a"), said("b"), said("c")])
        await session.pop_item()
        await session.clear_session()

    asyncio.run(scenario())
    cuts = [(rewind.cut, rewind.head) for rewind in system.rewinds(KEY)]
    archived = [
        [getattr(appended.event, "text", "") for appended in system.replay_superseded(KEY, generation)]
        for generation in (1, 2)
    ]
    assert [(2, 3), (0, 3)] == cuts
    assert [["c"], ["a", "b", ""]] == archived


def test_a_session_goes_back_to_a_checkpoint_and_keeps_it(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        await session.add_items([said("a"), said("b")])
        handle = system.lease(KEY, await session.claim())
        handle.checkpoint("sha-1")
        await session.add_items([said("c"), said("d")])
        assert "b" == (await session.get_items(limit=3))[0].get("content")

        heir = IncarnateSession(system, KEY)
        seed = system.lease(KEY, await heir.claim()).restore()
        await heir.rewind_to(seed.next_offset)
        assert ["a", "b"] == texts(await heir.get_items())
        await heir.add_items([said("e")])
        assert await heir.pop_item() == said("e")
        assert ["a", "b"] == texts(await heir.get_items())
        again = system.lease(KEY, await heir.claim()).restore().checkpoint
        assert again is not None
        assert ("sha-1", 2) == (again.commit_sha, again.offset)

    asyncio.run(scenario())


def test_a_checkpoint_made_after_a_pop_outlives_the_next_item(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        await session.add_items([said("a"), said("b")])
        await session.pop_item()
        system.lease(KEY, await session.claim()).checkpoint("sha-1")
        await session.add_items([said("c")])

    asyncio.run(scenario())
    checkpoint = system.claim(KEY).restore().checkpoint
    assert checkpoint is not None
    assert 2 == checkpoint.offset


def test_a_rewind_to_where_it_ends_changes_nothing_and_above_it_is_refused(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        await session.add_items([said("a")])
        await session.rewind_to(1)
        for offset in (2, -1):
            with pytest.raises(OffsetError):
                await session.rewind_to(offset)
        assert ["a"] == texts(await session.get_items())

    asyncio.run(scenario())
    assert [] == system.rewinds(KEY)


# Outcomes


def test_an_item_outside_the_contract_is_refused_with_its_path(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        bad: Any = {"role": "user", "content": [{"type": "input_text", "text": "\ud800"}]}
        with pytest.raises(UnencodableEventError) as refused:
            await session.add_items([said("a"), bad])
        assert "$[1].content[0].text" == refused.value.path
        await session.add_items([said("b")])
        assert ["b"] == texts(await session.get_items())

    asyncio.run(scenario())


def test_a_lost_answer_is_asked_for_again_and_nothing_is_doubled(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def scenario() -> None:
        session = IncarnateSession(shaky, KEY)
        faulty.lose(2, kind="append")
        await session.add_items([said("a"), said("b")])
        faulty.lose(2, kind="rewind")
        assert said("b") == await session.pop_item()
        assert ["a"] == texts(await session.get_items())

    asyncio.run(scenario())


def test_the_same_call_after_an_unknown_outcome_does_not_double_it(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def repeated(call: Any, *arguments: Any) -> Any:
        lost = faulty.lose(None)
        with pytest.raises(OutcomeUnknownError):
            await call(*arguments)
        lost.cancel()
        return await call(*arguments)

    async def scenario() -> None:
        session = IncarnateSession(shaky, KEY)
        await session.claim()
        await repeated(session.add_items, [said("a"), said("b"), said("c")])
        assert ["a", "b", "c"] == texts(await session.get_items())
        assert said("c") == await repeated(session.pop_item)
        assert ["a", "b"] == texts(await session.get_items())
        await repeated(session.rewind_to, 1)
        assert ["a"] == texts(await session.get_items())

    asyncio.run(scenario())


def test_after_an_unknown_outcome_the_items_tell_it(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def scenario() -> None:
        session = IncarnateSession(shaky, KEY)
        await session.claim()
        lost = faulty.lose(None)
        with pytest.raises(OutcomeUnknownError):
            await session.add_items([said("a")])
        lost.cancel()
        assert ["a"] == texts(await session.get_items())
        await session.add_items([said("a")])  # it was seen, so this is another one
        assert ["a", "a"] == texts(await session.get_items())

    asyncio.run(scenario())


def test_a_busy_store_refuses_and_the_next_call_goes_on(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def scenario() -> None:
        session = IncarnateSession(shaky, KEY)
        await session.add_items([said("a")])
        faulty.fail(kind="append")
        with pytest.raises(StoreBusyError):
            await session.add_items([said("b")])
        await session.add_items([said("c")])
        assert ["a", "c"] == texts(await session.get_items())

    asyncio.run(scenario())


def test_calls_are_done_in_the_order_in_which_they_were_made(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        adds = [session.add_items([said(number), said(-number)]) for number in range(100)]
        await asyncio.gather(*adds)
        expected = [str(signed) for number in range(100) for signed in (number, -number)]
        assert expected == texts(await session.get_items())

    asyncio.run(scenario())


def test_a_cancelled_write_that_had_begun_is_whole(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def scenario() -> None:
        session = IncarnateSession(shaky, KEY)
        await session.claim()
        go = threading.Event()
        slow = faulty.delay(go, kind="append")
        begun = asyncio.create_task(session.add_items([said("begun")]))
        await asyncio.to_thread(slow.reached.wait)
        waiting = asyncio.create_task(session.add_items([said("waiting")]))
        last = asyncio.create_task(session.add_items([said("last")]))
        await asyncio.sleep(0)
        waiting.cancel()
        begun.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting  # it had not begun, so it never will
        assert not begun.done()  # nobody knows its outcome yet
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await begun
        await last
        assert ["begun", "last"] == texts(await session.get_items())

    asyncio.run(scenario())


def test_a_cancelled_write_that_failed_says_why(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def scenario() -> BaseException | None:
        session = IncarnateSession(shaky, KEY)
        await session.claim()
        go = threading.Event()
        faulty.fail(kind="append")
        slow = faulty.delay(go, kind="append")
        begun = asyncio.create_task(session.add_items([said("begun")]))
        await asyncio.to_thread(slow.reached.wait)
        begun.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await begun
        assert [] == await session.get_items()
        return cancelled.value.__cause__

    assert isinstance(asyncio.run(scenario()), StoreBusyError)


def test_the_event_loop_is_free_while_the_disk_is_slow(shaky: SessionSystem, faulty: FaultyStore) -> None:
    async def let_go_of(task: Awaitable[None]) -> None:
        """By another task of the loop, which would not run if the disk kept the loop."""
        done = asyncio.ensure_future(task)
        while not done.done():
            await asyncio.sleep(0.001)
            for one in disk:
                one.set()
        await done

    async def writes() -> None:
        session = IncarnateSession(shaky, KEY)
        for _ in range(2):
            await session.add_items([said("x" * 10_000)])
            await session.get_items()

    disk: list[threading.Event] = []
    was_let_go: list[bool] = []

    def write() -> None:
        disk.append(threading.Event())
        was_let_go.append(disk[-1].wait(10))

    faulty.delay(write, None, kind="write")
    asyncio.run(let_go_of(writes()))
    assert [True] * len(disk) == was_let_go != []


def test_tasks_of_several_loops_share_a_session(system: SessionSystem) -> None:
    session = IncarnateSession(system, KEY)

    async def adds(name: str) -> None:
        for number in range(20):
            await session.add_items([said(f"{name}{number}")])

    threads = [threading.Thread(target=asyncio.run, args=[adds(name)]) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    items = texts(asyncio.run(session.get_items()))
    for name in "ab":
        assert [f"{name}{number}" for number in range(20)] == [text for text in items if text[0] == name]


# Across processes and views


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def asks(agent: Agent[None], text: str, session: IncarnateSession) -> None:
    async def asked() -> None:
        await Runner.run(agent, text, session=session)

    asyncio.run(asked())


def adder(*turns: Any) -> tuple[Agent[None], FakeModel]:
    model = FakeModel(turns)
    return Agent(name="adder", model=model, tools=[add]), model


def test_a_new_process_goes_on_with_the_conversation(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    first, _ = adder([thinks("add"), calls("add", '{"a": 1, "b": 2}')], [says("3")])
    with SessionSystem.open(url) as system:
        before = IncarnateSession(system, KEY)
        asks(first, "1 + 2?", before)
        kept = asyncio.run(before.get_items())
    second, model = adder([calls("add", '{"a": 3, "b": 3}', "call_2")], [says("6")])
    with SessionSystem.open(url) as system:
        after = IncarnateSession(system, KEY)
        asks(second, "and twice that?", after)
        items = asyncio.run(after.get_items())

    assert 5 == len(kept)
    assert json.dumps(kept) == json.dumps(items[:5])
    assert [*kept, {"role": "user", "content": "and twice that?"}] == model.seen[0]
    assert "6" == words(items[-1])


KILLED = """
import asyncio, os, signal, sys
from agents import Agent, Runner, function_tool
from incarnate import SessionSystem
from incarnate.bridges.openai_agents import IncarnateSession
from tests.support.fake_model import FakeModel, calls, says

@function_tool
def die() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"

model = FakeModel([[says("hello")], [calls("die", "{}")]])
agent = Agent(name="a", model=model, tools=[die])
with SessionSystem.open(sys.argv[1]) as system:
    session = IncarnateSession(system, "pik/task")
    asyncio.run(Runner.run(agent, "hi", session=session))
    asyncio.run(Runner.run(agent, "now die", session=session))
"""


def test_an_agent_killed_in_a_tool_is_followed_by_one_that_knows_what_it_said(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    killed = subprocess.run([sys.executable, "-c", KILLED, url], check=False, capture_output=True)
    heir, model = adder([says("I see")])
    with SessionSystem.open(url) as system:
        session = IncarnateSession(system, KEY)
        asks(heir, "what happened?", session)

        assert (-9, 2) == (killed.returncode, session.incarnation), killed.stderr.decode()
        assert ["hi", "hello"] == [words(item) for item in model.seen[0][:2]]
        assert "what happened?" == words(model.seen[0][-1])


def words(item: Any) -> Any:
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def test_the_views_and_the_command_line_show_the_conversation(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    agent, _ = adder([thinks("add"), calls("add", '{"a": 1, "b": 2}')], [says("it is 3")])
    with SessionSystem.open(url) as system:
        history = system.view(KEY, ModelHistory())
        asks(agent, "1 + 2?", IncarnateSession(system, KEY))
        messages = [(message.role, message.text) for message in history.get()]
    shown = command("show", "--store", url, KEY)

    assert [("user", "1 + 2?"), ("assistant", ""), ("tool", '"3"'), ("assistant", "it is 3")] == messages
    assert 0 == shown.exit_code
    for text in ("1 + 2?", "add", "it is 3"):
        assert text in shown.stdout


def test_a_supervisors_own_events_stand_beside_the_items(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY)
        incarnation = await session.claim()
        handle = system.lease(KEY, incarnation)
        handle.emit(TurnStart(id="t0", parent_id=None, turn=handle.next_turn()))
        heir = IncarnateSession(system, KEY, incarnation=incarnation)
        await heir.add_items([said("a"), said("b")])
        handle = system.lease(KEY, incarnation)
        handle.emit(TurnEnd(id="t1", parent_id=None, turn=0, outcome="completed"))
        last = IncarnateSession(system, KEY, incarnation=incarnation)
        assert ["a", "b"] == texts(await last.get_items())
        assert ["b"] == texts(await last.get_items(limit=1))
        assert said("b") == await last.pop_item()
        assert ["a"] == texts(await last.get_items())

    asyncio.run(scenario())


def test_each_event_follows_the_one_before_it(system: SessionSystem) -> None:
    async def scenario() -> None:
        session = IncarnateSession(system, KEY, new_id=iter("abcdefgh").__next__)
        await session.add_items([said(1), said(2)])
        await session.add_items([said(3)])
        await session.pop_item()
        await session.add_items([said(4)])

    asyncio.run(scenario())
    chain = [(appended.event.id, appended.event.parent_id) for appended in system.replay(KEY)]
    assert [("a", None), ("b", "a"), ("d", "b"), ("e", "d")] == chain


def test_without_the_sdk_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['agents'] = None\n"
        "try: import incarnate.bridges.openai_agents\n"
        "except Exception as error: print(type(error).__name__, error, error.hint)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert told.startswith("MissingExtraError incarnate.bridges.openai_agents needs the extra 'openai-agents'")
    assert 'pip install "incarnate[openai-agents]"' in told
