"""A store that is written to, and must be there before: only `ingest` and `copy` make one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.cli.options import known_head, open_system

if TYPE_CHECKING:
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.keys import ActivationKey

__all__ = ["open_existing"]


def open_existing(store: str | None, key: ActivationKey | None = None) -> SessionSystem:
    """The system over `store`, to be written to; it must be there already, and hold `key`."""
    with open_system(store) as system:
        if key is not None:
            known_head(system, key)
    return open_system(store, read_only=False)
