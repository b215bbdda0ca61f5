"""Both forms of the recorded sessions of Codex, beside each other and beside what was really sent."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import (
    AssistantMessage,
    FailedOutcome,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    UserMessage,
)

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "recordings" / "codex"
SCENARIOS = sorted(folder.name for folder in RECORDINGS.iterdir())

Read = Callable[..., Any]


def lines(*paths: Path) -> list[object]:
    records = [read_record(line) for path in paths for line in path.read_bytes().split(b"\n")]
    return [record.value for record in records if record is not None]


@pytest.fixture
def codex(session_of: Read) -> Read:
    """The session of a scenario, read from its `stdout` or its `disk`."""

    def load(scenario: str, form: str) -> Any:
        folder = RECORDINGS / scenario
        paths = [folder / "stdout.jsonl"] if form == "stdout" else sorted((folder / "disk").rglob("*.jsonl"))
        return session_of(lines(*paths), find_dialect("codex").normalizer())

    return load


def only(events: Iterable[Any], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if not name.startswith("S5")])
def test_both_forms_tell_the_same_conversation(scenario: str, codex: Read) -> None:
    stream, on_disk = (codex(scenario, form).events for form in ("stdout", "disk"))
    for kind in (Reasoning, AssistantMessage):
        assert [event.text for event in only(on_disk, kind)] == [event.text for event in only(stream, kind)]
    assert len(only(on_disk, ToolCall)) == len(only(stream, ToolCall))


@pytest.mark.parametrize("scenario", ["S2", "S2w", "S6e", "S8a"])
def test_both_forms_tell_how_calls_and_turns_ended(scenario: str, codex: Read) -> None:
    stream, on_disk = (codex(scenario, form).events for form in ("stdout", "disk"))
    assert [event.ok for event in only(stream, ToolResult)] == [event.ok for event in only(on_disk, ToolResult)]
    assert [event.outcome for event in only(stream, TurnEnd)] == [event.outcome for event in only(on_disk, TurnEnd)]


def test_the_providers_error_is_the_outcome_of_a_refused_request(codex: Read) -> None:
    [end] = only(codex("S6e", "stdout").events, TurnEnd)
    assert FailedOutcome(TurnError("invalid_request_error", "stub: invalid request on purpose")) == end.outcome


def test_the_disk_names_the_kind_of_a_failure_that_the_stream_tells_in_words(codex: Read) -> None:
    kinds = [only(codex("S6o", form).events, TurnEnd)[0].outcome.error.kind for form in ("stdout", "disk")]
    assert ["error", "http_connection_failed"] == kinds


def test_only_what_the_user_wrote_is_a_prompt(codex: Read) -> None:
    events = codex("S4i", "disk").events
    assert ["STUBPROMPT S4i: please do the scripted task."] == [event.text for event in only(events, UserMessage)]
    beginnings = [event.text.partition(">")[0] for event in only(events, SystemMessage)[1:]]
    assert ["<environment_context", "<turn_aborted"] == beginnings


def test_encrypted_reasoning_is_kept(codex: Read) -> None:
    thoughts = only(codex("S2", "disk").events, Reasoning)
    assert ["c3R1Yi1lbmNyeXB0ZWQ="] * 2 == [thought.provider_continuation for thought in thoughts]


def test_a_call_has_the_arguments_and_the_answer_that_the_model_saw(codex: Read) -> None:
    events = codex("S2", "disk").events
    [call], [result] = only(events, ToolCall), only(events, ToolResult)
    assert ("exec_command", "echo hello-from-tool; ls") == (call.name, call.args["cmd"])
    assert result.result.endswith("Output:\nhello-from-tool\nREADME.md\n")
    assert (True, UNSET) == (result.ok, result.error)


def test_an_interrupted_tool_failed(codex: Read) -> None:
    [result] = only(codex("S4i", "disk").events, ToolResult)
    assert (False, "Wall time: 1.3 seconds\naborted by user") == (result.ok, result.error)


def test_an_attempt_whose_stream_was_cut_stays_as_the_model_saw_it(codex: Read) -> None:
    assert ["Starting a tool."] * 2 == [event.text for event in only(codex("S6x", "disk").events, AssistantMessage)]


def test_twins_of_items_are_counted_and_add_nothing(codex: Read) -> None:
    ignored = codex("S2", "disk").ignored
    assert 6 == ignored["event_msg/item_completed"]
    assert 2 == ignored["event_msg/token_count"]
