"""The checkpoints of a supervised log."""

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.events import ToolCall, ToolResult
from incarnate.domain.keys import ActivationKey
from incarnate.supervision import boundaries
from incarnate.supervision.boundaries import SupervisedBoundaries
from incarnate.supervision.mind import Mind
from incarnate.supervision.world import NoWorld


def test_a_turn_of_any_length_has_a_ledger_of_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "_MOST_EFFECTS", 3)
    key = ActivationKey("supervised", "run")
    with SessionSystem.open("memory://") as system:
        session = system.claim(key)
        followed = SupervisedBoundaries(
            system, key, "codex", Mind(), world=NoWorld(), every="turn", argv=("codex",), clock=lambda: 0
        )
        for number in range(5):
            call = ToolCall(id=f"c{number}", parent_id=None, call_id=f"call{number}", name="shell", args={})
            result = ToolResult(id=f"r{number}", parent_id=None, call_id=f"call{number}", ok=True, result="")
            followed.follow(1, session.emit_many([call, result]), None)
        followed.put(1, session.next_offset, None)

        newest = followed.newest()

    assert newest is not None
    assert ["harness-command", "tool", "tool", "tool", "tools"] == [effect.kind for effect in newest.effect_ledger]
    assert {"count": 2} == newest.effect_ledger[-1].detail
