import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from incarnate.domain.dialects.base import Dialect, advertisement
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.errors import DialectError

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
OURS = {
    *("at", "occurredAt", "parentCallId", "error", "outcome", "label", "native", "scope"),
    *("cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
}


def vectors(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / file).read_bytes().splitlines()]


def wire(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def normalize(dialect: Dialect, records: list[object], linker: Linker) -> list[dict[str, Any]]:
    normalizer = dialect.normalizer()
    events = [event for record in records for event in linker.link(normalizer.feed(record).drafts)]
    return [{name: value for name, value in wire(event).items() if name not in OURS} for event in events]


@pytest.mark.parametrize("vector", vectors("dialects.jsonl"))
def test_records_become_the_events_of_the_vectors(vector: dict[str, Any], linker: Callable[..., Linker]) -> None:
    dialect = find_dialect(vector["harness"])
    if "error" in vector:
        with pytest.raises(DialectError):
            normalize(dialect, vector["records"], linker())
    else:
        parent = vector["events"][0]["parentId"] if vector["events"] else None
        assert vector["events"] == normalize(dialect, vector["records"], linker(parent))


@pytest.mark.parametrize("vector", vectors("resume.jsonl"))
def test_sessions_resume_as_the_vectors_say(vector: dict[str, Any]) -> None:
    dialect = find_dialect(vector["harness"])
    assert vector["resume"] == wire(dialect.resume("id with spaces"))
    assert vector["advertisement"] == wire(advertisement(dialect))


def test_the_vectors_of_every_dialect_of_the_reference_are_run() -> None:
    theirs = {"@github/copilot", "claude-code", "deepseek", "kimi", "pi", "qwen-code"}
    assert theirs <= DIALECTS.keys()
    assert dict.fromkeys(theirs, 120) == Counter(vector["harness"] for vector in vectors("dialects.jsonl"))
    assert dict.fromkeys(theirs, 1) == Counter(vector["harness"] for vector in vectors("resume.jsonl"))
