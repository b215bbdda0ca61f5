"""Values with shared parts: their JSON may be larger than any memory, and is measured before it is made."""

import time
from typing import Any

import pytest

from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.codec import encode_checkpoint, encode_event
from incarnate.domain.encoding import first_violation, least_bytes
from incarnate.domain.errors import UnencodableEventError
from incarnate.domain.events import ToolCall, ToolResult


def call(args: Any) -> ToolCall:
    return ToolCall(id="a", parent_id=None, call_id="c", name="n", args=args)


def doubled(levels: int, bottom: Any) -> Any:
    for _ in range(levels):
        bottom = [bottom, bottom]
    return bottom


def holding_itself() -> Any:
    text, held = "x" * 1_000_000, [""]
    held += [text, held, held]  # type: ignore[list-item]
    return held


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (doubled(30, 1), "over 67108864 bytes encoded"),
        (doubled(64, {"a": "b"}), "over 67108864 bytes encoded"),
        ({"texts": ["x" * 60_000_000] * 1000}, "over 67108864 bytes encoded"),
        ([10**4000] * 100_000, "over 67108864 bytes encoded"),
        (doubled(300, 1), "nested deeper than 256 levels"),
        (holding_itself(), "nested deeper than 256 levels"),
    ],
    ids=["doubled", "doubled twice as deep", "texts", "integers", "too deep", "itself"],
)
def test_what_would_not_fit_is_refused_with_its_path_before_it_is_made(args: Any, reason: str) -> None:
    began = time.thread_time()
    for event, path in (
        (call(args), "$.args"),
        (ToolResult(id="a", parent_id=None, call_id="c", ok=True, result=args), "$.result"),
    ):
        with pytest.raises(UnencodableEventError, match=reason) as told:
            encode_event(event)
        assert told.value.path.startswith(path)
    assert time.thread_time() - began < 5


def test_a_ledger_that_would_not_fit_is_refused_with_its_path() -> None:
    ledger = (EffectEntry(id="x", kind="k", detail=doubled(30, 1)),)
    with pytest.raises(UnencodableEventError, match="over 67108864 bytes") as told:
        encode_checkpoint(Checkpoint(id="c", offset=0, commit_sha="s", effect_ledger=ledger, incarnation=1, at="t"))
    assert told.value.path == "$.effectLedger"


def test_shared_parts_that_fit_are_accepted_and_read_back_equal() -> None:
    args = doubled(8, {"a": [1, "b", None]})

    assert args == encode_event(call(args)).event.args  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [None, "", "héllo", 1, -(10**30), 1.5, True, [], {}, [1, [2, {"k": "v"}]], {"a": {}}])
def test_the_least_is_never_more_than_the_json_takes(value: Any) -> None:
    payload = encode_event(call(value)).payload

    assert least_bytes(value) <= len(payload) - len(encode_event(call(None)).payload) + len("null")


def test_a_violation_behind_shared_parts_is_found_without_walking_each_of_their_paths() -> None:
    shared = doubled(200, 1)

    assert first_violation({"a": shared, "b": {"c": (1,)}}) == ("$.b.c", "tuple is no JSON value")
