"""A key that is none is refused before anything is asked of the store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incarnate import ActivationKey, KeyFormatError, SessionSystem
from incarnate.domain.projections.usage import UsageTotals

CALLS: dict[str, Callable[[SessionSystem, Any], object]] = {
    "claim": lambda system, key: system.claim(key),
    "lease": lambda system, key: system.lease(key, 1),
    "activation": lambda system, key: system.activation(key),
    "retire": lambda system, key: system.retire(key),
    "replay": lambda system, key: system.replay(key),
    "checkpoints": lambda system, key: system.checkpoints(key),
    "rewinds": lambda system, key: system.rewinds(key),
    "replay_superseded": lambda system, key: system.replay_superseded(key, 1),
    "view": lambda system, key: system.view(key, UsageTotals()),
    "fork": lambda system, key: system.fork(key, ActivationKey("a", "b"), 0),
    "fork onto": lambda system, key: system.fork(ActivationKey("a", "b"), key, 0),
    "mirror": lambda system, key: system.mirror(key, "nowhere"),
}


@pytest.mark.parametrize("key", ["a/b", None, ("a", "b")])
@pytest.mark.parametrize("call", CALLS)
def test_a_key_that_is_none_is_refused_at_once_on_every_store(call: str, key: object, system: SessionSystem) -> None:
    with pytest.raises(KeyFormatError, match="an ActivationKey names an activation, not the ") as refused:
        CALLS[call](system, key)

    assert 'use ActivationKey.parse("a/b") or ActivationKey(process_instance_key, element_id)' == refused.value.hint
    assert [] == list(system.activations())


def test_a_closed_system_says_so_first(tmp_path: Path) -> None:
    system = SessionSystem.open(f"sqlite:///{tmp_path}/sessions.db")
    system.close()

    for call in CALLS.values():
        with pytest.raises(Exception, match="closed"):
            call(system, "a/b")
