"""What a sweep would remove, worked out from what is stored, without a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.storage.port import Swept

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import Snapshot, Store

__all__ = ["sweepable"]


def sweepable(store: Store, before_ms: int, keys: Collection[ActivationKey] | None) -> dict[ActivationKey, Swept]:
    """What `store.sweep(before_ms, keys)` would remove now of each activation, in the order of the keys."""
    found: dict[ActivationKey, Swept] = {}
    for key in _candidates(store) if keys is None else sorted(set(keys)):
        with store.snapshot(key) as log:
            swept = _of(log, before_ms)
        if swept.activations or swept.rewinds:
            found[key] = swept
    return found


def _candidates(store: Store) -> Iterable[ActivationKey]:
    """Those that were retired or rewound: in a large store few were, and each snapshot costs more than its listing."""
    return [info.key for info in store.activations() if info.head.retired or info.head.generation]


def _of(log: Snapshot, before_ms: int) -> Swept:
    retired_ms = log.retired_ms()
    whole = retired_ms is not None and retired_ms < before_ms
    rewinds = [rewind for rewind in log.rewinds() if not rewind.swept and (whole or rewind.at_ms < before_ms)]
    superseded = sum(rewind.head - rewind.cut for rewind in rewinds)
    return Swept(int(whole), len(rewinds), superseded + (log.head.next_offset if whole else 0))
