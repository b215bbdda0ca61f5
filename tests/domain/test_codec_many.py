"""Events that are encoded together are what each of them is alone."""

import math
from typing import Any

import pytest

from incarnate import AssistantMessage, Opaque, ToolCall, ToolResult, UnencodableEventError, Usage, encode_event
from incarnate.domain.codec import EncodedEvent, encode_events
from incarnate.domain.events import SessionEvent


def call(args: Any) -> SessionEvent:
    return ToolCall(id="c", parent_id=None, call_id="c", name="n", args=args)


def deep(levels: int) -> Any:
    return [] if levels == 0 else [deep(levels - 1)]


OPAQUE = Opaque("later", "o", None, b'{"type":"later","id":"o","parentId":null}')
SOUND: list[SessionEvent | Opaque] = [
    AssistantMessage(id="a", parent_id=None, text="NUL \0, U+2028 \u2028, and 😀"),
    Usage(id="u", parent_id="a", input_tokens=1, output_tokens=2, scope="session"),
    call({"a": [1, 2.5, None, True, 10**40], "b": "x" * 1000}),
    ToolResult(id="r", parent_id="c", call_id="c", ok=False, result=deep(200), error="no"),
]


@pytest.mark.parametrize("more", [[], [OPAQUE], [call("x" * 5_000_000)], [encode_event(SOUND[0])]])
def test_many_events_are_encoded_as_each_of_them_is(more: list[Any]) -> None:
    alone = [encode_event(event) for event in SOUND]

    assert alone == list(encode_events([*SOUND, *more]))[: len(SOUND)]
    assert len(SOUND) + len(more) == len(encode_events([*SOUND, *more]))


@pytest.mark.parametrize("place", [0, 63, 64, 199])
@pytest.mark.parametrize(
    "odd", [OPAQUE, call("x" * 5_000_000), call(deep(250)), call("[" * 300), encode_event(SOUND[0])]
)
def test_one_that_needs_a_closer_look_changes_nothing_for_the_others(place: int, odd: Any) -> None:
    events: list[Any] = [AssistantMessage(id=f"{n}", parent_id=None, text="line\nline") for n in range(200)]
    events[place] = odd
    alone = [event if isinstance(event, EncodedEvent) else encode_event(event) for event in events]

    assert alone == list(encode_events(events))


@pytest.mark.parametrize("args", [math.nan, {"a": "\ud800"}, {1: 2}, deep(300), {"a": (1, 2)}])
def test_one_of_many_that_would_not_read_back_equal_is_refused_as_it_is_alone(args: Any) -> None:
    with pytest.raises(UnencodableEventError) as alone:
        encode_event(call(args))
    with pytest.raises(UnencodableEventError) as together:
        encode_events([*SOUND, call(args), call(math.inf)])

    assert str(alone.value) == str(together.value)


def test_what_was_encoded_is_a_copy_that_no_caller_can_change() -> None:
    args = {"list": [1]}
    [encoded] = encode_events([call(args)])
    args["list"].append(2)

    assert call({"list": [1]}) == encoded.event
