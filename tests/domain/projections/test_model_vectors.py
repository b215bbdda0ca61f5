"""The histories that the reference recorded."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from incarnate import AppendedEvent
from incarnate.domain.projections.base import apply_change
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import Message
from incarnate.domain.transcripts.rows import decode_row
from incarnate.domain.transcripts.translation import to_events

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors" / "transcript_logs.jsonl"


def logs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in VECTORS.read_bytes().splitlines()]


def events(rows: list[str]) -> list[AppendedEvent]:
    ids = count()
    decoded = to_events([decode_row(row.encode()) for row in rows], lambda: f"n-{next(ids)}")
    return [AppendedEvent(offset, 0, 0, event) for offset, event in enumerate(decoded)]


@pytest.mark.parametrize("log", logs())
def test_the_reference_balancing_is_that_of_the_recorded_histories(log: dict[str, Any]) -> None:
    history = ModelHistory("reference")
    copy: list[Message] = []
    for event in events(log["rows"]):
        apply_change(copy, history.apply(event))

    assert log["engine"] == [message.to_json() for message in history.value]
    assert log["engine"] == [json.loads(message.encode()) for message in copy]


def test_every_recorded_history_is_run() -> None:
    assert 240 == len(logs())
