"""Lines of a file as session events: the rows of a transcript, or canonical events.

Both name their events for good: a second reading of the file gives the same events, so that a log tells how far an
import has come.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import msgspec

from incarnate.domain.codec import decode_stored, encode_json
from incarnate.domain.errors import EventShapeError, LogCorruptionError
from incarnate.domain.events import Opaque, SessionEvent
from incarnate.domain.transcripts.rows import decode_row
from incarnate.domain.transcripts.translation import to_event

__all__ = ["ImportFormat", "guess_format", "imported_event"]

ImportFormat = Literal["transcript", "canonical"]

_PLACE = re.compile(rb',"offset":[0-9]+,"incarnation":[0-9]+,"at":"[^"\\]*"\}\s*\Z')
_PLACE_FIELDS = frozenset({"offset", "incarnation", "at"})

_any_decoder = msgspec.json.Decoder(dict[str, object])


def imported_event(line: bytes, number: int, form: ImportFormat, parent_id: str | None) -> SessionEvent | Opaque:
    """The event of line `number`.

    An event of a transcript follows `parent_id` and is named after its line and a short hash of it; a canonical one
    has its own names, and loses the place that it had in another log. One of an unknown type is kept.

    Raises:
        EventShapeError: it is no row, or no event.
    """
    if form == "transcript":
        digest = hashlib.blake2b(line, digest_size=6).hexdigest()
        return to_event(decode_row(line), f"{number}-{digest}", parent_id)
    event = _canonical(line)
    return _unplaced(event) if isinstance(event, Opaque) else event


def guess_format(line: bytes) -> ImportFormat:
    """The format of a file that begins with `line`. No line is both: their types have different names.

    Raises:
        EventShapeError: it is neither.
    """
    try:
        decode_row(line)
    except EventShapeError:
        _canonical(line)
        return "canonical"
    return "transcript"


def _canonical(line: bytes) -> SessionEvent | Opaque:
    try:
        [appended] = decode_stored(((0, 0, 0, line),), "a line")
    except LogCorruptionError as error:
        raise EventShapeError(error.reason) from error
    except ValueError as error:
        raise EventShapeError(f"no event: {error}") from error
    return appended.event


def _unplaced(event: Opaque) -> Opaque:
    """An event of an unknown type without the place that `encode_appended` wrote behind its fields."""
    raw, places = _PLACE.subn(b"}", event.raw)
    if not places:
        fields = _any_decoder.decode(event.raw)
        if not fields.keys() >= _PLACE_FIELDS:
            return event
        raw = encode_json({name: value for name, value in fields.items() if name not in _PLACE_FIELDS})
    return Opaque(event.type, event.id, event.parent_id, raw)
