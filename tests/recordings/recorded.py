"""The recordings: where they are, what an ingest makes of one, and what must be true of it."""

import io
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from incarnate.actors.ingest import ingest
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import AppendedEvent, FailedOutcome, SessionEvent, ToolCall, ToolResult, TurnEnd, TurnStart
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.usage import TokenCounts, UsageTotals

FIXTURES = Path(__file__).parents[2] / "fixtures" / "recordings"
KEY = ActivationKey("recorded", "run")

CALLS = {
    "S2": 1,
    "S2w": 1,
    "S3": 2,
    "S4": 1,
    "S4p": 2,
    "S5": 1,
    "S7": 2,
    "S8a": 1,
    "S8b": 2,
    "S8x1": 1,
    "S9": 1,
    "S11": 1,
    "S12a": 1,
}
"""How many tools the stub's script calls in a scenario; none in the others. Letters tell variants of a scenario."""

CUT = ("S4t", "S6", "S1u")
"""Scenarios none of whose requests was answered to its end."""


class Told(NamedTuple):
    """What the log of a recording holds.

    `turns` are the outcomes in order: completed, interrupted, step_limit, failed, or open for a turn without an end.
    `unmatched` are calls without a result and results without a call. `tokens` are whole answers of the model, each
    of the harness's `call`, or else the counts. `but` says why this is not what happened.
    """

    events: int
    turns: str
    calls: int
    unmatched: int
    tokens: int | TokenCounts
    but: str = ""


class Harness(NamedTuple):
    """A row: one harness with its recordings.

    Attributes:
        dialect: its name in the registry.
        folder: its folder of fixtures.
        call: what one call of the stub (1,200 tokens in, 42 out) counts in it.
        wire: how it asks the model: `anthropic`, `openai_chat`, `openai_responses` or `gemini`.
        disk: patterns of the session files below a scenario's `disk`, in the order in which they are read.
        told: by scenario (`S4`) and, for what is left on disk, `S4/disk`: what the log holds.
        runs: by scenario that resumes: the runs before it, oldest first.
        history: by scenario that resumes, and `S5/disk`: where the log's history and the harness's own part, a line
            each: `-` is in ours alone, `+` in the harness's alone.
        kinds: the kinds of requests that the harness counts.
        own_turns: by scenario: how many turns the harness began by itself behind the one that it was asked for.
        has_prompts: the prompts are in its stream, and a supervisor gives none.
    """

    dialect: str
    folder: str
    call: TokenCounts
    wire: str
    disk: tuple[str, ...]
    told: Mapping[str, Told]
    runs: Mapping[str, tuple[str, ...]]
    history: Mapping[str, tuple[str, ...]]
    kinds: frozenset[str] = frozenset({"main", "sub", "compact"})
    own_turns: Mapping[str, int] = MappingProxyType({})
    has_prompts: bool = False

    def path(self, scenario: str) -> Path:
        return FIXTURES / self.folder / scenario

    def stdout(self, scenario: str) -> bytes:
        return (self.path(scenario) / "stdout.jsonl").read_bytes()

    def left(self, scenario: str) -> bytes:
        """The session files that it left on disk, one after the other; nothing where it left none."""
        found = chain.from_iterable(sorted((self.path(scenario) / "disk").glob(pattern)) for pattern in self.disk)
        return b"".join([path.read_bytes().rstrip(b"\n") + b"\n" for path in found])

    def recording(self, name: str) -> tuple[bytes, list[str]]:
        """The bytes of a row of the table, and the prompts that a supervisor would give beside them."""
        scenario, _, form = name.partition("/")
        return (self.left(scenario), []) if form else (self.stdout(scenario), self.prompts(scenario))

    def prompts(self, *scenarios: str) -> list[str]:
        """What a supervisor gives for these runs in one file: an empty prompt for a turn that nobody asked for."""
        if self.has_prompts:
            return []
        return [text for one in scenarios for text in (prompt(self, one), *[""] * self.own_turns.get(one, 0))]


class Log(NamedTuple):
    """A log, and what the ingest told."""

    report: IngestReport
    appended: tuple[AppendedEvent, ...]

    @property
    def events(self) -> list[Any]:
        return [one.event for one in self.appended]


def run_of(harness: Harness, scenario: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((harness.path(scenario) / "run.json").read_bytes())
    return loaded


def requests_of(harness: Harness, scenario: str) -> list[dict[str, Any]]:
    """What was sent to the model, of the kinds that count."""
    lines = (harness.path(scenario) / "requests.jsonl").read_bytes().split(b"\n")
    requests = [json.loads(line) for line in lines if line]
    return [request for request in requests if request["kind"] in harness.kinds]


def prompt(harness: Harness, scenario: str) -> str:
    """What the harness was asked on its command line."""
    found = [word for word in run_of(harness, scenario)["argv"] if word.startswith(("STUBPROMPT", "/"))]
    return str(next(word for word in reversed(found) if not word.startswith("/opt")))


def read(dialect: str, data: bytes, prompts: Sequence[str] = (), *, ended: bool = True) -> Log:
    """A log of its own with these bytes in it; who wrote a recording is dead, so what it began is taken too."""
    with SessionSystem.open("memory://") as system:
        report = ingest(system, KEY, find_dialect(dialect), io.BytesIO(data), prompts=prompts, ended=ended)
        return Log(report, tuple(system.replay(KEY)))


def told(log: Log, call: TokenCounts) -> Told:
    """What the log holds, as the table tells it."""
    usage = UsageTotals()
    for one in log.appended:
        usage.apply(one)
    total = usage.value.total
    silent = msgspec.structs.replace(call, reasoning_tokens=0)  # some forms leave out what the others tell
    whole = [count for count in range(20) if total in (times(count, call), times(count, silent))]
    calls = [event for event in log.events if isinstance(event, ToolCall)]
    return Told(len(log.events), turns(log.events), len(calls), unmatched(log.events), whole[0] if whole else total)


def times(count: int, call: TokenCounts) -> TokenCounts:
    return sum([call] * count, TokenCounts())


def unmatched(events: Sequence[SessionEvent]) -> int:
    waiting: dict[str, int] = {}
    for event in events:
        if isinstance(event, ToolCall | ToolResult):
            waiting[event.call_id] = waiting.get(event.call_id, 0) + (1 if isinstance(event, ToolCall) else -1)
    return sum(abs(count) for count in waiting.values())


def turns(events: Sequence[SessionEvent]) -> str:
    """The outcomes of the turns in the order of their starts."""
    outcomes = {event.turn: _word(event.outcome) for event in events if isinstance(event, TurnEnd)}
    starts = [event.turn for event in events if isinstance(event, TurnStart)]
    ended_alone = [outcome for turn, outcome in outcomes.items() if turn not in starts]
    return " ".join([*(outcomes.get(turn, "open") for turn in starts), *ended_alone])


def _word(outcome: object) -> str:
    return "failed" if isinstance(outcome, FailedOutcome) else str(outcome)


def happened(harness: Harness, name: str) -> tuple[str, int, int, int]:
    """Turns, calls, unmatched calls and answers of the model, by what the stub and the supervisor saw."""
    scenario, _, form = name.partition("/")
    runs = [*harness.runs.get(scenario, ()), scenario] if form else [scenario]
    outcomes = [_outcome(harness, run, last=run == scenario) for run in runs]
    killed = [run for run in runs if _is_killed(harness, run) and not run.startswith(CUT)]
    calls = sum(_calls(run) for run in runs)
    answers = sum(len(requests_of(harness, run)) for run in runs if not run.startswith(CUT))
    return " ".join(outcomes), calls, sum(2 if run.startswith("S7") else 1 for run in killed), answers


def _calls(scenario: str) -> int:
    if scenario.startswith("S4t"):
        return 0
    known = [name for name in CALLS if scenario.startswith(name)]
    return CALLS[max(known, key=len)] if known else 0


def _is_killed(harness: Harness, scenario: str) -> bool:
    kill = run_of(harness, scenario)["kill"]
    return bool(kill) and kill["signal"] == "SIGKILL"


def _outcome(harness: Harness, scenario: str, *, last: bool) -> str:
    if _is_killed(harness, scenario):
        return "open" if last else "interrupted"
    if run_of(harness, scenario)["kill"]:
        return "interrupted"
    if scenario.startswith(("S6", "S1u")):
        return "failed"
    return "step_limit" if scenario == "S11" else "completed"
