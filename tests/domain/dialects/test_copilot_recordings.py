"""Both forms of the recorded sessions of Copilot, beside each other."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import (
    AssistantMessage,
    FailedOutcome,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnd,
    Usage,
    UserMessage,
)

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "recordings" / "copilot"
SCENARIOS = sorted(folder.name for folder in RECORDINGS.iterdir())
SHARED = (UserMessage, Reasoning, AssistantMessage, ToolCall, ToolResult)

Read = Callable[..., Any]


def records_of(scenario: str, form: str) -> list[object]:
    folder = RECORDINGS / scenario
    [path] = [folder / "stdout.jsonl"] if form == "stdout" else sorted((folder / "disk").rglob("events.jsonl"))
    records = [read_record(line) for line in path.read_bytes().split(b"\n")]
    return [record.value for record in records if record is not None]


@pytest.fixture
def copilot(session_of: Read) -> Read:
    """The session of a scenario, read from its `stdout` or its `disk`."""
    return lambda scenario, form: session_of(records_of(scenario, form), find_dialect("@github/copilot").normalizer())


def only(events: Iterable[Any], *kinds: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


def unlinked(events: Iterable[Any]) -> list[tuple[Any, ...]]:
    """What the events say, wherever they stand in their log."""
    names = ("text", "call_id", "name", "args", "ok", "result", "error", "outcome", "parent_call_id", "occurred_at")
    return [(type(event), *[getattr(event, name, None) for name in names]) for event in events]


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if not name.startswith(("S4t", "S5"))])
def test_both_forms_give_the_same_events_with_the_same_times(scenario: str, copilot: Read) -> None:
    stream, on_disk = (copilot(scenario, form).events for form in ("stdout", "disk"))
    assert unlinked(only(stream, *SHARED)) == unlinked(only(on_disk, *SHARED))
    ends = [[end.outcome for end in only(events, TurnEnd)] for events in (stream, on_disk)]
    assert ends[0] == ends[1]


def test_what_a_sub_agent_did_is_inside_its_call(copilot: Read) -> None:
    events = copilot("S7", "disk").events
    inside = [type(event).__name__ for event in events if event.parent_call_id == "call_stubS70002"]
    expected = "UserMessage SystemMessage Usage Reasoning AssistantMessage ToolCall ToolResult Usage AssistantMessage"
    assert expected.split() == inside
    assert {"call_stubS70002", UNSET} == {event.parent_call_id for event in events}


def test_a_resume_answers_the_call_that_was_cut_before_its_prompt(copilot: Read) -> None:
    result, *_ = only(copilot("S5", "stdout").events, ToolResult)
    assert (False, "call_stubS40002") == (result.ok, result.call_id)
    assert result.error.startswith("Tool execution was interrupted before a result was recorded.")


def test_an_interruption_of_the_group_ends_the_turn(copilot: Read) -> None:
    assert ["interrupted"] == [end.outcome for end in only(copilot("S4ig", "stdout").events, TurnEnd)]


def test_a_refused_request_says_why(copilot: Read) -> None:
    [end] = only(copilot("S6e", "disk").events, TurnEnd)
    assert isinstance(end.outcome, FailedOutcome)
    assert ("query", "400 stub: invalid request on purpose") == (end.outcome.error.kind, end.outcome.error.message)


def held(records: Iterable[object]) -> tuple[Any, ...]:
    normalizer = find_dialect("@github/copilot").normalizer()
    assert isinstance(normalizer, Finishing)
    for record in records:
        normalizer.feed(record)
    found = normalizer.finish().drafts
    assert () == normalizer.finish().drafts
    return found


def test_what_a_killed_process_was_writing_is_kept() -> None:
    expected = ["Half a thought about", "This answer is cut while it is being strea"]
    assert expected == [draft.text for draft in held(records_of("S4t", "stdout"))]


def test_a_resume_in_the_same_stream_closes_the_cut_message_and_its_turn(copilot: Read, session_of: Read) -> None:
    both = records_of("S4t", "stdout") + records_of("S5t", "stdout")
    events = session_of(both, find_dialect("@github/copilot").normalizer()).events
    kinds = [type(event).__name__ for event in events[:7]]
    expected = ["TurnStart", "UserMessage", "Reasoning", "AssistantMessage", "TurnEnd", "TurnStart", "UserMessage"]
    assert expected == kinds
    assert len(copilot("S5t", "stdout").events) + 5 == len(events)


def test_pieces_of_attempts_that_failed_are_dropped() -> None:
    assert () == held(records_of("S6x", "stdout"))


def test_every_answer_is_counted_once_with_its_model(copilot: Read) -> None:
    usages = only(copilot("S7", "disk").events, Usage)
    assert [("stub-model", 300, 900, 42, 12)] * 4 == [
        (one.model, one.input_tokens, one.cache_read_tokens, one.output_tokens, one.reasoning_tokens) for one in usages
    ]


def test_an_envelope_names_itself_and_the_session_is_named_first_or_last() -> None:
    dialect = find_dialect("@github/copilot")
    first, last = records_of("S2", "disk")[0], records_of("S2", "stdout")[-1]
    assert dialect.session_id(first) == dialect.session_id(last) is not None
    assert dialect.record_id(first) is not None
    assert dialect.record_id(last) is None
