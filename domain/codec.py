"""Events and checkpoints to JSON bytes and back.

Stores keep the bytes that `encode_event` makes and never look inside. What is written is decoded again and compared
before anything else happens, which catches every wrong type, surrogate and infinity: what is accepted reads back
equal (I9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.encoding import ENDLESS, MAX_DEPTH, first_violation, is_small, least_bytes
from incarnate.domain.errors import EventShapeError, LogCorruptionError, UnencodableEventError
from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent, ToolCall, ToolResult, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "MAX_EVENT_BYTES",
    "EncodedCheckpoint",
    "EncodedEvent",
    "StoredEvent",
    "decode_checkpoint",
    "decode_event",
    "decode_stored",
    "encode_appended",
    "encode_checkpoint",
    "encode_event",
    "encode_events",
    "encode_json",
]

T = TypeVar("T")
E = TypeVar("E")

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""The largest encoded event by default."""

_encoder = msgspec.json.Encoder()
_event_decoder = msgspec.json.Decoder(SessionEvent)
_events_decoder = msgspec.json.Decoder(list[SessionEvent])
_checkpoint_decoder = msgspec.json.Decoder(Checkpoint)
_any_decoder = msgspec.json.Decoder()


_TOGETHER = 64  # events that are encoded, decoded and compared at once
_MOST_TOGETHER = 4 * 1024 * 1024
"""Bytes of them: they are in memory twice."""


class _Header(msgspec.Struct, rename="camel"):
    type: str
    id: str
    parent_id: str | None


_header_decoder = msgspec.json.Decoder(_Header)
_KNOWN_TYPES = frozenset(str(t.__struct_config__.tag) for t in SessionEvent.__args__)

_ENCODABLE = (*SessionEvent.__args__, Checkpoint)
_SEALED = frozenset(SessionEvent.__args__) - {ToolCall, ToolResult}
"""Those that hold no value of any shape: as deep as their fields, and as large as their texts."""

encode_json = _encoder.encode
"""Any JSON value or struct of ours as bytes."""


class EncodedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event that passed the contract, and its bytes. The event is our own copy: no caller can change it."""

    event: SessionEvent | Opaque
    payload: bytes


class EncodedCheckpoint(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint that passed the contract, and its bytes."""

    checkpoint: Checkpoint
    payload: bytes


class StoredEvent(NamedTuple):
    """One row of a log, as every store gives it."""

    offset: int
    incarnation: int
    at_ms: int
    payload: bytes


def encode_event(event: SessionEvent | Opaque, max_bytes: int = MAX_EVENT_BYTES) -> EncodedEvent:
    """The event's JSON as the reference writes it.

    Raises:
        UnencodableEventError: with the path of the value that would not read back equal, or of an event over
            `max_bytes`.
    """
    kind = type(event)
    if kind in _SEALED:
        try:
            payload = _encoder.encode(event)
            copy = _event_decoder.decode(payload)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise _unencodable(event, error) from error
        if len(payload) <= max_bytes and copy == event:
            return EncodedEvent(copy, payload)
    elif kind is Opaque:
        return _encode_opaque(event, max_bytes)  # type: ignore[arg-type]
    return _encode(event, _event_decoder.decode, max_bytes, EncodedEvent)


def encode_events(events: Sequence[SessionEvent | Opaque | EncodedEvent]) -> tuple[EncodedEvent, ...]:
    """As `encode_event` of each; those that are encoded already stay as they are.

    Raises:
        UnencodableEventError: as `encode_event`, of the first that it refuses.
    """
    encoded: list[EncodedEvent] = []
    for start in range(0, len(events), _TOGETHER):
        part = events[start : start + _TOGETHER]
        together = _encode_together(part)
        encoded += together or [event if isinstance(event, EncodedEvent) else encode_event(event) for event in part]
    return tuple(encoded)


def _encode_together(events: Sequence[SessionEvent | Opaque | EncodedEvent]) -> list[EncodedEvent] | None:
    """All of them encoded, decoded and compared at once, a tenth sooner; None where each must be looked at."""
    nested: list[int] = []  # places of those that hold more than a text
    try:
        for place, event in enumerate(events):
            if type(event) not in _SEALED:
                if not _is_plain(event):
                    return None
                if type(_opaque_part(event)) is not str:
                    nested.append(place)
        lines = _encoder.encode_lines(events)
        if len(lines) > _MOST_TOGETHER:
            return None
        copies = _event_decoder.decode_lines(lines)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
    payloads = lines.split(b"\n")
    if copies != list(events) or any(not _is_shallow(payloads[place]) for place in nested):
        return None
    return list(map(EncodedEvent, copies, payloads))


def _is_plain(event: object) -> bool:
    """Whether this is a call or a result that is plainly sound, if it is shallow; any other needs a closer look."""
    if type(event) is ToolCall or type(event) is ToolResult:
        opaque = _opaque_part(event)
        return type(opaque) is str or is_small(opaque, _MOST_TOGETHER)
    return False


def encode_checkpoint(checkpoint: Checkpoint) -> EncodedCheckpoint:
    """The checkpoint's JSON as the reference writes it.

    Raises:
        UnencodableEventError: with the path of the value that would not read back equal.
    """
    return _encode(checkpoint, _checkpoint_decoder.decode, MAX_EVENT_BYTES, EncodedCheckpoint)


def _encode(value: T, decode: Callable[[bytes], T], max_bytes: int, encoded: Callable[[T, bytes], E]) -> E:
    opaque = _opaque_part(value)
    if type(opaque) is not str and not is_small(opaque, max_bytes >> 4):
        _check_size(value, opaque, max_bytes)
    try:
        payload = _encoder.encode(value)
        copy = decode(payload)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _unencodable(value, error) from error
    if copy != value or not (type(opaque) is str or _is_shallow(payload)):
        violation = first_violation(value)
        if violation is not None or copy != value:
            raise _unencodable(value, None, violation)
    if len(payload) > max_bytes:
        raise UnencodableEventError(path="$", reason=f"{len(payload)} bytes encoded; at most {max_bytes} are allowed")
    return encoded(copy, payload)


def _opaque_part(value: Any) -> Any:
    """The value of any shape in `value`."""
    kind = type(value)
    if kind is ToolCall:
        return value.args
    if kind is ToolResult:
        return value.result
    if kind is Checkpoint:
        return [
            entry.detail for entry in value.effect_ledger if type(entry) is EffectEntry and entry.detail is not UNSET
        ]
    return None


def _check_size(value: object, opaque: object, max_bytes: int) -> None:
    # Before it is encoded: a list that refers twice to a list that refers twice to a list... takes the memory of a few,
    # and its JSON that of all of them.
    size = least_bytes(opaque)
    if size > max_bytes:
        violation = first_violation(value) if size >= ENDLESS else None
        kind = type(value)
        path = "$.args" if kind is ToolCall else "$.result" if kind is ToolResult else "$.effectLedger"
        reason = f"over {max_bytes} bytes encoded, which is the most that is allowed"
        raise _unencodable(value, None, violation or (path, reason))


def _is_shallow(payload: bytes) -> bool:
    # Depth needs as many pairs of brackets: counting them spares nearly every event the walk.
    return len(payload) <= 2 * MAX_DEPTH or payload.count(b"[") + payload.count(b"{") <= MAX_DEPTH


def _unencodable(
    value: object, error: Exception | None, violation: tuple[str, str] | None = None
) -> UnencodableEventError:
    if not isinstance(value, _ENCODABLE):
        reason = f"emit takes a SessionEvent such as AssistantMessage, not {type(value).__name__}"
        hint = "make an event of it, such as UserMessage(id=..., parent_id=..., text=...)"
        return UnencodableEventError(path="$", reason=reason, hint=hint)
    path, reason = violation or first_violation(value) or ("$", f"{type(value).__name__} would not read back equal")
    if error is not None and violation is None and path == "$":
        # msgspec ends its messages with the path of a field of the wrong type.
        reason, _, where = str(error).partition(" - at `")
        path = where.rstrip("`") or "$"
    return UnencodableEventError(path=path, reason=reason)


def _encode_opaque(event: Opaque, max_bytes: int) -> EncodedEvent:
    try:
        header = _header_decoder.decode(event.raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnencodableEventError(path="$", reason=f"an opaque event that is no JSON event: {error}") from error
    named = (event.type, event.id, event.parent_id)
    if named != (header.type, header.id, header.parent_id) or header.type in _KNOWN_TYPES:
        raise UnencodableEventError(path="$", reason=f"an opaque event whose bytes hold a {header.type!r} event")
    if len(event.raw) > max_bytes:
        raise UnencodableEventError(path="$", reason=f"{len(event.raw)} bytes; at most {max_bytes} are allowed")
    return EncodedEvent(event, event.raw)


def decode_event(data: bytes | str) -> SessionEvent:
    """The canonical event of a JSON text. Unknown fields are dropped (`fixtures/vectors/events.jsonl`).

    Raises:
        EventShapeError: it is no event, or of a type that this version does not know.
    """
    try:
        return _event_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise EventShapeError(f"no session event: {error}") from error


def decode_checkpoint(payload: bytes, place: str) -> Checkpoint:
    """A stored checkpoint.

    Raises:
        LogCorruptionError: with `place`, where the bytes are no checkpoint.
    """
    try:
        return _checkpoint_decoder.decode(payload)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise LogCorruptionError(place, f"no checkpoint: {error}") from error


def decode_stored(rows: Sequence[StoredEvent | tuple[int, int, int, bytes]], place: str) -> list[AppendedEvent]:
    """Rows of a log as events; one of an unknown type becomes `Opaque`.

    A batch is decoded as one JSON array, which is faster than row by row (`benchmarks/run --only replay`).

    Raises:
        LogCorruptionError: with `place` and the offset, where a row is no event.
    """
    try:
        events: list[Any] = _events_decoder.decode(b"[" + b",".join([row[3] for row in rows]) + b"]")
    except (msgspec.MsgspecError, RecursionError, TypeError):
        events = []
    _check_numbers(rows, place)
    if len(events) != len(rows):  # an unknown type, or damage: find out which, row by row
        events = [_decode_one(row, place) for row in rows]
    return [AppendedEvent(row[0], row[1], row[2], event) for row, event in zip(rows, events, strict=True)]


def _check_numbers(rows: Sequence[StoredEvent | tuple[int, int, int, bytes]], place: str) -> None:
    # A database may hold anything where somebody edited it by hand. One sum is a twentieth of a batch's decoding.
    try:
        if type(sum([row[0] + row[1] + row[2] for row in rows])) is int:
            return
    except TypeError:
        pass
    for row in rows:
        for name, value in zip(("offset", "incarnation", "time"), row, strict=False):
            if type(value) is not int:
                where = f"{place}, offset {row[0]!r:.40}"
                raise LogCorruptionError(where, f"its {name} is no integer but {value!r:.40}")


def _decode_one(row: StoredEvent | tuple[int, int, int, bytes], place: str) -> SessionEvent | Opaque:
    payload: Any = row[3]
    if not isinstance(payload, bytes):  # a row that somebody edited by hand
        raise LogCorruptionError(f"{place}, offset {row[0]}", f"no bytes but {type(payload).__name__}")
    try:
        return _event_decoder.decode(payload)
    except (msgspec.MsgspecError, RecursionError) as error:
        try:
            header = _header_decoder.decode(payload)
        except (msgspec.MsgspecError, RecursionError):
            raise LogCorruptionError(f"{place}, offset {row[0]}", f"no event: {error}") from error
        if header.type in _KNOWN_TYPES:
            raise LogCorruptionError(f"{place}, offset {row[0]}", f"no event: {error}") from error
        return Opaque(header.type, header.id, header.parent_id, bytes(payload))


def encode_appended(appended: AppendedEvent) -> bytes:
    """The flat JSON of an event as the log holds it: its fields with `offset`, `incarnation` and `at` beside them.

    It is one line, however an event of a newer version is laid out.
    """
    event = appended.event
    body = b" ".join(event.raw.splitlines()) if type(event) is Opaque else _encoder.encode(event)
    where = f',"offset":{appended.offset},"incarnation":{appended.incarnation},"at":"{timestamp(appended.at_ms)}"}}'
    return body.rstrip()[:-1] + where.encode()
