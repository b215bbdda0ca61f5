"""Items of the OpenAI Agents SDK: what they mean as events, and that they come back as they were."""

import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from incarnate.bridges.openai_items import is_item, rewound, to_event, to_item
from incarnate.domain.codec import decode_stored, encode_event
from incarnate.domain.errors import UnencodableEventError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnStart,
    Usage,
    UserMessage,
)

SAID = {
    "id": "msg_1",
    "content": [{"annotations": [], "text": "on it", "type": "output_text", "logprobs": []}],
    "role": "assistant",
    "status": "completed",
    "type": "message",
}
CALLED = {
    "arguments": '{"path": "a b"}',
    "call_id": "c1",
    "name": "read",
    "type": "function_call",
    "id": "fc_1",
    "status": "completed",
}
THOUGHT = {
    "id": "rs_1",
    "summary": [{"text": "first", "type": "summary_text"}, {"text": "then", "type": "summary_text"}],
    "type": "reasoning",
    "encrypted_content": "gAAA=",
}
SHELL = {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}, "status": "completed"}
IMAGE = {
    "role": "user",
    "content": [{"type": "input_text", "text": "what is"}, {"type": "input_image", "image_url": "x"}],
}
PARTS = [{"type": "input_text", "text": "found"}]

MEANINGS: list[tuple[dict[str, Any], type, dict[str, Any]]] = [
    ({"content": "hello", "role": "user"}, UserMessage, {"text": "hello"}),
    (IMAGE, UserMessage, {"text": "what is\n[input_image]"}),
    ({"content": "be brief", "role": "developer"}, SystemMessage, {"text": "be brief"}),
    ({"type": "message", "role": "system", "content": "be brief"}, SystemMessage, {"text": "be brief"}),
    (SAID, AssistantMessage, {"text": "on it"}),
    ({**SAID, "content": [{"type": "refusal", "refusal": "no"}]}, AssistantMessage, {"text": "no"}),
    (THOUGHT, Reasoning, {"text": "first\nthen", "provider_continuation": "gAAA="}),
    ({**THOUGHT, "content": [{"type": "reasoning_text", "text": "all of it"}]}, Reasoning, {"text": "all of it"}),
    ({"type": "reasoning", "id": "rs_1", "summary": []}, Reasoning, {"text": UNSET, "provider_continuation": UNSET}),
    (CALLED, ToolCall, {"call_id": "c1", "name": "read", "args": {"path": "a b"}}),
    ({**CALLED, "arguments": '{"path": "a'}, ToolCall, {"args": '{"path": "a'}),
    (
        {"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": "ls"},
        ToolCall,
        {"name": "sh", "args": "ls"},
    ),
    (SHELL, ToolCall, {"call_id": "c2", "name": "shell", "args": {"action": {"commands": ["ls"]}}}),
    ({"call_id": "c1", "output": "3", "type": "function_call_output"}, ToolResult, {"call_id": "c1", "result": "3"}),
    ({"call_id": "c1", "output": PARTS, "type": "function_call_output"}, ToolResult, {"result": PARTS}),
    ({"call_id": "c2", "output": [], "type": "shell_call_output"}, ToolResult, {"call_id": "c2", "result": []}),
]

WITHOUT_MEANING: list[Any] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "item_reference", "id": "msg_1"},
    {"type": "function_call", "call_id": None, "name": "read", "arguments": "{}"},
    {"role": "user", "content": [7]},
    {"role": "user", "content": None},
    {"role": "critic", "content": "no"},
    {},
    None,
    "a bare text",
]


def stored(item: object) -> Any:
    """The event of an item as it comes back from a store."""
    payload = encode_event(to_event(item, "e1", "e0")).payload
    [appended] = decode_stored([(0, 1, 0, payload)], "test")
    return appended.event


@pytest.mark.parametrize(("item", "kind", "fields"), MEANINGS)
def test_an_item_is_the_event_that_means_the_same(item: object, kind: type[Any], fields: dict[str, Any]) -> None:
    event = stored(item)

    assert type(event) is kind
    assert ("e1", "e0") == (event.id, event.parent_id)
    assert fields == {name: getattr(event, name) for name in fields}


@pytest.mark.parametrize("item", [*(item for item, _, _ in MEANINGS), *WITHOUT_MEANING])
def test_an_item_comes_back_byte_for_byte(item: object) -> None:
    event = stored(item)

    assert is_item(event)
    assert json.dumps(item) == json.dumps(to_item(event))


@pytest.mark.parametrize("item", WITHOUT_MEANING)
def test_an_item_without_a_meaning_is_kept_as_an_unknown_event(item: object) -> None:
    event = stored(item)

    assert isinstance(event, Opaque)
    assert "openai-agents.item" == event.type


@pytest.mark.parametrize(
    "item",
    [
        {"content": "hello", "role": "user"},
        {"call_id": "c1", "output": "x" * 100, "type": "function_call_output"},
        {"call_id": "c1", "output": PARTS, "type": "function_call_output"},
        {"arguments": '{"a":1}', "call_id": "c1", "name": "add", "type": "function_call"},
    ],
)
def test_what_the_event_says_in_full_is_kept_once(item: dict[str, Any]) -> None:
    assert UNSET is stored(item).native


def test_the_order_of_the_fields_is_part_of_the_item() -> None:
    event = stored({"role": "user", "content": "hello"})

    assert ["role", "content"] == list(to_item(event))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TYPES = ["message", "function_call", "function_call_output", "reasoning", "computer_call", "web_search_call", None]
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES),
        "role": st.sampled_from(["user", "assistant", "system", "developer", None]),
        "content": VALUES,
        "call_id": st.text() | st.none(),
        "name": st.text(),
        "arguments": st.text() | VALUES.map(json.dumps),
        "output": VALUES,
        "summary": VALUES,
        "encrypted_content": VALUES,
        "id": VALUES,
    },
)


@given(ITEMS | VALUES)
def test_whatever_is_json_comes_back_byte_for_byte(item: object) -> None:
    assert json.dumps(item) == json.dumps(to_item(stored(item)))


DEEP: list[Any] = functools.reduce(lambda inner, _: [inner], range(300), [])


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({"role": "user", "content": "\ud800"}, "$.content"),
        ({"role": "user", "content": [{"type": "input_text", "text": "\ud800"}]}, "$.content[0].text"),
        ({**SAID, "status": float("nan")}, "$.status"),
        ({"call_id": "c1", "output": ("a",), "type": "function_call_output"}, "$.output"),
        ({"type": "web_search_call", "action": {"at": float("inf")}}, "$.action.at"),
        ({"role": "user", "content": "hello", 7: 8}, "$"),
        (b"bytes", "$"),
        ({"role": "user", "content": DEEP}, "$.content" + "[0]" * 255),
    ],
)
def test_a_value_outside_the_contract_is_refused_with_its_path(item: object, path: str) -> None:
    with pytest.raises(UnencodableEventError) as refused:
        to_event(item, "e1", None)

    assert path == refused.value.path


def test_arguments_that_no_event_may_hold_stay_the_text_that_the_model_wrote() -> None:
    deep = "[" * 300 + "]" * 300

    assert deep == stored({**CALLED, "arguments": deep}).args


def test_what_others_wrote_is_given_in_the_words_of_the_sdk() -> None:
    events = [
        SystemMessage(id="a", parent_id=None, text="be brief"),
        UserMessage(id="b", parent_id=None, text="go"),
        ToolCall(id="c", parent_id=None, call_id="c1", name="bash", args={"command": "ls"}),
        ToolResult(id="d", parent_id=None, call_id="c1", ok=True, result={"files": 2}),
        ToolCall(id="e", parent_id=None, call_id="c2", name="bash", args=None),
        ToolResult(id="f", parent_id=None, call_id="c2", ok=False, error="denied"),
        AssistantMessage(id="g", parent_id=None, text="done"),
    ]

    assert [
        {"content": "be brief", "role": "system"},
        {"content": "go", "role": "user"},
        {"arguments": '{"command":"ls"}', "call_id": "c1", "name": "bash", "type": "function_call"},
        {"call_id": "c1", "output": '{"files":2}', "type": "function_call_output"},
        {"arguments": "{}", "call_id": "c2", "name": "bash", "type": "function_call"},
        {"call_id": "c2", "output": "denied", "type": "function_call_output"},
        {"content": "done", "role": "assistant"},
    ] == [to_item(event) for event in events]


def test_only_the_conversation_is_items() -> None:
    others: list[SessionEvent | Opaque] = [
        TurnStart(id="a", parent_id=None, turn=1),
        Usage(id="b", parent_id=None, input_tokens=1, output_tokens=1),
        Compaction(id="c", parent_id=None, reason="full", replaces_from=0, replaces_to=1),
        Reasoning(id="d", parent_id=None, text="the provider takes no thought without its id"),
        UserMessage(id="e", parent_id=None, parent_call_id="c1", text="a sub-agent's prompt"),
        rewound("f", None, "pop_item"),
        Opaque("future", "g", None, b'{"type":"future","id":"g","parentId":null}'),
    ]

    assert [] == [event for event in others if is_item(event)]
