"""The recorded traces of the reference's log, on every back end."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from incarnate.actors.replay import end_of_range
from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.codec import decode_event, encode_appended
from incarnate.domain.commands import Append, Lease, PutCheckpoint
from incarnate.domain.errors import CheckpointError, OffsetError, OutOfRangeError, StaleIncarnationError
from incarnate.domain.events import AppendedEvent
from tests.support.stores import Log

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors" / "log_traces.jsonl"
TRACES: list[dict[str, Any]] = [json.loads(line) for line in VECTORS.read_bytes().splitlines()]
OURS = {
    *("at", "occurredAt", "parentCallId", "error", "outcome", "label", "scope"),
    *("cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
}


def flat(appended: AppendedEvent) -> dict[str, Any]:
    return {name: value for name, value in json.loads(encode_appended(appended)).items() if name not in OURS}


def wire(checkpoint: Checkpoint | None) -> Any:
    return json.loads(msgspec.json.encode(checkpoint))


def replay(log: Log, start: int, stop: int | None = None) -> list[dict[str, Any]]:
    with log.store.snapshot(log.key) as snapshot:
        end = end_of_range(start, stop, snapshot.head.next_offset)
        return [flat(appended) for appended in snapshot.appended(start, end)]


def latest(log: Log) -> Any:
    with log.store.snapshot(log.key) as snapshot:
        return wire(snapshot.latest_checkpoint())


def run(log: Log, name: str, *args: Any) -> Any:
    match name:
        case "lease":
            log.do(Lease(*args))
            return None
        case "append":
            return flat(log.do(Append(args[0], args[1], decode_event(json.dumps(args[2])))))
        case "putCheckpoint":
            return wire(log.do(PutCheckpoint(args[0], msgspec.convert(args[1], Checkpoint))))
        case "latestCheckpoint":
            return latest(log)
        case "getCheckpoint":
            return wire(log.checkpoint(*args))
        case "replay":
            return replay(log, *args)
        case "nextOffset":
            return log.head.next_offset
        case _:
            assert name == "currentIncarnation"
            return log.head.fence


def result(log: Log, op: list[Any]) -> dict[str, Any]:
    try:
        return {"ok": run(log, *op)}
    except StaleIncarnationError:
        return {"error": "stale-incarnation"}
    except (OffsetError, OutOfRangeError, CheckpointError):
        return {"error": "range"}


@pytest.mark.parametrize("trace", TRACES)
def test_every_trace_gives_the_recorded_results(log: Log, trace: dict[str, Any]) -> None:
    assert trace["results"] == [result(log, op) for op in trace["ops"]]


def test_no_trace_is_left_out() -> None:
    assert 120 == len(TRACES)
