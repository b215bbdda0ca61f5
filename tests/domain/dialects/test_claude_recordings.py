"""Both forms of every recorded session of Claude Code, against what was really sent to the model."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.codec import encode_event
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Reasoning,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "recordings" / "claude"
SCENARIOS = sorted(folder.name for folder in RECORDINGS.iterdir())
ON_DISK = [name for name in SCENARIOS if (RECORDINGS / name / "disk").exists()]
KILLED = {"S4", "S4t", "S4tp", "S7k"}
CALL = (200, 900, 100, 42)

Load = Callable[[str, str], list[object]]
Read = Callable[..., Any]


def times(calls: int, tokens: tuple[int, int, int, int] = CALL) -> tuple[int, ...]:
    return tuple(calls * kind for kind in tokens)


def spent(events: Iterable[SessionEvent]) -> tuple[int, ...]:
    """The sum of all usage: input, cache read, cache write, output."""
    usages = [event for event in events if isinstance(event, Usage)]
    read = sum(usage.cache_read_tokens or 0 for usage in usages)
    written = sum(usage.cache_write_tokens or 0 for usage in usages)
    return sum(u.input_tokens for u in usages), read, written, sum(u.output_tokens for u in usages)


def outcomes(events: Iterable[SessionEvent]) -> list[object]:
    ends = [event.outcome for event in events if isinstance(event, TurnEnd)]
    return [end.error.kind if isinstance(end, FailedOutcome) else end for end in ends]


def starts(events: Iterable[SessionEvent]) -> int:
    return sum(isinstance(event, TurnStart) for event in events)


def calls_and_results(events: Iterable[SessionEvent]) -> tuple[dict[str, Any], dict[str, Any]]:
    events = list(events)
    calls = {event.call_id: (event.name, event.args) for event in events if isinstance(event, ToolCall)}
    results = {event.call_id: event.result for event in events if isinstance(event, ToolResult)}
    return calls, results


def forms_of(scenario: str) -> list[str]:
    found = [path.parts for path in (RECORDINGS / scenario / "disk").rglob("*.jsonl")]
    subagent = ["subagent"] if any("subagents" in parts for parts in found) else []
    return ["stdout", *(["disk"] if found else []), *subagent]


def main_thread(events: Iterable[SessionEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind) and event.parent_call_id is UNSET]


def sent_blocks(scenario: str) -> list[dict[str, Any]]:
    """The blocks of the last request of the main conversation with their roles, as the model saw them."""
    lines = (RECORDINGS / scenario / "requests.jsonl").read_bytes().split(b"\n")
    requests = [json.loads(line) for line in lines if line]
    messages = [request["body"]["messages"] for request in requests if request["kind"] == "main"]
    return [
        {**block, "role": message["role"]}
        for message in (messages[-1] if messages else [])
        if isinstance(message["content"], list)
        for block in message["content"]
    ]


@pytest.mark.parametrize(("scenario", "form"), [(name, form) for name in SCENARIOS for form in forms_of(name)])
def test_no_record_is_refused_and_every_event_can_be_stored(
    scenario: str, form: str, claude: Load, session_of: Read
) -> None:
    session = session_of(claude(scenario, form))
    assert session.events
    assert session.events == [encode_event(event).event for event in session.events]
    assert session == session_of(claude(scenario, form))


@pytest.mark.parametrize("scenario", ON_DISK)
def test_what_the_model_was_sent_is_in_the_log(scenario: str, claude: Load, session_of: Read) -> None:
    events = session_of(claude(scenario, "disk")).events
    calls, results = calls_and_results(events)
    sent = sent_blocks(scenario)
    assert [block["text"] for block in sent if block["role"] == "assistant" and block["type"] == "text"] == [
        event.text for event in main_thread(events, AssistantMessage)
    ][: sum(block["role"] == "assistant" and block["type"] == "text" for block in sent)]
    for block in sent:
        if block["type"] == "tool_use":
            assert (block["name"], block["input"]) == calls[block["id"]]
        elif block["type"] == "tool_result" and "<omitted" not in str(block["content"]):
            assert block["content"] == results[block["tool_use_id"]]


@pytest.mark.parametrize("scenario", ON_DISK)
def test_every_result_answers_a_call(scenario: str, claude: Load, session_of: Read) -> None:
    for form in forms_of(scenario):
        calls, results = calls_and_results(session_of(claude(scenario, form)).events)
        dangling = calls.keys() - results.keys()
        assert set() == results.keys() - calls.keys()
        assert (not dangling) or scenario in {*KILLED, "S5k"}


@pytest.mark.parametrize("scenario", ON_DISK)
def test_the_stream_and_the_transcript_tell_the_same(scenario: str, claude: Load, session_of: Read) -> None:
    stream = session_of(claude(scenario, "stdout")).events
    on_disk = session_of(claude(scenario, "disk")).events
    told = [(event.occurred_at, event.text) for event in main_thread(stream, AssistantMessage)]
    assert set(told) <= {(event.occurred_at, event.text) for event in main_thread(on_disk, AssistantMessage)}
    called = {event.call_id for event in main_thread(stream, ToolCall)}
    assert called <= {event.call_id for event in main_thread(on_disk, ToolCall)}


@pytest.mark.parametrize(
    ("scenario", "stdout", "disk"),
    [
        ("S1", times(1), times(1)),
        ("S1p", times(1), times(1)),
        ("S2", times(2), times(2)),
        ("S2p", times(2), times(2)),
        ("S2w", times(2), times(2)),
        ("S4i", times(1), times(1)),
        ("S5", times(2), times(3)),
        ("S5i", times(2), times(3)),
        ("S5k", times(2), times(3)),
        ("S5t", times(2), times(2)),
        ("S6e", times(0), times(0)),
        ("S6o", times(0), times(0)),
        ("S8a", times(2), times(2)),
        ("S8x2", times(1), times(3)),
        ("S8x3-compact", times(1), times(3)),
        ("S9", times(2), times(2)),
        ("S11", times(1), times(1)),
        ("S12a", times(2), times(2)),
    ],
)
def test_tokens_are_counted_once(
    scenario: str, stdout: tuple[int, ...], disk: tuple[int, ...], claude: Load, session_of: Read
) -> None:
    sums = [spent(session_of(claude(scenario, form)).events) for form in ("stdout", "disk")]
    assert [stdout, disk] == sums


def test_the_result_of_a_process_counts_what_was_cut(claude: Load, session_of: Read) -> None:
    assert times(4, (200, 900, 100, 16)) == spent(session_of(claude("S6x", "stdout")).events)


def test_the_tokens_of_a_sub_agent_count_too(claude: Load, session_of: Read) -> None:
    both = claude("S7", "disk") + claude("S7", "subagent")
    assert times(5) == spent(session_of(claude("S7", "stdout")).events)
    assert times(5) == spent(session_of(both).events)


def test_a_killed_process_leaves_the_placeholder_for_its_output(claude: Load, session_of: Read) -> None:
    assert (200, 900, 100, 1) == spent(session_of(claude("S4", "stdout")).events)


@pytest.mark.parametrize(("killed", "resumed"), [("S4", "S5"), ("S4t", "S5t"), ("S7k", "S5k")])
def test_a_killed_process_and_its_successor_in_one_stream_are_told_apart(
    killed: str, resumed: str, claude: Load, session_of: Read
) -> None:
    before = spent(session_of(claude(killed, "stdout")).events)
    both = session_of(claude(killed, "stdout") + claude(resumed, "stdout")).events
    assert tuple(map(sum, zip(before, times(2), strict=True))) == spent(both)
    assert (2, ["interrupted", "completed"]) == (starts(both), outcomes(both))


@pytest.mark.parametrize(
    ("scenario", "stdout", "disk"),
    [
        ("S1", ["completed"], ["completed"]),
        ("S2", ["completed"], ["completed"]),
        ("S4", [], []),
        ("S4i", ["interrupted"], ["interrupted"]),
        ("S4t", [], []),
        ("S5", ["completed"], ["interrupted", "completed"]),
        ("S5i", ["completed"], ["interrupted", "completed"]),
        ("S5k", ["completed"], ["interrupted", "completed"]),
        ("S5t", ["completed"], ["interrupted", "completed"]),
        ("S6e", ["invalid_request_error"], ["invalid_request_error"]),
        ("S6o", ["overloaded_error"], ["overloaded_error"]),
        ("S6x", ["connection_failed"], ["connection_failed"]),
        ("S7", ["completed", "completed"], ["completed", "completed"]),
        ("S7k", [], []),
        ("S8x2", ["completed"], ["completed", "completed"]),
        ("S8x3-compact", ["completed"], ["completed", "completed"]),
        ("S9", ["completed"], ["completed"]),
        ("S11", ["step_limit"], ["step_limit"]),
    ],
)
def test_turns_end_as_they_did(
    scenario: str, stdout: list[str], disk: list[str], claude: Load, session_of: Read
) -> None:
    sessions = [session_of(claude(scenario, form)).events for form in ("stdout", "disk")]
    assert [stdout, disk] == [outcomes(events) for events in sessions]
    left_open = int(scenario in KILLED)
    assert [len(stdout) + left_open, len(disk) + left_open] == [starts(events) for events in sessions]


@pytest.mark.parametrize("form", ["stdout", "disk"])
def test_the_signature_of_a_thought_is_kept(form: str, claude: Load, session_of: Read) -> None:
    thoughts = [event for event in session_of(claude("S2", form)).events if isinstance(event, Reasoning)]
    assert ["I should list the files first.", "The tool worked."] == [thought.text for thought in thoughts]
    assert {"c3R1Yi1zaWduYXR1cmU="} == {thought.provider_continuation for thought in thoughts}


def inside(events: Iterable[SessionEvent], call: str) -> list[str]:
    return [type(event).__name__ for event in events if event.parent_call_id == call]


SUB_AGENT = [
    "UserMessage",
    "Reasoning",
    "Usage",
    "AssistantMessage",
    "ToolCall",
    "ToolResult",
    "AssistantMessage",
    "Usage",
]


def test_what_a_sub_agent_did_is_inside_its_call(claude: Load, session_of: Read) -> None:
    stream = session_of(claude("S7", "stdout")).events
    both = session_of(claude("S7", "disk") + claude("S7", "subagent")).events
    assert SUB_AGENT[1:] == inside(stream, "toolu_stubS70002")
    assert SUB_AGENT == inside(both, "toolu_stubS70002")


def test_a_sub_agent_that_was_killed_is_found_by_its_prompt(claude: Load, session_of: Read) -> None:
    both = session_of(claude("S7k", "disk") + claude("S7k", "subagent")).events
    assert SUB_AGENT[:5] == inside(both, "toolu_stubS7k0002")


def test_a_sub_agents_file_alone_names_the_agent(claude: Load, session_of: Read) -> None:
    events = session_of(claude("S7", "subagent")).events
    assert {"agent:a1b6ee8edabd8df20"} == {event.parent_call_id for event in events}


def test_a_denied_call_is_a_failed_result_with_its_reason(claude: Load, session_of: Read) -> None:
    [result] = [event for event in session_of(claude("S9", "stdout")).events if isinstance(event, ToolResult)]
    assert not result.ok
    assert result.error == result.result
    assert result.result.startswith("Claude requested permissions to write")


def test_a_compaction_has_its_summary_and_keeps_what_was_preserved(claude: Load, session_of: Read) -> None:
    events = session_of(claude("S8x3-compact", "disk")).events
    [(place, compaction)] = [(n, event) for n, event in enumerate(events) if isinstance(event, Compaction)]
    kept = [event.text for event in events[compaction.replaces_to : place] if isinstance(event, AssistantMessage)]
    assert ["Plain answer ✓ — héllo 😀.\nSecond line\u2028after U+2028."] == kept
    assert (0, "manual") == (compaction.replaces_from, compaction.reason)
    assert str(compaction.summary).startswith("This session is being continued")
    assert not [event for event in events if isinstance(event, UserMessage) and event.text == compaction.summary]


def test_a_compaction_after_a_resume_replaces_all_before_it(claude: Load, session_of: Read) -> None:
    events = session_of(claude("S8x3-compact", "stdout")).events
    [(place, compaction)] = [(n, event) for n, event in enumerate(events) if isinstance(event, Compaction)]
    assert (0, place) == (compaction.replaces_from, compaction.replaces_to)
    assert str(compaction.summary).startswith("This session is being continued")


def test_the_words_of_the_harness_after_a_failed_request_are_no_answer(claude: Load, session_of: Read) -> None:
    for form in ("stdout", "disk"):
        session = session_of(claude("S6e", form))
        assert not [event for event in session.events if isinstance(event, AssistantMessage)]
        assert 1 == session.ignored["assistant/api_error"]


def test_partial_messages_add_nothing(claude: Load, session_of: Read) -> None:
    whole, partial = (session_of(claude(name, "stdout")) for name in ("S2", "S2p"))
    assert [type(event) for event in whole.events] == [type(event) for event in partial.events]
    assert partial.ignored["stream_event/content_block_delta"] > 0


def test_nothing_is_lost_in_silence(claude: Load) -> None:
    for form in ("stdout", "disk"):
        records = claude("S7", form)
        normalizer = find_dialect("claude-code").normalizer()
        for record in records:
            found = normalizer.feed(record)
            assert found.drafts or found.ignored


def test_the_time_of_the_harness_is_kept(claude: Load, session_of: Read) -> None:
    events = session_of(claude("S2", "disk")).events
    assert "2026-11-30T19:08:42.880Z" in [event.occurred_at for event in events if isinstance(event, Reasoning)]
