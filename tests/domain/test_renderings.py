"""The renderings: what the providers' own packages and rules accept, for whatever a crash left in the log."""

from collections.abc import Iterable
from typing import Any

import pytest
from anthropic.types import MessageParam as AnthropicMessage
from anthropic.types import TextBlockParam
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from incarnate import AppendedEvent, AssistantMessage, Reasoning, SystemMessage, ToolCall, ToolResult, UserMessage
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import UNANSWERED, Message
from incarnate.domain.projections.vector import Vector
from incarnate.domain.renderings.anthropic import OPENING, to_anthropic
from incarnate.domain.renderings.openai_chat import to_openai_chat
from incarnate.domain.renderings.openai_responses import to_openai_responses
from tests.support.model_logs import LINK, Event, logs
from tests.support.provider_rules import anthropic_violations, chat_violations, responses_violations

CHAT = TypeAdapter(list[ChatCompletionMessageParam])
RESPONSES = TypeAdapter(list[ResponseInputItemParam])
ANTHROPIC = TypeAdapter(list[AnthropicMessage])
SYSTEM = TypeAdapter(list[TextBlockParam])


def history(*log: Event) -> Vector[Message]:
    return replay(AppendedEvent(offset, 1, 0, event) for offset, event in enumerate(log))


def replay(log: Iterable[AppendedEvent]) -> Vector[Message]:
    projection = ModelHistory()
    for event in log:
        projection.apply(event)
    return projection.value


def validated(adapter: TypeAdapter[Any], value: object) -> Any:
    """`value` as the provider's types read it; what they do not know would be missing."""
    return in_full(adapter.validate_python(value, strict=True))


def in_full(value: Any) -> Any:
    """Lists in place of the lazy iterators that pydantic makes of an `Iterable`."""
    if isinstance(value, dict):
        return {name: in_full(item) for name, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [in_full(item) for item in value]


USER = UserMessage(**LINK, text="fix it")
SAID = AssistantMessage(**LINK, text="on it ")
CALLS = [
    ToolCall(**LINK, call_id="Bash_0", name="bash", args={"b": 1, "a": "é"}),
    ToolCall(**LINK, call_id="Bash_0", name="mcp:fs.read", args=None),
]
RESULTS = [
    ToolResult(**LINK, call_id="Bash_0", ok=False, result=None, error="boom"),
    ToolResult(**LINK, call_id="Bash_0", ok=True, result={"z": 1, "a": [2]}),
]
THOUGHTS = [
    Reasoning(**LINK, text="hm", provider_continuation="sig"),
    Reasoning(**LINK, provider_continuation="blob"),
    Reasoning(**LINK, text="unsigned"),
]
SESSION = history(USER, *THOUGHTS, SAID, *CALLS, *RESULTS, UserMessage(**LINK, text="go on"))


@given(logs)
def test_chats_fit_the_types_and_the_rules_of_openai(log: list[AppendedEvent]) -> None:
    rendered = to_openai_chat(replay(log))

    assert rendered == validated(CHAT, rendered)
    assert [] == chat_violations(rendered)


@given(logs)
def test_responses_fit_the_types_and_the_rules_of_openai(log: list[AppendedEvent]) -> None:
    rendered = to_openai_responses(replay(log))

    assert rendered == validated(RESPONSES, rendered)
    assert [] == responses_violations(rendered)


@given(logs)
def test_messages_fit_the_types_and_the_rules_of_anthropic(log: list[AppendedEvent]) -> None:
    request = to_anthropic(replay(log))

    assert request["messages"] == validated(ANTHROPIC, request["messages"])
    assert request.get("system", []) == validated(SYSTEM, request.get("system", []))
    assert [] == anthropic_violations(request)


def test_a_chat_joins_a_text_with_the_calls_that_follow_it() -> None:
    assert [
        {"role": "user", "content": "fix it"},
        {
            "role": "assistant",
            "content": "on it ",
            "tool_calls": [
                {"id": "Bash_0", "type": "function", "function": {"name": "bash", "arguments": '{"b":1,"a":"é"}'}},
                {"id": "Bash_0_2", "type": "function", "function": {"name": "mcp_fs_read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "Bash_0", "content": '{"a":[2],"z":1}'},
        {"role": "tool", "tool_call_id": "Bash_0_2", "content": "Error: boom"},
        {"role": "user", "content": "go on"},
    ] == to_openai_chat(SESSION)


def test_responses_are_a_flat_list_of_messages_calls_and_outputs() -> None:
    assert [
        {"type": "message", "role": "user", "content": "fix it"},
        {"type": "message", "role": "assistant", "content": "on it "},
        {"type": "function_call", "call_id": "Bash_0", "name": "bash", "arguments": '{"b":1,"a":"é"}'},
        {"type": "function_call", "call_id": "Bash_0_2", "name": "mcp_fs_read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "Bash_0", "output": '{"a":[2],"z":1}'},
        {"type": "function_call_output", "call_id": "Bash_0_2", "output": "Error: boom"},
        {"type": "message", "role": "user", "content": "go on"},
    ] == to_openai_responses(SESSION)


def test_messages_of_anthropic_carry_signed_thoughts_and_put_results_before_the_prompt() -> None:
    assert {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "blob"},
                    {"type": "text", "text": "on it "},
                    {"type": "tool_use", "id": "Bash_0", "name": "bash", "input": {"b": 1, "a": "é"}},
                    {"type": "tool_use", "id": "Bash_0_2", "name": "mcp_fs_read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "Bash_0", "content": '{"a":[2],"z":1}'},
                    {"type": "tool_result", "tool_use_id": "Bash_0_2", "content": "boom", "is_error": True},
                    {"type": "text", "text": "go on"},
                ],
            },
        ]
    } == to_anthropic(SESSION)


def test_thoughts_can_be_left_out() -> None:
    kinds = [block["type"] for block in to_anthropic(SESSION, thinking=False)["messages"][1]["content"]]

    assert ["text", "tool_use", "tool_use"] == kinds


def test_system_messages_go_before_the_first_turn_or_into_the_words_of_the_user() -> None:
    system = SystemMessage(**LINK, text="be brief")

    assert {
        "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": OPENING}]},
            {"role": "assistant", "content": [{"type": "text", "text": "on it "}]},
            {"role": "user", "content": [{"type": "text", "text": "<system>\nbe brief\n</system>"}]},
        ],
    } == to_anthropic(history(system, SAID, system))


def test_the_last_words_of_the_assistant_end_in_no_white_space() -> None:
    assert "on it" == to_anthropic(history(USER, SAID))["messages"][-1]["content"][-1]["text"]


def test_a_prompt_can_be_put_behind_a_history_with_a_dangling_call() -> None:
    rendered = to_openai_chat([*history(USER, CALLS[0]), Message.of_text("user", "go on")])

    assert [UNANSWERED, "go on"] == [message["content"] for message in rendered[-2:]]


@pytest.mark.parametrize(
    ("result", "text"), [("plain", "plain"), ("", ""), (None, "null"), ({"b": 1, "a": 2}, '{"a":2,"b":1}')]
)
def test_a_text_is_rendered_as_it_is_and_another_value_as_json(result: object, text: str) -> None:
    log = history(CALLS[0], ToolResult(**LINK, call_id="Bash_0", ok=True, result=result))

    assert text == to_openai_chat(log)[-1]["content"]


@pytest.mark.parametrize(
    ("args", "sent"),
    [({"a": 1}, {"a": 1}), (None, {}), ('{"a":1}', {"a": 1}), ('{"a":', {"value": '{"a":'}), ([1], {"value": [1]})],
)
def test_arguments_are_an_object(args: object, sent: object) -> None:
    log = history(ToolCall(**LINK, call_id="a", name="run", args=args))

    assert sent == to_anthropic(log)["messages"][1]["content"][0]["input"]


def test_a_longer_history_begins_with_the_same_request() -> None:
    shorter = to_anthropic(SESSION[:2])["messages"]
    turns = to_anthropic(SESSION)["messages"]

    assert shorter[0] == turns[0]
    assert to_openai_responses(SESSION[:2]) == to_openai_responses(SESSION)[:2]


@pytest.mark.parametrize("render", [to_openai_chat, to_openai_responses, to_anthropic])
def test_a_call_without_its_answer_is_refused(render: Any) -> None:
    with pytest.raises(ValueError, match="'Bash_0' is not answered behind its message: a history balanced 'valid'"):
        render(SESSION[:3])
    with pytest.raises(ValueError, match="no call waits for the answer 'Bash_0'"):
        render(SESSION[3:4])
