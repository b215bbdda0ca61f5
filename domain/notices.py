"""What subscribers of an activation are told: frozen structs, past tense."""

from __future__ import annotations

import msgspec

from incarnate.domain.events import AppendedEvent
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.base import Change

__all__ = ["Appended", "FenceMoved", "Notice", "ViewChanged", "ViewReset"]


class Appended(msgspec.Struct, frozen=True):
    """`events` were appended and `head` is the head after them; `cut`, below the old head, where it was a rewind."""

    head: Head
    cut: int | None
    events: tuple[AppendedEvent, ...]


class FenceMoved(msgspec.Struct, frozen=True):
    """A newer incarnation was admitted; `head` holds it."""

    head: Head


class ViewChanged(msgspec.Struct, frozen=True):
    """The view `name` of `key` changed; sent to the actors that subscribe to the view."""

    key: ActivationKey
    name: str
    change: Change


class ViewReset(msgspec.Struct, frozen=True):
    """The view `name` of `key` begins anew: `change` keeps nothing and holds all of it.

    Sent first, and again to a subscriber that could not keep up or whose view was rebuilt.
    """

    key: ActivationKey
    name: str
    change: Change


Notice = Appended | FenceMoved
