"""Whatever a record holds, a dialect drafts what can be stored or refuses it, and is the same machine afterwards."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.codec import encode_event
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


SOURCES = {
    "stream": ("claude-code", recorded("S7/stdout.jsonl", "S4i/stdout.jsonl", "S8x3-compact/stdout.jsonl")),
    "transcript": (
        "claude-code",
        recorded("S7/disk/**/*.jsonl", "S8x3-compact/disk/**/*.jsonl", "S11/disk/**/*.jsonl"),
    ),
    "gemini": ("gemini-cli", recorded("S*/stdout.jsonl", "S*/disk/**/*.jsonl", of="gemini")),
    "qwen": ("qwen-code", recorded("S[2467]*/stdout.jsonl", "S[567]*/disk/**/*.jsonl", of="qwen")),
    "kimi-cli": ("kimi", recorded("S*/stdout.jsonl", "S*/disk/**/*.jsonl", of="kimi")),
    "kimi-code": ("kimi", recorded("S*/stdout.jsonl", "S[24567]*/disk/**/*.jsonl", of="kimicode")),
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
