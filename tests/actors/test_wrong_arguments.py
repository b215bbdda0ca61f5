"""An argument of a wrong type is named, and nothing is touched."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    EffectEntry,
    MalformedCommandError,
    ModelHistory,
    SessionSystem,
    UnencodableEventError,
    UserMessage,
)
from incarnate.domain.events import ToolCall

KEY = ActivationKey("a", "b")

CALLS: dict[str, tuple[Callable[[SessionSystem, Any], object], list[object]]] = {
    "emit_many.events": (
        lambda system, value: system.claim(KEY).emit_many(value),
        [UserMessage(id="e", parent_id=None, text="alone"), None, 5],
    ),
    "checkpoint.effect_ledger": (
        lambda system, value: system.claim(KEY).checkpoint("sha", value),
        [EffectEntry(id="e", kind="git-push"), None, 5],
    ),
    "restore.checkpoint_id": (lambda system, value: system.claim(KEY).restore(value), [5, b"id", ["id"]]),
    "view.projection": (lambda system, value: system.view(KEY, value), [5, None, "usage", ModelHistory]),
    "fork.at": (lambda system, value: system.fork(KEY, ActivationKey("a", "c"), value), ["latest", 2.0, True, KEY]),
    "subscribe.actor_ref": (
        lambda system, value: system.view(KEY, ModelHistory()).subscribe(value),
        [None, 5, "order-7"],
    ),
    "on_fenced.callback": (lambda system, value: system.claim(KEY).on_fenced(value), [None, 5, asyncio.sleep]),
    "sweepable.older_than": (lambda system, value: system.sweepable(value), ["30d", 30, None]),
    "sweep.older_than": (lambda system, value: system.sweep(value), ["30d", 30, None]),
}


@pytest.mark.parametrize(("named", "value"), [(named, value) for named in CALLS for value in CALLS[named][1]], ids=repr)
def test_an_argument_of_a_wrong_type_is_named(named: str, value: object, system: SessionSystem) -> None:
    with pytest.raises(MalformedCommandError, match=f"{named} must be a ") as refused:
        CALLS[named][0](system, value)

    assert isinstance(refused.value, TypeError)
    assert refused.value.hint


def test_what_a_ledger_of_somebody_elses_raises_is_his_own(system: SessionSystem) -> None:
    def effects() -> Any:
        yield EffectEntry(id="e", kind="git-push")
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        system.claim(KEY).checkpoint("sha", effects())


def test_a_value_that_cannot_be_kept_says_what_can(system: SessionSystem) -> None:
    call = ToolCall(id="e", parent_id=None, call_id="c", name="n", args={"at": object()})
    with pytest.raises(UnencodableEventError) as refused:
        system.claim(KEY).emit(call)

    assert "read back equal from JSON" in refused.value.hint
