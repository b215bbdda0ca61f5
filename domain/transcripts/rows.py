r"""Transcript rows and their bytes, exactly as the reference writes them (`fixtures/vectors/transcript_rows.jsonl`).

`type` comes first, then the fields in the order of their declaration here. Keys of opaque values are sorted by their
UTF-8 bytes. `parent_id` is left out where there is none; `value` and `error` are always written. Strings escape what
JSON must (`"`, `\`, controls below U+0020) and nothing else: DEL and U+2028 stand as they are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from incarnate.domain.encoding import MAX_DEPTH, first_violation
from incarnate.domain.errors import EventShapeError, UnencodableEventError
from incarnate.domain.events import TurnOutcome

__all__ = [
    "AssistantMessageRow",
    "Row",
    "ThinkingDeltaRow",
    "ToolCallRow",
    "ToolResultRow",
    "TurnEndRow",
    "TurnStartRow",
    "UserMessageRow",
    "decode_row",
    "encode_row",
]


def _nothing() -> None:
    """A default that `omit_defaults` does not know, so that the field is always written."""


class _Row(msgspec.Struct, frozen=True, gc=False, tag_field="type", omit_defaults=True):
    pass


class UserMessageRow(_Row, frozen=True, gc=False, tag="user_message"):
    """A prompt."""

    text: str


class AssistantMessageRow(_Row, frozen=True, gc=False, tag="assistant_message"):
    """What the model said."""

    text: str


class ThinkingDeltaRow(_Row, frozen=True, gc=False, tag="thinking_delta"):
    """What the model thought."""

    text: str


class ToolCallRow(_Row, frozen=True, gc=False, tag="tool_call"):
    """The model asked for a tool; `parent_id` is the call inside which it did."""

    id: str
    name: str
    args: Any
    parent_id: str | None = None


class ToolResultRow(_Row, frozen=True, gc=False, tag="tool_result"):
    """The answer to a call. It failed where `error` is a string, even an empty one."""

    id: str
    value: Any
    error: str | None = msgspec.field(default_factory=_nothing)
    parent_id: str | None = None


class TurnStartRow(_Row, frozen=True, gc=False, tag="turn_start"):
    """A turn begins; its id is ours (`turn-7`) or a foreign one."""

    id: str


class TurnEndRow(_Row, frozen=True, gc=False, omit_defaults=False, tag="turn_end"):
    """A turn ends. A legacy one without an outcome, or with null, was completed."""

    id: str
    outcome: TurnOutcome = "completed"


class _LegacyTurnEnd(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="turn_end"):
    id: str
    outcome: None


Row = UserMessageRow | AssistantMessageRow | ThinkingDeltaRow | ToolCallRow | ToolResultRow | TurnStartRow | TurnEndRow

_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Row)
_legacy_decoder = msgspec.json.Decoder(_LegacyTurnEnd)


def decode_row(line: bytes) -> Row:
    """The row of one line, with or without its line end. Unknown fields are dropped.

    Raises:
        EventShapeError: it is no row, is of an unknown type, or no event could hold it.
    """
    try:
        row = _decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        return _decode_legacy(line, error)
    # Depth needs as many brackets: counting them spares nearly every row the walk.
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and (violation := first_violation(row)):
        raise EventShapeError(f"no transcript row: {violation[1]}")
    return row


def _decode_legacy(line: bytes, refusal: Exception) -> Row:
    try:
        return TurnEndRow(_legacy_decoder.decode(line).id)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise EventShapeError(f"no transcript row: {refusal}") from refusal


def encode_row(row: Row) -> bytes:
    """The bytes of a row, without a line end.

    They are decoded again and compared, as a session event's are: what is accepted reads back equal (I9).

    Raises:
        UnencodableEventError: with the path of the value that would not read back equal.
    """
    try:
        payload = _encoder.encode(row)
        same = decode_row(payload) == row
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _unencodable(row, str(error)) from error
    if not same:
        raise _unencodable(row, f"{type(row).__name__} would not read back equal")
    return payload


def _unencodable(row: Row, reason: str) -> UnencodableEventError:
    path, why = first_violation(row) or ("$", reason)
    return UnencodableEventError(path=path, reason=why)
