import pickle
from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.claude_agents import AgentCalls
from incarnate.domain.dialects.claude_normalizer import ClaudeNormalizer
from incarnate.domain.dialects.claude_recent import MOST_RECORDS, Recent
from incarnate.domain.events import Compaction, ToolCall


def prompt(number: int, **more: Any) -> dict[str, Any]:
    """A user record of a transcript."""
    message = {"role": "user", "content": f"question {number}"}
    return {"type": "user", "uuid": f"u{number}", "sessionId": "s", "message": message, **more}


def boundary(head: int) -> dict[str, Any]:
    kept = {"preservedSegment": {"headUuid": f"u{head}"}}
    return {"type": "system", "subtype": "compact_boundary", "sessionId": "s", "compactMetadata": kept}


def fed(count: int) -> ClaudeNormalizer:
    normalizer = ClaudeNormalizer()
    for number in range(count):
        normalizer.feed(prompt(number))
    return normalizer


def test_the_newest_half_is_always_remembered() -> None:
    recent: Recent[int] = Recent(10)
    for number in range(1000):
        recent.keep(str(number), number)
        newest = range(max(0, number - 4), number + 1)
        assert list(newest) == [recent.get(str(one)) for one in newest]
        assert len(recent) <= 10


def test_what_is_kept_anew_has_its_new_value() -> None:
    recent: Recent[int] = Recent(10)
    recent.keep("a", 1)
    recent.keep("a", 2)

    assert {"a": 2} == recent


def test_a_session_without_end_is_mapped_in_bounded_memory() -> None:
    once, more = (len(pickle.dumps(fed(MOST_RECORDS * times))) for times in (1, 4))

    assert more < once * 2


def test_a_record_that_comes_again_after_thousands_is_passed_over() -> None:
    count = MOST_RECORDS * 3
    again = fed(count).feed(prompt(count - MOST_RECORDS // 2))

    assert ((), "user/duplicate") == (again.drafts, again.ignored)


def test_a_compaction_keeps_what_lies_thousands_of_records_back() -> None:
    count, kept = MOST_RECORDS * 3, MOST_RECORDS // 2
    normalizer = fed(count)
    normalizer.feed(boundary(count - kept))
    [compaction] = [draft for draft in normalizer.feed(prompt(count)).drafts if isinstance(draft, Compaction)]
    normalizer.feed(boundary(0))
    [forgotten] = [draft for draft in normalizer.feed(prompt(count + 1)).drafts if isinstance(draft, Compaction)]

    events_a_prompt = 3  # the end of the turn before, its own start, and what was asked
    assert kept * events_a_prompt == forgotten.replaces_to - compaction.replaces_to


def test_sub_agents_without_end_are_followed_in_bounded_memory() -> None:
    calls = AgentCalls()

    def follow(number: int) -> None:
        call = ToolCall(id="", parent_id=None, call_id=f"c{number}", name="Agent", args={"prompt": f"task {number}"})
        calls.learn({}, UNSET, [call])
        calls.learn(own(number), f"c{number}", [])

    def own(number: int) -> dict[str, Any]:
        return prompt(number, isSidechain=True, agentId=f"a{number}")

    sizes: list[int] = []
    for number in range(MOST_RECORDS * 2):
        follow(number)
        assert f"c{number}" == calls.call_of(own(number))
        if number in (MOST_RECORDS - 1, MOST_RECORDS * 2 - 1):
            sizes.append(len(pickle.dumps(calls)))
    assert sizes[1] < sizes[0] * 1.5
