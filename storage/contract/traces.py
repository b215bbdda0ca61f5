"""The recorded traces of the reference's log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.codec import decode_checkpoint, decode_event, encode_appended, encode_json
from incarnate.domain.commands import Append, Lease, PutCheckpoint
from incarnate.domain.conformance import compare, decode_vector, like_the_reference
from incarnate.domain.errors import CheckpointError, OffsetError, OutOfRangeError, RefusedError, StaleIncarnationError
from incarnate.domain.events import AppendedEvent
from incarnate.domain.keys import ActivationKey
from incarnate.storage.contract.harness import Contract
from incarnate.storage.contract.log import Log
from incarnate.storage.port import Store

__all__ = ["Traces"]

TRACES = "log_traces.jsonl"


def flat(appended: AppendedEvent) -> dict[str, Any]:
    return like_the_reference(decode_vector(encode_appended(appended)))


def wire(checkpoint: Checkpoint | None) -> Any:
    return None if checkpoint is None else decode_vector(encode_json(checkpoint))


def append(log: Log, incarnation: int, offset: int, event: object) -> object:
    return flat(log.do(Append(incarnation, offset, decode_event(encode_json(event)))))


def put_checkpoint(log: Log, incarnation: int, checkpoint: object) -> object:
    return wire(log.do(PutCheckpoint(incarnation, decode_checkpoint(encode_json(checkpoint), "a vector"))))


def latest_checkpoint(log: Log) -> object:
    with log.store.snapshot(log.key) as snapshot:
        return wire(snapshot.latest_checkpoint())


def replay(log: Log, start: int, stop: int | None = None) -> object:
    with log.store.snapshot(log.key) as snapshot:
        if start < 0 or (stop is not None and stop < start):
            raise OffsetError(f"no events lie from offset {start} up to {stop}")
        end = snapshot.head.next_offset if stop is None else min(stop, snapshot.head.next_offset)
        return [flat(appended) for appended in snapshot.appended(start, end)]


def lease(log: Log, incarnation: int) -> None:
    log.do(Lease(incarnation))


OPERATIONS: dict[str, Callable[..., object]] = {
    "append": append,
    "currentIncarnation": lambda log: log.head.fence,
    "getCheckpoint": lambda log, checkpoint_id: wire(log.checkpoint(checkpoint_id)),
    "latestCheckpoint": latest_checkpoint,
    "lease": lease,
    "nextOffset": lambda log: log.head.next_offset,
    "putCheckpoint": put_checkpoint,
    "replay": replay,
}


def answer(log: Log, operation: str, *arguments: object) -> dict[str, Any]:
    try:
        return {"ok": OPERATIONS[operation](log, *arguments)}
    except StaleIncarnationError:
        return {"error": "stale-incarnation"}
    except (CheckpointError, OffsetError, OutOfRangeError):
        return {"error": "range"}
    except RefusedError as error:
        return {"error": f"{type(error).__name__}: {error}"}


class Traces(Contract):
    """A log answers as the reference was recorded to."""

    def test_every_recorded_trace_gives_the_recorded_results(self, store: Store) -> None:
        wrong: list[str] = []
        for number, line in enumerate(traces(self.vectors), start=1):
            log, trace = Log(store, ActivationKey("trace", str(number))), decode_vector(line)
            verdict = compare(trace["results"], [answer(log, *operation) for operation in trace["ops"]])
            if verdict.outcome != "passed":
                wrong.append(f"line {number}: {verdict.reason}")

        assert [] == wrong

    vars(test_every_recorded_trace_gives_the_recorded_results)["needed"] = frozenset({"vectors"})


def traces(folder: Path | None) -> list[bytes]:
    assert folder is not None
    lines = (folder / TRACES).read_bytes().splitlines()
    assert lines, f"{folder / TRACES} holds no traces"
    return lines
