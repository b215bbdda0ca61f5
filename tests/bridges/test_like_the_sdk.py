"""What the SDK documents of its sessions, done with its SQLiteSession and with ours: each gives the same."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents import Agent, Runner, SQLiteSession, function_tool
from agents.memory import Session, SessionSettings

from incarnate import SessionSystem
from incarnate.bridges.openai_agents import IncarnateSession
from tests.support.fake_model import FakeModel, calls, says, thinks

Make = Callable[..., Any]
Scenario = Callable[[Make], Awaitable[Any]]


def said(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number}"}


async def filled(make: Make, count: int = 5, **options: Any) -> Any:
    session = make(**options)
    await session.add_items([said(number) for number in range(count)])
    return session


async def a_new_session_is_empty(make: Make) -> Any:
    return await make().get_items()


async def items_come_back_in_order(make: Make) -> Any:
    session = await filled(make)
    await session.add_items([said(5), said(6)])
    return await session.get_items()


async def adding_nothing_changes_nothing(make: Make) -> Any:
    session = await filled(make)
    return [await session.add_items([]), await session.get_items()]


async def a_limit_gives_the_latest_in_order(make: Make) -> Any:
    session = await filled(make)
    return [await session.get_items(limit=limit) for limit in (1, 3, 5, 100)]


async def a_limit_of_zero_gives_nothing(make: Make) -> Any:
    return await (await filled(make)).get_items(limit=0)


async def a_negative_limit_is_none(make: Make) -> Any:
    return await (await filled(make)).get_items(limit=-2)


async def the_settings_give_the_limit(make: Make) -> Any:
    session = await filled(make, session_settings=SessionSettings(limit=2))
    return [await session.get_items(), await session.get_items(limit=4), await session.get_items(limit=0)]


async def the_settings_may_be_a_dict(make: Make) -> Any:
    return await (await filled(make, session_settings={"limit": 2})).get_items()


async def there_are_settings_when_none_are_given(make: Make) -> Any:
    return make().session_settings


async def a_pop_takes_the_last_item(make: Make) -> Any:
    session = await filled(make)
    return [await session.pop_item(), await session.pop_item(), await session.get_items()]


async def a_pop_of_nothing_is_none(make: Make) -> Any:
    session = make()
    return [await session.pop_item(), await session.get_items()]


async def pops_end_at_the_beginning(make: Make) -> Any:
    session = await filled(make, 3)
    return [[await session.pop_item() for _ in range(5)], await session.get_items()]


async def a_pop_is_corrected_by_an_add(make: Make) -> Any:
    session = await filled(make, 3)
    for number in range(10, 14):
        await session.pop_item()
        await session.add_items([said(number)])
    return [await session.get_items(), await session.get_items(limit=2), await session.pop_item()]


async def a_limit_counts_items_alone(make: Make) -> Any:
    session = make()
    for number in range(40):
        await session.add_items([said(number)])
        await session.add_items([said(-number)])
        await session.pop_item()
    return [await session.get_items(limit=limit) for limit in (1, 2, 25, 40, 50)]


async def a_clear_takes_all(make: Make) -> Any:
    session = await filled(make)
    return [await session.clear_session(), await session.get_items(), await session.pop_item()]


async def a_clear_of_nothing_is_no_error(make: Make) -> Any:
    session = make()
    return [await session.clear_session(), await session.clear_session(), await session.get_items()]


async def a_cleared_session_goes_on(make: Make) -> Any:
    session = await filled(make)
    await session.clear_session()
    await session.add_items([said(7)])
    return [await session.get_items(), await session.get_items(limit=3)]


async def another_object_finds_what_was_written(make: Make) -> Any:
    await filled(make)
    return await make().get_items()


async def conversations_are_apart(make: Make) -> Any:
    first, second = await filled(make, 3), make("pik/other")
    await second.add_items([said(9)])
    await first.clear_session()
    return [await first.get_items(), await second.get_items()]


async def equal_items_are_kept_apart(make: Make) -> Any:
    session = make()
    await session.add_items([said(1), said(1)])
    await session.add_items([said(1)])
    return [await session.get_items(), await session.pop_item(), await session.get_items()]


async def ids_are_the_models_own_and_may_repeat(make: Make) -> Any:
    session = make()
    item = says("hello").model_dump()
    await session.add_items([{**item, "id": "__fake_id__"}, {**item, "id": "__fake_id__"}])
    return await session.get_items()


async def any_text_and_none_comes_back(make: Make) -> Any:
    session = make()
    texts = ["", " ", "née 東京 🎭", "a\u2028b\u2029c\x85d", "nul \x00 in it", 'quote " and \\', "line\nline\r\n"]
    await session.add_items([{"role": "user", "content": text, "note": None} for text in texts])
    return await session.get_items()


async def large_items_come_back(make: Make) -> Any:
    session = make()
    await session.add_items([{"role": "user", "content": "x" * 1_000_000}, {"role": "user", "content": ["deep"] * 9}])
    return await session.get_items()


async def what_the_caller_changes_later_changes_nothing(make: Make) -> Any:
    session = make()
    item = {"role": "user", "content": [{"type": "input_text", "text": "before"}]}
    items = [item]
    await session.add_items(items)
    item["content"] = "after"
    items.clear()
    (await session.get_items()).clear()
    return await session.get_items()


async def it_is_a_session(make: Make) -> Any:
    session = make()
    return [isinstance(session, Session), session.session_id]


async def one_write_is_all_or_nothing(make: Make) -> Any:
    session = await filled(make, 2)
    with pytest.raises((TypeError, ValueError)):
        await session.add_items([said(7), {"role": "user", "content": object()}])
    return await session.get_items()


async def a_closed_session_takes_nothing(make: Make) -> Any:
    session = await filled(make, 2)
    session.close()
    refused = []
    for call in (session.get_items(), session.add_items([said(7)]), session.add_items([]), session.pop_item()):
        with pytest.raises(Exception, match="is closed"):
            refused.append(await call)
    return refused


async def tasks_at_once_lose_nothing(make: Make) -> Any:
    session = make()
    await asyncio.gather(*(session.add_items([said(number), said(number)]) for number in range(20)))
    return sorted(item["content"] for item in await session.get_items())


# The loop of the SDK


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def agent(*turns: Any) -> Agent[None]:
    return Agent(name="adder", model=FakeModel(turns), tools=[add])


async def a_run_with_a_tool_is_remembered(make: Make) -> Any:
    session = make()
    adder = agent([thinks("use the tool"), calls("add", '{"a": 1, "b": 2}')], [says("3")], [says("as I said, 3")])
    answers = [(await Runner.run(adder, text, session=session)).final_output for text in ("1 + 2?", "sure?")]
    assert isinstance(adder.model, FakeModel)
    return [answers, adder.model.seen, await session.get_items()]


async def a_streamed_run_is_remembered(make: Make) -> Any:
    session = make()
    adder = agent([calls("add", '{"a":1,"b":2}'), calls("add", '{"a":3,"b":4}', "call_2")], [says("3 and 7")])
    result = Runner.run_streamed(adder, "both?", session=session)
    async for _ in result.stream_events():
        pass
    return [result.final_output, await session.get_items()]


async def a_run_that_fails_leaves_the_same(make: Make) -> Any:
    session = make()
    failing = agent([calls("add", '{"a":1,"b":2}')], RuntimeError("the provider is down"))
    with pytest.raises(RuntimeError, match="the provider is down"):
        await Runner.run(failing, "1 + 2?", session=session)
    after = agent([says("going on")])
    await Runner.run(after, "again", session=session)
    assert isinstance(after.model, FakeModel)
    return [after.model.seen, await session.get_items()]


async def a_corrected_question_replaces_the_old_one(make: Make) -> Any:
    session = make()
    both = agent([says("4")], [says("6")])
    await Runner.run(both, "2 + 2?", session=session)
    await session.pop_item()
    await session.pop_item()
    await Runner.run(both, "2 + 4?", session=session)
    assert isinstance(both.model, FakeModel)
    return [both.model.seen, await session.get_items()]


SCENARIOS: list[Scenario] = [
    a_new_session_is_empty,
    items_come_back_in_order,
    adding_nothing_changes_nothing,
    a_limit_gives_the_latest_in_order,
    a_limit_of_zero_gives_nothing,
    a_negative_limit_is_none,
    the_settings_give_the_limit,
    the_settings_may_be_a_dict,
    there_are_settings_when_none_are_given,
    a_pop_takes_the_last_item,
    a_pop_of_nothing_is_none,
    pops_end_at_the_beginning,
    a_pop_is_corrected_by_an_add,
    a_limit_counts_items_alone,
    a_clear_takes_all,
    a_clear_of_nothing_is_no_error,
    a_cleared_session_goes_on,
    another_object_finds_what_was_written,
    conversations_are_apart,
    equal_items_are_kept_apart,
    ids_are_the_models_own_and_may_repeat,
    any_text_and_none_comes_back,
    large_items_come_back,
    what_the_caller_changes_later_changes_nothing,
    it_is_a_session,
    one_write_is_all_or_nothing,
    a_closed_session_takes_nothing,
    tasks_at_once_lose_nothing,
    a_run_with_a_tool_is_remembered,
    a_streamed_run_is_remembered,
    a_run_that_fails_leaves_the_same,
    a_corrected_question_replaces_the_old_one,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_ours_does_as_the_sdks_own(scenario: Scenario, system: SessionSystem, tmp_path: Any) -> None:
    theirs: list[SQLiteSession] = []

    def make_theirs(session_id: str = "pik/task", **options: Any) -> SQLiteSession:
        theirs.append(SQLiteSession(session_id, tmp_path / "theirs.db", **options))
        return theirs[-1]

    def make_ours(session_id: str = "pik/task", **options: Any) -> IncarnateSession:
        return IncarnateSession(system, session_id, **options)

    try:
        expected = asyncio.run(_done(scenario, make_theirs))
    finally:
        for session in theirs:
            session.close()

    assert expected == asyncio.run(_done(scenario, make_ours))


async def _done(scenario: Scenario, make: Make) -> str:
    """What came of it, as JSON text: equal texts are equal items, the order of their fields included."""
    return json.dumps(await scenario(make), default=repr)
