"""What the actors of one system share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.metrics import Meters
    from incarnate.actors.runtime import Runtime
    from incarnate.storage.port import Store

__all__ = ["Services"]


class Services(NamedTuple):
    """The store, the clock (milliseconds since the epoch, UTC), what actors run on, and where they count."""

    store: Store
    clock: Callable[[], int]
    runtime: Runtime
    meters: Meters
