"""Replaying the recorded behaviour of the reference systems, on any store and either dispatcher."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.actors.system import SessionSystem
from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.codec import decode_checkpoint, decode_event, encode_appended, encode_json
from incarnate.domain.commands import Append, GetCheckpoint, GetHead, LatestCheckpoint, Lease, PutCheckpoint, Replay
from incarnate.domain.conformance import UNCOVERED, VALUE_VECTORS, Verdict, compare, decode_vector, like_the_reference
from incarnate.domain.errors import (
    CheckpointError,
    EventShapeError,
    OffsetError,
    OutOfRangeError,
    RefusedError,
    StaleIncarnationError,
)
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.analysis import ReplayAnalysis
from incarnate.domain.projections.frames import ClientFrames
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.studio import StudioTranscript
from incarnate.domain.transcripts.rows import decode_row
from incarnate.domain.transcripts.translation import to_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from incarnate.actors.directory import ActivationRef
    from incarnate.actors.dispatchers import DispatcherName
    from incarnate.actors.session import Session
    from incarnate.domain.checkpoints import Seed
    from incarnate.domain.events import AppendedEvent

__all__ = ["LineVerdict", "replay_vectors"]


class LineVerdict(NamedTuple):
    """What became of one line of one file."""

    file: str
    line: int
    verdict: Verdict


def replay_vectors(folder: Path, url: str, dispatcher: DispatcherName = "calling") -> Iterator[LineVerdict]:
    """Replay every vector file of `folder`: what this version does not cover is told as uncovered.

    Each trace runs on a key that no run before it used, so what the store held stays as it was.
    """
    run = str(uuid.uuid4())
    for file in sorted(folder.glob("*.jsonl")):
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    key = ActivationKey(f"conform-{run}", f"{file.stem}-{number}")
                    yield LineVerdict(file.name, number, _check(file.name, line, key, url, dispatcher))


def _check(name: str, line: bytes, key: ActivationKey, url: str, dispatcher: DispatcherName) -> Verdict:
    check_value, check_trace = VALUE_VECTORS.get(name), _TRACES.get(name)
    try:
        if check_value is not None:
            return check_value(decode_vector(line))
        if check_trace is None:
            return UNCOVERED
        ids = itertools.count()
        with SessionSystem.open(
            url, clock=lambda: 0, new_id=lambda: f"cp-{next(ids)}", dispatcher=dispatcher
        ) as system:
            return check_trace(system, key, decode_vector(line))
    except (EventShapeError, KeyError, TypeError, ValueError) as error:
        return Verdict("failed", f"{type(error).__name__}: {error}")


def _answer(act: Callable[..., object], *args: Any) -> dict[str, Any]:
    """What the reference writes down of a call: its value, or which refusal it was."""
    try:
        return {"ok": act(*args)}
    except StaleIncarnationError:
        return {"error": "stale-incarnation"}
    except (CheckpointError, OffsetError, OutOfRangeError):
        return {"error": "range"}
    except RefusedError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _appended(appended: AppendedEvent) -> dict[str, Any]:
    return like_the_reference(decode_vector(encode_appended(appended)))


def _json(value: object) -> Any:
    return None if value is None else decode_vector(encode_json(value))


def _checkpoint(value: object) -> Checkpoint:
    return decode_checkpoint(encode_json(value), "a vector")


# log traces


def _check_log(system: SessionSystem, key: ActivationKey, trace: dict[str, Any]) -> Verdict:
    ref = system.activation(key)
    results = [_answer(_LOG_OPS[op[0]], ref, *op[1:]) for op in trace["ops"]]
    return compare(trace["results"], results)


def _lease(ref: ActivationRef, incarnation: int) -> None:
    ref.ask(Lease(incarnation))


def _append(ref: ActivationRef, incarnation: int, offset: int, event: object) -> object:
    return _appended(ref.ask(Append(incarnation, offset, decode_event(encode_json(event)))))


def _put_checkpoint(ref: ActivationRef, incarnation: int, checkpoint: object) -> object:
    return _json(ref.ask(PutCheckpoint(incarnation, _checkpoint(checkpoint))))


def _replay(ref: ActivationRef, start: int, stop: int | None = None) -> object:
    return [_appended(appended) for appended in ref.ask(Replay(start, stop))]


_LOG_OPS: dict[str, Callable[..., object]] = {
    "lease": _lease,
    "append": _append,
    "putCheckpoint": _put_checkpoint,
    "latestCheckpoint": lambda ref: _json(ref.ask(LatestCheckpoint())),
    "getCheckpoint": lambda ref, checkpoint_id: _json(ref.ask(GetCheckpoint(checkpoint_id))),
    "replay": _replay,
    "nextOffset": lambda ref: ref.ask(GetHead()).next_offset,
    "currentIncarnation": lambda ref: ref.ask(GetHead()).fence,
}


# session traces


def _check_session(system: SessionSystem, key: ActivationKey, trace: dict[str, Any]) -> Verdict:
    sessions: dict[str, Session] = {}
    results = [_answer(_step, system, key, sessions, step) for step in trace["steps"]]
    return compare(trace["results"], results)


def _step(system: SessionSystem, key: ActivationKey, sessions: dict[str, Session], step: dict[str, Any]) -> object:
    match step["op"]:
        case "open":
            session = sessions[step["as"]] = system.lease(key, step["incarnation"])
            return {"nextOffset": session.next_offset}
        case "emit":
            return _appended(sessions[step["as"]].emit(decode_event(encode_json(step["event"]))))
        case "checkpoint":
            effects = [EffectEntry(**effect) for effect in step["effectLedger"]]
            return _json(sessions[step["as"]].checkpoint(step["commitSha"], effects))
        case "restore":
            return _seed(sessions[step["as"]].restore(step.get("from"), rewind=True))
        case "replay":
            return [_appended(appended) for appended in system.replay(key)]
        case other:
            raise ValueError(f"no step {other!r}")


def _seed(seed: Seed) -> object:
    return {
        "checkpoint": _json(seed.checkpoint),
        "events": [_appended(appended) for appended in seed.events],
        "nextOffset": seed.next_offset,
    }


# transcript logs


def _check_transcript(system: SessionSystem, key: ActivationKey, log: dict[str, Any]) -> Verdict:
    """The rows become events of a stored log, and what is compared are its views: the whole way of an event."""
    ids = itertools.count()
    rows = [decode_row(row.encode("utf-8", "surrogatepass")) for row in log["rows"]]
    session = system.claim(key)
    session.emit_many(to_events(rows, lambda: f"n-{next(ids)}"))
    answers = {
        "engine": [message.to_json() for message in system.view(key, ModelHistory("reference")).get()],
        "studio": list(system.view(key, StudioTranscript()).get()),
        "sse": list(system.view(key, ClientFrames()).get()),
        "analysis": system.view(key, ReplayAnalysis()).get().as_json(),
        "nextTurn": session.next_turn(),
    }
    expected = {name: log[name] for name in answers}
    # Our analysis tells the next turn too: of the events alone, where the head's also counts what was superseded.
    return compare({**expected, "analysis": {**expected["analysis"], "nextTurn": expected["nextTurn"]}}, _json(answers))


_TRACES: dict[str, Callable[[SessionSystem, ActivationKey, dict[str, Any]], Verdict]] = {
    "log_traces.jsonl": _check_log,
    "session_traces.jsonl": _check_session,
    "transcript_logs.jsonl": _check_transcript,
}
