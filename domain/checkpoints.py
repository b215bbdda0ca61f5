"""Checkpoints: joins of mind and world."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from incarnate.domain.events import AppendedEvent, Count

__all__ = ["Checkpoint", "EffectEntry", "Seed"]


class EffectEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """One effect on the world outside the log: a push, a ticket, a message sent; `detail` is any JSON value."""

    id: str
    kind: str
    detail: Any = UNSET


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """The mind up to `offset` and the world at `commit_sha` after `effect_ledger` belong together (I5).

    `at` is when it was taken: ISO-8601, UTC, milliseconds.
    """

    id: str
    offset: Count
    commit_sha: str
    effect_ledger: tuple[EffectEntry, ...]
    incarnation: Count
    at: str


class Seed(msgspec.Struct, frozen=True):
    """What `restore` hands to the next incarnation.

    `checkpoint` is None where the log has none; `events` are those below it; `next_offset` is where the next event
    goes; `discards` counts the events at and above it, which the next write will supersede.
    """

    checkpoint: Checkpoint | None
    events: tuple[AppendedEvent, ...]
    next_offset: int
    discards: int
