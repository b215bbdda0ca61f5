"""The vectors of values, from events and dialects to transcript files and their names; and what comparing means.

`incarnate.actors.conformance` replays the vectors of traces, which need a log.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from incarnate.domain.codec import decode_event, encode_json
from incarnate.domain.dialects.acp_updates import classify
from incarnate.domain.dialects.base import advertisement
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.dialects.registry import DIALECTS
from incarnate.domain.errors import DialectError, EventShapeError
from incarnate.domain.transcripts.vectors import file_answer, file_name_answer, row_answer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UNCOVERED", "VALUE_VECTORS", "Verdict", "compare", "decode_vector", "like_the_reference"]

_OURS = frozenset(
    {
        *("at", "occurredAt", "parentCallId", "error", "outcome", "label", "native", "scope"),
        *("cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
    }
)
"""Optional fields of events of ours that the reference lacks."""

_SESSION_ID = "id with spaces"

_decode = msgspec.json.Decoder().decode


class Verdict(NamedTuple):
    """Whether a line holds; `reason` says why not."""

    outcome: Literal["passed", "failed", "uncovered"]
    reason: str = ""


PASSED = Verdict("passed")
UNCOVERED = Verdict("uncovered")


def decode_vector(line: bytes) -> dict[str, Any]:
    """One line of a vector file.

    Raises:
        EventShapeError: it is no JSON object.
    """
    try:
        vector = _decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EventShapeError(f"no vector: {error}") from error
    if not isinstance(vector, dict):
        raise EventShapeError("no vector: it is no JSON object")
    return vector


def like_the_reference(event: object) -> dict[str, Any]:
    """An event's JSON without the optional fields that the reference lacks."""
    fields: dict[str, Any] = _decode(encode_json(event))
    return {name: value for name, value in fields.items() if name not in _OURS}


def compare(expected: object, actual: object) -> Verdict:
    """Passed where both are the same JSON value."""
    difference = _difference(expected, actual, "$")
    return PASSED if difference is None else Verdict("failed", difference)


def _difference(expected: object, actual: object, path: str) -> str | None:
    """The first place where two JSON values differ. Python's `==` takes true for 1."""
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        pairs = [(expected[name], actual[name], f"{path}.{name}") for name in expected]
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = [(one, other, f"{path}[{at}]") for at, (one, other) in enumerate(zip(expected, actual, strict=True))]
    elif isinstance(expected, bool) == isinstance(actual, bool) and expected == actual:
        return None
    else:
        return f"expected {expected!r:.200}, got {actual!r:.200} - at `{path}`"
    return next((found for one, other, at in pairs if (found := _difference(one, other, at)) is not None), None)


def _check_event(vector: dict[str, Any]) -> Verdict:
    try:
        event = like_the_reference(decode_event(encode_json(vector["input"])))
    except EventShapeError:
        return compare(vector.get("error"), "event-shape")
    return compare(vector.get("event"), event)


def _check_dialect(vector: dict[str, Any]) -> Verdict:
    dialect = DIALECTS.get(vector["harness"])
    if dialect is None:
        return UNCOVERED
    expected = vector.get("events") or []
    ids, turns = itertools.count(), itertools.count()
    parent = expected[0]["parentId"] if expected else None
    linker = Linker(parent, 0, lambda: f"n-{next(ids)}", lambda: next(turns))
    normalizer = dialect.normalizer()
    try:
        events = [event for record in vector["records"] for event in linker.link(normalizer.feed(record).drafts)]
    except DialectError:
        return compare(vector.get("error"), "dialect")
    return compare(vector.get("events"), [like_the_reference(event) for event in events])


def _check_resume(vector: dict[str, Any]) -> Verdict:
    dialect = DIALECTS.get(vector["harness"])
    if dialect is None:
        return UNCOVERED
    ours = {"resume": dialect.resume(_SESSION_ID), "advertisement": advertisement(dialect)}
    expected = {name: vector[name] for name in ours}
    return compare(expected, _decode(encode_json(ours)))


def _check_acp_update(vector: dict[str, Any]) -> Verdict:
    return compare(vector["classified"], _decode(encode_json(classify(vector["update"]))))


def _by_answer(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], Verdict]:
    """The check of a file whose lines are what `answer` makes of themselves."""
    return lambda vector: compare(vector, answer(vector))


VALUE_VECTORS: dict[str, Callable[[dict[str, Any]], Verdict]] = {
    "events.jsonl": _check_event,
    "dialects.jsonl": _check_dialect,
    "resume.jsonl": _check_resume,
    "acp_updates.jsonl": _check_acp_update,
    "transcript_rows.jsonl": _by_answer(row_answer),
    "transcript_files.jsonl": _by_answer(file_answer),
    "file_names.jsonl": _by_answer(file_name_answer),
}
"""How a line of each file is checked."""
