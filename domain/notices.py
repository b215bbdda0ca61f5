"""What subscribers of an activation are told: frozen structs, past tense."""

from __future__ import annotations

import msgspec

from incarnate.domain.events import AppendedEvent
from incarnate.domain.heads import Head

__all__ = ["Appended", "FenceMoved", "Notice"]


class Appended(msgspec.Struct, frozen=True):
    """`events` were appended and `head` is the head after them; `cut`, below the old head, where it was a rewind."""

    head: Head
    cut: int | None
    events: tuple[AppendedEvent, ...]


class FenceMoved(msgspec.Struct, frozen=True):
    """A newer incarnation was admitted; `head` holds it."""

    head: Head


Notice = Appended | FenceMoved
