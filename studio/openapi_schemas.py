"""The shapes of the API's answers, for its description."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMAS"]

_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TEXT: dict[str, Any] = {"type": "string"}
_ID: dict[str, Any] = {"type": "string", "pattern": r"^\d+\.\d+(\.[0-9a-f]+)?$"}
_MAY_BE_COUNT: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
_CUT: dict[str, Any] = {"type": "object", "additionalProperties": _COUNT}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None, *, more: bool = False) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": more,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_LAST_EVENT = _object({"offset": _COUNT, "type": _TEXT, "at": _TEXT, "summary": _TEXT})
_TOKENS = _object(dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "reasoning"), _COUNT))
_ROW: dict[str, Any] = {
    "key": _TEXT,
    "agent": _TEXT,
    "state": {"enum": ["live", "idle", "fenced", "retired"]},
    "incarnation": _MAY_BE_COUNT,
    "nextOffset": _COUNT,
    "generation": _COUNT,
    "nextTurn": _COUNT,
    "createdAt": _TEXT,
    "updatedAt": _TEXT,
    "lastEvent": _or_null(_LAST_EVENT),
    "tokens": _or_null(_TOKENS),
    "checkpoint": _or_null(_TEXT),
}
_CHECKPOINT = _object(
    {"id": _TEXT, "offset": _COUNT, "commitSha": _TEXT, "effectLedger": _list({}), "incarnation": _COUNT, "at": _TEXT}
)
_DETAILS: dict[str, Any] = {
    "checkpoints": _list(_CHECKPOINT),
    "history": _list(_object({"incarnation": _COUNT, "start": _COUNT, "stop": _COUNT})),
    "latestCheckpoint": _or_null(_CHECKPOINT),
    "resume": _or_null(_list(_TEXT)),
}
_PLACE: dict[str, Any] = {"id": _ID, "generation": _COUNT, "nextOffset": _COUNT}
_PAGE: dict[str, Any] = {
    "view": {"enum": ["events", "studio", "model", "frames", "superseded"]},
    **_PLACE,
    "total": _COUNT,
    "from": _COUNT,
    "items": _list({}),
    "offsets": _list(_COUNT),
}
_REWIND = _object(
    {
        "generation": _COUNT,
        "cut": _COUNT,
        "head": _COUNT,
        "incarnation": _COUNT,
        "at": _TEXT,
        "swept": {"type": "boolean"},
    }
)
_STATS: dict[str, Any] = {
    "key": _TEXT,
    "incarnation": _MAY_BE_COUNT,
    "nextOffset": _COUNT,
    "generation": _COUNT,
    "analysis": {"type": "object"},
    "usage": {"type": "object"},
}

SCHEMAS: dict[str, Any] = {
    "Any": {},
    "Problem": _object({"error": _object({"kind": _TEXT, "message": _TEXT, "hint": _TEXT})}),
    "Sessions": _object({"sessions": _list(_object(_ROW)), "next": {"type": ["string", "null"]}, "total": _COUNT}),
    "Session": _object(_ROW | _DETAILS),
    "Page": _object(
        _PAGE, {"cut": _CUT, "diagnostics": {"type": "object"}, "rewind": _COUNT, "cutAt": _COUNT, "head": _COUNT}
    ),
    "Found": _object({**_PLACE, "offsets": _list(_COUNT), "total": _COUNT}),
    "Stats": _object(_STATS),
    "Rewinds": _list(_REWIND),
    "Timeline": _object({"id": _ID, "svg": _TEXT}),
    "SignIn": _object({"token": _TEXT}),
    "SignedIn": _object({"signedIn": {"type": "boolean"}, "needed": {"type": "boolean"}}),
}
"""By their names. What items hold is the library's own JSON, described with it."""
