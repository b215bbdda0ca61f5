"""Reads recorded sessions as an ingest would: lines to records, records to drafts, drafts to events."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from incarnate.domain.dialects.base import Normalizer
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import SessionEvent

FIXTURES = Path(__file__).parents[3] / "fixtures"


class Session(NamedTuple):
    """A recorded session, linked, and what of it mapped to nothing."""

    events: list[SessionEvent]
    ignored: Counter[str]


def new_linker(parent_id: str | None = None) -> Linker:
    ids, turns = count(), count()
    return Linker(parent_id, 0, lambda: f"n-{next(ids)}", lambda: next(turns))


def read_session(records: Iterable[object], normalizer: Normalizer | None = None) -> Session:
    normalizer = normalizer or find_dialect("claude-code").normalizer()
    linker, session = new_linker(), Session([], Counter())
    for record in records:
        normalized = normalizer.feed(record)
        session.events.extend(linker.link(normalized.drafts))
        if normalized.ignored is not None:
            session.ignored[normalized.ignored] += 1
    return session


def records_of(path: Path) -> list[object]:
    records = [read_record(line) for line in path.read_bytes().split(b"\n")]
    return [record.value for record in records if record is not None]


@pytest.fixture
def session_of() -> Callable[..., Session]:
    """Reads records through one normalizer and one linker."""
    return read_session


@pytest.fixture
def claude() -> Callable[..., list[object]]:
    """The records of a scenario of Claude Code: its `stdout`, its main transcript on `disk`, or its `subagent`'s."""

    def load(scenario: str, form: str) -> list[object]:
        folder = FIXTURES / "recordings" / "claude" / scenario
        if form == "stdout":
            return records_of(folder / "stdout.jsonl")
        found = sorted((folder / "disk" / ".claude" / "projects").rglob("*.jsonl"))
        [path] = [path for path in found if ("subagents" in path.parts) == (form == "subagent")]
        return records_of(path)

    return load


@pytest.fixture
def linker() -> Callable[..., Linker]:
    """A linker that counts ids from n-0 and turns from 0."""
    return new_linker
