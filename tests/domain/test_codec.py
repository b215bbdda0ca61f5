"""The codec: the reference's JSON exactly, and the encoding contract (I9)."""

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate import (
    AppendedEvent,
    AssistantMessage,
    Checkpoint,
    EffectEntry,
    EventShapeError,
    FailedOutcome,
    LogCorruptionError,
    Opaque,
    Reasoning,
    ToolCall,
    TurnEnd,
    TurnError,
    TurnStart,
    UnencodableEventError,
    Usage,
    decode_event,
    encode_appended,
    encode_event,
)
from incarnate.domain.codec import StoredEvent, decode_checkpoint, decode_stored, encode_checkpoint
from incarnate.domain.events import timestamp

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


def call(args: Any) -> ToolCall:
    return ToolCall(id="e", parent_id=None, call_id="c", name="n", args=args)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_reference_events_decode_and_encode_as_recorded() -> None:
    for line in (VECTORS / "events.jsonl").read_bytes().split(b"\n")[:-1]:
        case = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        if "error" in case:
            with pytest.raises(EventShapeError):
                decode_event(bytes(case["input"]))
        else:
            written = encode_event(decode_event(bytes(case["input"]))).payload

            assert json.loads(bytes(case["event"])) == json.loads(written)


@given(json_values)
def test_i9_any_json_within_the_contract_reads_back_equal(value: Any) -> None:
    encoded = encode_event(call(value))

    assert call(value) == encoded.event == decode_event(encoded.payload)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (math.nan, "$.args", "nan is no JSON number"),
        ([0, {"a": math.inf}], "$.args[1].a", "inf is no JSON number"),
        ({"k": "x\ud800"}, "$.args.k", "'x\\ud800' holds a lone surrogate"),
        ({"\udfff": 1}, "$.args", "'\\udfff' holds a lone surrogate"),
        ({1: 2}, "$.args", "the key 1 is no string"),
        ((1, 2), "$.args", "tuple is no JSON value"),
        ([b"x"], "$.args[0]", "bytes is no JSON value"),
        (nested(257), "$.args" + "[0]" * 256, "nested deeper than 256 levels"),
        (10**4300, "$.args", "an integer of more than 4,300 digits"),
    ],
    ids=["nan", "infinity", "surrogate", "surrogate key", "integer key", "tuple", "bytes", "depth", "digits"],
)
def test_i9_a_value_outside_the_contract_is_refused_with_its_path(value: Any, path: str, reason: str) -> None:
    with pytest.raises(UnencodableEventError) as refused:
        encode_event(call(value))

    assert (path, reason) == (refused.value.path, refused.value.reason)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(UnencodableEventError, match="deeper than 256"):
        encode_event(call(value))


def test_256_levels_and_4299_digits_are_accepted() -> None:
    value = [nested(255), 10**4299]

    assert value == json.loads(encode_event(call(value)).payload)["args"]


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (AssistantMessage(id=5, parent_id=None, text="x"), "$.id"),  # type: ignore[arg-type]
        (AssistantMessage(id="e", parent_id=None, text="\ud800"), "$.text"),
        (TurnStart(id="e", parent_id=None, turn=-1), "$.turn"),
        (TurnStart(id="e", parent_id=None, turn=2**53), "$.turn"),
        (Usage(id="e", parent_id=None, input_tokens=True, output_tokens=1), "$.inputTokens"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(event: Any, path: str) -> None:
    with pytest.raises(UnencodableEventError) as refused:
        encode_event(event)

    assert path == refused.value.path


@pytest.mark.parametrize("stranger", [None, "text", 5, {"type": "user"}, EffectEntry(id="x", kind="y")])
def test_what_is_no_event_is_refused(stranger: Any) -> None:
    with pytest.raises(UnencodableEventError):
        encode_event(stranger)


def test_an_event_over_the_limit_is_refused() -> None:
    with pytest.raises(UnencodableEventError, match="at most 100 are allowed"):
        encode_event(AssistantMessage(id="e", parent_id=None, text="x" * 100), max_bytes=100)


def test_what_a_caller_mutates_later_changes_nothing() -> None:
    args = {"path": "a"}
    encoded = encode_event(call(args))
    args["path"] = "b"

    assert call({"path": "a"}) == encoded.event


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b'{"type":"user","id":"a', b"[" * 5000, b'{"type":"future","id":"a"}']
)
def test_the_public_codec_refuses_what_is_no_event(data: bytes) -> None:
    with pytest.raises(EventShapeError):
        decode_event(data)


def test_optional_fields_are_left_out_when_unset_and_kept_when_set() -> None:
    bare = Reasoning(id="e", parent_id=None)
    full = Reasoning(id="e", parent_id=None, parent_call_id="c", occurred_at="t", text="", provider_continuation="S")

    assert {"type": "reasoning", "id": "e", "parentId": None} == json.loads(encode_event(bare).payload)
    assert full == decode_event(encode_event(full).payload)


@pytest.mark.parametrize(
    "outcome", ["completed", "cancelled", "step_limit", "interrupted", FailedOutcome(TurnError("api", "529"))]
)
def test_every_outcome_of_a_turn_reads_back(outcome: Any) -> None:
    event = TurnEnd(id="e", parent_id=None, turn=1, outcome=outcome, label="turn-1")

    assert event == decode_event(encode_event(event).payload)


def test_an_appended_event_is_flat_on_the_wire() -> None:
    appended = AppendedEvent(7, 2, 0, AssistantMessage(id="e", parent_id=None, text="hi"))

    assert {
        "type": "assistant",
        "id": "e",
        "parentId": None,
        "text": "hi",
        "offset": 7,
        "incarnation": 2,
        "at": "1970-01-01T00:00:00.000Z",
    } == json.loads(encode_appended(appended))


def test_times_are_iso_8601_in_utc_with_milliseconds() -> None:
    assert timestamp(1_796_070_124_007) == "2026-11-30T20:22:04.007Z"
    assert timestamp(-1) == "1969-12-31T23:59:59.999Z"


def test_a_stored_event_of_an_unknown_type_is_kept_byte_for_byte_between_known_ones() -> None:
    raw = b'{ "type":"hologram","id":"h","parentId":null,"beams":[1, 2]}'
    known = encode_event(call(None))
    first, opaque, last = decode_stored(
        [StoredEvent(0, 1, 0, known.payload), StoredEvent(1, 1, 0, raw), StoredEvent(2, 1, 0, known.payload)], "here"
    )

    assert (known.event, known.event) == (first.event, last.event)
    assert Opaque("hologram", "h", None, raw) == opaque.event
    assert raw == encode_event(opaque.event).payload
    assert {"beams": [1, 2], "offset": 1}.items() <= json.loads(encode_appended(opaque)).items()


@pytest.mark.parametrize(
    "payload", [b"", b"x", b"[]", b'{"type":"user","id":"a","parentId":null}', b'{"id":"a"}', b"{},{}"]
)
def test_a_damaged_row_is_told_with_its_place(payload: bytes) -> None:
    good = encode_event(call(None)).payload

    with pytest.raises(LogCorruptionError) as told:
        decode_stored([StoredEvent(3, 1, 0, good), StoredEvent(4, 1, 0, payload)], "file.db, a/b")

    assert told.value.place == "file.db, a/b, offset 4"


@pytest.mark.parametrize(
    "opaque",
    [
        Opaque("user", "a", None, b'{"type":"user","id":"a","parentId":null,"text":"x"}'),
        Opaque("x", "other", None, b'{"type":"x","id":"a","parentId":null}'),
        Opaque("x", "a", None, b"no json"),
    ],
)
def test_an_opaque_event_must_be_what_it_says(opaque: Opaque) -> None:
    with pytest.raises(UnencodableEventError):
        encode_event(opaque)


@pytest.mark.parametrize("value", ["text", None, {"type": "user", "id": "e", "parentId": None, "text": "a"}, 5])
def test_what_is_no_event_is_told_what_an_event_is(value: Any) -> None:
    with pytest.raises(UnencodableEventError) as refused:
        encode_event(value)

    assert f"emit takes a SessionEvent such as AssistantMessage, not {type(value).__name__}" == str(refused.value)
    assert "make an event of it, such as UserMessage(id=..., parent_id=..., text=...)" == refused.value.hint


def test_what_is_wrong_with_an_event_as_a_whole_is_told_without_a_place_in_it() -> None:
    with pytest.raises(UnencodableEventError) as refused:
        encode_event(AssistantMessage(id="e", parent_id=None, text="x" * 200), max_bytes=100)

    assert str(refused.value).endswith("at most 100 are allowed")
    assert "that path" not in refused.value.hint


def test_a_checkpoint_reads_back_equal() -> None:
    checkpoint = Checkpoint(
        id="cp", offset=3, commit_sha="sha", effect_ledger=(EffectEntry(id="x", kind="push", detail={"n": [1]}),),
        incarnation=1, at="1970-01-01T00:00:00.000Z",
    )  # fmt: skip

    assert checkpoint == decode_checkpoint(encode_checkpoint(checkpoint).payload, "here")


def test_a_checkpoint_detail_outside_the_contract_is_refused_with_its_path() -> None:
    checkpoint = Checkpoint(
        id="cp", offset=3, commit_sha="sha", effect_ledger=(EffectEntry(id="x", kind="push", detail=math.nan),),
        incarnation=1, at="1970-01-01T00:00:00.000Z",
    )  # fmt: skip

    with pytest.raises(UnencodableEventError) as refused:
        encode_checkpoint(checkpoint)

    assert refused.value.path == "$.effectLedger[0].detail"


def test_a_damaged_checkpoint_is_told_with_its_place() -> None:
    with pytest.raises(LogCorruptionError, match="here"):
        decode_checkpoint(b"{}", "here")
