"""The lines of a journal: what the JSONL store keeps of one activation, as bytes and back.

A line is one JSON object and its last field is `crc`, the CRC-32 of every byte of its segment before it. So one pass of
CRC-32 over any run of lines shows that nothing in it was changed, lost or put in between. The first line of a commit of
more than one says in `lines` how many there are: a commit of which one is missing never was. `docs/storage.md` tells
what each field means.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.codec import StoredEvent, decode_stored, encode_json
from incarnate.domain.errors import LogCorruptionError
from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent
from incarnate.domain.heads import Head
from incarnate.domain.rewinds import Rewind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from incarnate.domain.decisions import Change
    from incarnate.domain.keys import ActivationKey

__all__ = [
    "FORMAT",
    "STORE_MARK",
    "SUFFIX_BYTES",
    "FinalState",
    "Line",
    "bare_body",
    "bodies_of",
    "checkpoint_payload",
    "crc_after",
    "event_start",
    "fork_body",
    "gap_body",
    "header_body",
    "holds_record",
    "is_chained",
    "lone_event",
    "next_body",
    "parse",
    "read_events",
    "rows_of",
    "seal",
    "seal_each",
    "state_body",
    "stated_crc",
    "store_version",
    "swept_body",
]

FORMAT = 1
"""The version of the journal's format, in the first line of each segment."""

SUFFIX_BYTES = len(b',"crc":"00000000"}\n')
_CRC = slice(-11, -3)
_START = re.compile(rb'\{"(?:offset|fence|nextTurn|rewind|at|retired|fork|swept|state|gap|next|journal)":')
_MOST_STARTS = 1000
_COUNT = re.compile(rb',"lines":[0-9]+\Z')


class FinalState(msgspec.Struct, frozen=True, rename="camel"):
    """All that is kept of an activation whose events were swept."""

    fence: int | None
    generation: int
    next_turn: int
    retired: int
    rewinds: tuple[Rewind, ...]


class Name(msgspec.Struct, frozen=True, gc=False):
    """What must be known of a checkpoint to find it again."""

    id: str
    offset: int


class Line(msgspec.Struct, gc=False, rename="camel"):
    """One line of a journal; which fields it has tells its kind."""

    crc: str
    lines: int = 1
    offset: int = -1
    incarnation: int = 0
    at: int = 0
    event: msgspec.Raw | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    gap: int = 0
    fence: int | None = None
    next_turn: int | None = None
    rewind: int | None = None
    cut: int = 0
    head: int = 0
    checkpoint: Name | None = None
    retired: bool = False
    fork: str | None = None
    swept: tuple[int, ...] = ()
    state: FinalState | None = None
    next: int | None = None
    journal: int | None = None
    key: str = ""
    segment: int = 0
    id: str = ""
    begins: bool = False
    created: int = 0

    @property
    def payload(self) -> bytes | None:
        """The event's own bytes; None where the line holds no event."""
        if not isinstance(self.event, UnsetType):
            return bytes(self.event)
        return None if isinstance(self.base64, UnsetType) else base64.b64decode(self.base64)


class _Event(msgspec.Struct, gc=False):
    """The fields of a line that a replay needs."""

    offset: int = -1
    incarnation: int = 0
    at: int = 0
    event: SessionEvent | UnsetType = UNSET
    base64: str | UnsetType = UNSET


class _Checkpoint(msgspec.Struct, gc=False):
    """The field of a checkpoint's line that matters."""

    checkpoint: msgspec.Raw


_checkpoint_decoder = msgspec.json.Decoder(_Checkpoint)
_lines_decoder = msgspec.json.Decoder(list[Line])
_events_decoder = msgspec.json.Decoder(list[_Event])


# Writing: a body is a line without its end.


def bodies_of(change: Change, head: Head, now_ms: int) -> list[bytes]:
    """The lines of `change` on a log at `head`."""
    bodies: list[bytes] = []
    if change.fence is not None:
        bodies.append(b'{"fence":%d,"at":%d' % (change.fence, now_ms))
    if change.next_turn is not None:
        bodies.append(b'{"nextTurn":%d,"at":%d' % (change.next_turn, now_ms))
    if change.cut is not None:
        bodies.append(
            b'{"rewind":%d,"cut":%d,"head":%d,"incarnation":%d,"at":%d'
            % (head.generation + 1, change.cut, head.next_offset, change.incarnation, change.at_ms)
        )
    for offset, encoded in enumerate(change.events, change.offset):
        payload = encoded.payload
        form, text = b"event", payload
        if b"\n" in payload or (type(encoded.event) is Opaque and not _may_stand(payload)):
            form, text = b"base64", b'"%b"' % base64.b64encode(payload)
        where = (offset, change.incarnation, change.at_ms, form, text)
        bodies.append(b'{"offset":%d,"incarnation":%d,"at":%d,"%b":%b' % where)
    if change.checkpoint is not None:
        bodies.append(b'{"at":%d,"checkpoint":%b' % (now_ms, change.checkpoint.payload))
    if change.retired:
        bodies.append(b'{"retired":true,"at":%d' % change.at_ms)
    return bodies


def lone_event(change: Change, crc: int) -> tuple[bytes, int] | None:
    """The line of a change that is one event and nothing else, and the CRC behind it; None for any other change.

    It is what `seal` makes of what `bodies_of` gives, in half the time: an emit is one.
    """
    if (
        len(change.events) != 1
        or change.fence is not None
        or change.cut is not None
        or change.next_turn is not None
        or change.checkpoint is not None
        or change.retired
    ):
        return None
    encoded = change.events[0]
    payload = encoded.payload
    if type(encoded.event) is Opaque or b"\n" in payload:
        return None
    where = (change.offset, change.incarnation, change.at_ms, payload)
    body = b'{"offset":%d,"incarnation":%d,"at":%d,"event":%b' % where
    stated = zlib.crc32(body, crc)
    suffix = b',"crc":"%08x"}\n' % stated
    return body + suffix, zlib.crc32(suffix, stated)


def _may_stand(payload: bytes) -> bool:
    """Whether bytes that others wrote come back from a line as they are, and leave it JSON for every reader."""
    try:
        payload.decode()  # msgspec skips what it does not need, without a look at its encoding
    except UnicodeDecodeError:
        return False
    return payload.startswith(b"{") and payload.endswith(b"}")


def header_body(key: ActivationKey, segment: int, identity: str, created_ms: int, *, begins: bool) -> bytes:
    """The first line of a segment; `begins` where no older one counts."""
    return _open(
        {
            "journal": FORMAT,
            "key": str(key),
            "segment": segment,
            "id": identity,
            "begins": begins,
            "created": created_ms,
        }
    )


def next_body(segment: int) -> bytes:
    """The last line of a segment."""
    return b'{"next":%d' % segment


def fork_body(source: ActivationKey, head: Head, now_ms: int) -> bytes:
    """Where an activation came from, and what it took over besides events and checkpoints."""
    return _open({"fork": str(source), "fence": head.fence, "nextTurn": head.next_turn, "at": now_ms})


def swept_body(generations: Sequence[int]) -> bytes:
    """The rewinds whose superseded events are gone."""
    return _open({"swept": generations})


def state_body(state: FinalState) -> bytes:
    """The only line of an activation that was swept whole."""
    return _open({"state": state})


def gap_body(offset: int, count: int) -> bytes:
    """In place of `count` events from `offset` on, which were swept."""
    return b'{"gap":%d,"offset":%d' % (count, offset)


def event_start(offset: int) -> bytes:
    """How the line of the event at `offset` begins, with the end of the line before it."""
    return b'\n{"offset":%d,' % offset


def _open(fields: dict[str, Any]) -> bytes:
    return encode_json(fields)[:-1]


def bare_body(line: bytes) -> bytes:
    """The body of a line, its end cut off."""
    return _COUNT.sub(b"", line[:-SUFFIX_BYTES])


def seal(bodies: Sequence[bytes], crc: int) -> tuple[bytes, int]:
    """The lines of one commit behind a segment whose CRC is `crc`, and the CRC behind them."""
    parts: list[bytes] = []
    if len(bodies) > 1:
        bodies = (b'%b,"lines":%d' % (bodies[0], len(bodies)), *bodies[1:])
    for body in bodies:
        stated = zlib.crc32(body, crc)
        suffix = b',"crc":"%08x"}\n' % stated
        crc = zlib.crc32(suffix, stated)
        parts.append(body)
        parts.append(suffix)
    return b"".join(parts), crc


def seal_each(bodies: Iterable[bytes], crc: int) -> Iterator[bytes]:
    """Lines of which each is a commit, one by one, behind a segment whose CRC is `crc`."""
    for body in bodies:
        line, crc = seal((body,), crc)
        yield line


# Reading


def stated_crc(lines: bytes) -> int | None:
    """What the last of `lines` says to be the CRC of all before; None where it says nothing."""
    try:
        return int.from_bytes(binascii.unhexlify(lines[_CRC]))
    except binascii.Error:
        return None


def crc_after(suffix: bytes) -> int | None:
    """The CRC of a segment up to and with the line that ends in `suffix`, as that line states it."""
    stated = stated_crc(suffix)
    return None if stated is None or len(suffix) != SUFFIX_BYTES else zlib.crc32(suffix, stated)


def is_chained(lines: bytes, crc: int) -> bool:
    """Whether whole `lines` follow, unchanged, behind a segment whose CRC is `crc`."""
    stated = stated_crc(lines)
    return stated is not None and zlib.crc32(memoryview(lines)[:-SUFFIX_BYTES], crc) == stated


def parse(lines: bytes) -> list[Line] | None:
    """Whole lines, one by one; None where one of them is no line of a journal."""
    try:
        found = _lines_decoder.decode(_as_array(lines))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return found if len(found) == lines.count(b"\n") else None


def holds_record(line: bytes) -> bool:
    """Whether a line is a record, or ends in one: then a line end was lost, and no torn write left it."""
    if parse(line) is not None:
        return True
    starts = islice(_START.finditer(line), _MOST_STARTS)
    return any(parse(line[found.start() :]) is not None for found in starts)


def _as_array(lines: bytes) -> bytes:
    return b"[%b]" % lines[:-1].replace(b"\n", b",")


def rows_of(lines: bytes, place: str) -> list[StoredEvent]:
    """The events among whole lines, as their own bytes.

    Raises:
        LogCorruptionError: with `place`, where a line is none.
    """
    return [
        StoredEvent(line.offset, line.incarnation, line.at, payload)
        for line in _parsed(lines, place)
        if (payload := line.payload) is not None
    ]


def _parsed(lines: bytes, place: str) -> list[Line]:
    found = parse(lines)
    if found is None:
        raise LogCorruptionError(place, "a line that is no record of a journal")
    return found


def checkpoint_payload(line: bytes) -> bytes:
    """The checkpoint's own bytes; none where the line holds none."""
    try:
        return bytes(_checkpoint_decoder.decode(line).checkpoint)
    except (msgspec.MsgspecError, RecursionError):
        return b""


def read_events(lines: bytes, place: str) -> list[AppendedEvent]:
    """The events among whole lines, decoded.

    All lines are decoded as one JSON array, which costs a third more than the bare events would.

    Raises:
        LogCorruptionError: with `place`, where a line is none, or its event is none.
    """
    try:
        found = _events_decoder.decode(_as_array(lines))
    except (msgspec.MsgspecError, RecursionError):
        return decode_stored(rows_of(lines, place), place)  # an unknown type, or damage
    events: list[AppendedEvent] = []
    for line in found:
        event = line.event
        if not isinstance(event, UnsetType):
            events.append(AppendedEvent(line.offset, line.incarnation, line.at, event))
        elif not isinstance(line.base64, UnsetType):
            return decode_stored(rows_of(lines, place), place)
    return events


# The store's folder

STORE_MARK = encode_json({"store": "incarnate-jsonl", "version": 1}) + b"\n"
"""What the file holds that marks a folder as a store."""


class _Mark(msgspec.Struct):
    store: Literal["incarnate-jsonl"]
    version: int


_mark_decoder = msgspec.json.Decoder(_Mark)


def store_version(data: bytes) -> int | None:
    """The version of the store that `data` marks; None where it marks none."""
    try:
        return _mark_decoder.decode(data).version
    except (msgspec.MsgspecError, RecursionError):
        return None
