"""Whatever a record holds, a dialect drafts what can be stored or refuses it, and is the same machine afterwards."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.codec import encode_event
from incarnate.domain.dialects.base import Finishing
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.reader import read_record
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.errors import DialectError

FIXTURES = Path(__file__).parents[3] / "fixtures"
junk = st.sampled_from([None, True, -1, 2**60, 1e300, "", "x", [], [None, "s", {"type": 3}], {}, {"type": "text"}])


def recorded(*places: str, of: str = "claude") -> list[Any]:
    paths = [path for place in places for path in sorted((FIXTURES / "recordings" / of).glob(place))]
    lines = [line for path in paths for line in path.read_bytes().split(b"\n") if line.startswith(b"{")]
    records = [read_record(line) for line in lines]
    return [record.value for record in records if record is not None]


def from_vectors(harness: str) -> list[Any]:
    vectors = map(json.loads, (FIXTURES / "vectors" / "dialects.jsonl").read_bytes().splitlines())
    return [record for vector in vectors if vector["harness"] == harness for record in vector["records"]]


def opened(row: Any) -> Any:
    """A row of a database with the JSON in it read, so that it can be damaged inside."""
    data = row["row"].get("data")
    return {**row, "row": {**row["row"], "data": json.loads(data)}} if isinstance(data, str) else row


EXPORTS = sorted((FIXTURES / "recordings" / "opencode").glob("S[57]*/export.json"))
SOURCES = {
    "stream": ("claude-code", recorded("S7/stdout.jsonl", "S4i/stdout.jsonl", "S8x3-compact/stdout.jsonl")),
    "transcript": (
        "claude-code",
        recorded("S7/disk/**/*.jsonl", "S8x3-compact/disk/**/*.jsonl", "S11/disk/**/*.jsonl"),
    ),
    "acp": ("acp", recorded("*/S*/stdout.jsonl", of="acp")),
    "codex-stream": ("codex", recorded("S*/stdout.jsonl", of="codex")),
    "codex-rollout": ("codex", recorded("S[2456]*/disk/**/*.jsonl", of="codex")),
    "copilot-stream": ("@github/copilot", recorded("S[24567]*/stdout.jsonl", of="copilot")),
    "copilot-file": ("@github/copilot", recorded("S[24567]*/disk/**/*.jsonl", of="copilot")),
    "gemini": ("gemini-cli", recorded("S*/stdout.jsonl", "S*/disk/**/*.jsonl", of="gemini")),
    "qwen": ("qwen-code", recorded("S[2467]*/stdout.jsonl", "S[567]*/disk/**/*.jsonl", of="qwen")),
    "kimi-cli": ("kimi", recorded("S*/stdout.jsonl", "S*/disk/**/*.jsonl", of="kimi")),
    "kimi-code": ("kimi", recorded("S*/stdout.jsonl", "S[24567]*/disk/**/*.jsonl", of="kimicode")),
    "pi-stream": ("pi", recorded("S[2456]*/stdout.jsonl", of="pi")),
    "pi-file": ("pi", recorded("S[256]*/disk/**/*.jsonl", of="pi")),
    "opencode-stream": ("opencode", recorded("S*/stdout.jsonl", of="opencode")),
    "opencode-rows": ("opencode", [opened(row) for row in recorded("S[567]*/disk/*.jsonl", of="opencode")]),
    "opencode-export": ("opencode", [json.loads(path.read_bytes()) for path in EXPORTS]),
    **{harness: (harness, records) for harness in DIALECTS if (records := from_vectors(harness))},
}


def damage(draw: Callable[..., Any], value: Any) -> Any:
    """The value with one thing in it, at any depth, replaced by something that does not belong there."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: damage(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], damage(draw, value[place]), *value[place + 1 :]]
    return draw(junk)


@pytest.mark.parametrize("source", SOURCES)
@given(st.data())
def test_damaged_records_are_drafted_or_refused(source: str, data: st.DataObject) -> None:
    harness, records = SOURCES[source]
    normalizer = find_dialect(harness).normalizer()
    linker = Linker(None, 0, lambda: "n", lambda: 0)
    for record in data.draw(st.lists(st.sampled_from(records), max_size=12)):
        broken = damage(data.draw, record) if data.draw(st.booleans()) else record
        try:
            normalized = normalizer.feed(broken)
        except DialectError:
            continue
        for event in linker.link(normalized.drafts):
            encode_event(event)
    if isinstance(normalizer, Finishing):
        for event in linker.link(normalizer.finish().drafts):
            encode_event(event)


@given(st.sampled_from(sorted(SOURCES)), st.data())
def test_damaged_records_are_told_apart_or_not(source: str, data: st.DataObject) -> None:
    record = damage(data.draw, data.draw(st.sampled_from(SOURCES[source][1])))
    for dialect in DIALECTS.values():
        named = dialect.record_id(record), dialect.session_id(record)

        assert dialect.likeness(record) in {0, 1, 2}
        assert all(name is None or isinstance(name, str) for name in named)
