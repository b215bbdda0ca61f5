"""Every recording of every harness: the log that it becomes, against what the stub and the supervisor saw."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from incarnate.domain.codec import encode_event
from incarnate.domain.renderings.anthropic import to_anthropic
from incarnate.domain.renderings.openai_chat import to_openai_chat
from incarnate.domain.renderings.openai_responses import to_openai_responses
from tests.recordings.histories import history_of, parting, resumed
from tests.recordings.recorded import Harness, Log, Told, happened, read, told
from tests.recordings.report import DOCS, markdown, marks, names
from tests.recordings.table import HARNESSES
from tests.support.provider_rules import anthropic_violations, chat_violations, responses_violations

CUTS = 200


def cases(of: Callable[[Harness], Iterable[str]]) -> list[Any]:
    return [pytest.param(harness, name, id=f"{harness.folder}/{name}") for harness in HARNESSES for name in of(harness)]


def on_stdout(harness: Harness) -> list[str]:
    return [name for name in names(harness) if "/" not in name]


def violations(log: Log) -> list[str]:
    history = history_of(log.appended)
    return [
        *anthropic_violations(to_anthropic(history)),
        *chat_violations(to_openai_chat(history)),
        *responses_violations(to_openai_responses(history)),
    ]


def payloads(log: Log) -> list[bytes]:
    return [encode_event(event).payload for event in log.events]


def wrong(harness: Harness, name: str, row: Told) -> list[str]:
    """What the table says otherwise than it happened."""
    truth = happened(harness, name)
    said = (row.turns, row.calls, row.unmatched, row.tokens)
    return [f"{is_} is {was}" for is_, was in zip(said, truth, strict=True) if is_ != was]


@pytest.mark.parametrize(("harness", "name"), cases(names))
def test_a_recording_is_the_log_that_the_table_tells(harness: Harness, name: str) -> None:
    log = read(harness.dialect, *harness.recording(name))

    assert harness.told[name][:5] == told(log, harness.call)[:5]
    assert ([], None) == (log.report.refused_lines, log.report.torn)
    assert log.report.lines - log.report.mapped <= sum(log.report.ignored.values())
    assert [] == violations(log)


@pytest.mark.parametrize(("harness", "name"), cases(lambda harness: harness.told))
def test_the_table_tells_what_happened_or_why_not(harness: Harness, name: str) -> None:
    row = harness.told[name]

    assert bool(row.but) == bool(wrong(harness, name, row)), wrong(harness, name, row)


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.folder)
def test_one_answer_of_the_model_is_counted_as_it_was_spent(harness: Harness) -> None:
    call = harness.call

    assert 1200 == call.input_tokens + call.cache_read_tokens + call.cache_write_tokens
    assert 42 == call.output_tokens


@pytest.mark.parametrize(("harness", "name"), cases(resumed))
def test_the_history_parts_from_the_harness_own_where_the_table_says(harness: Harness, name: str) -> None:
    assert harness.history[name] == parting(harness, name)


@pytest.mark.parametrize(("harness", "name"), cases(on_stdout))
def test_a_stream_that_is_cut_anywhere_and_resumed_keeps_what_came_before(harness: Harness, name: str) -> None:
    data, after = harness.stdout(name), continuation(harness, name)
    prompts = harness.prompts(name, after)
    whole = read(harness.dialect, data, harness.prompts(name))
    ends = lines_to_events(harness, data, harness.prompts(name))
    before = payloads(whole)
    for cut in random.Random(f"{harness.folder}/{name}").choices(range(len(data) + 1), k=CUTS):
        glue = b"\n" if cut % 2 else b""
        log = read(harness.dialect, data[:cut] + glue + harness.stdout(after), prompts)
        kept = ends[data.count(b"\n", 0, cut)]

        assert before[:kept] == payloads(log)[:kept], cut
        assert [] == violations(log), cut


def continuation(harness: Harness, scenario: str) -> str:
    """The run that resumes this one; for one that nobody resumed, any that resumes, or else a run of its own."""
    after = [name for name, runs in harness.runs.items() if runs[-1] == scenario]
    return next(iter([*after, *harness.runs, "S1"]))


def lines_to_events(harness: Harness, data: bytes, prompts: list[str]) -> list[int]:
    """By the number of whole lines: how many events they are."""
    ends, at = [0], 0
    for line in data.split(b"\n")[:-1]:
        at += len(line) + 1
        ends.append(len(read(harness.dialect, data[:at], prompts, ended=False).appended))
    return ends


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.folder)
def test_the_documented_table_is_this_one(harness: Harness) -> None:
    begin, end = marks(harness)
    section = DOCS.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]

    assert f"\n{markdown(harness)}\n" == section, f"run: python -m tests.recordings.report {harness.folder} --docs"
