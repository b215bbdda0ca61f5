"""What providers refuse, written from their documents and their error messages, without regard to our code.

- OpenAI, https://platform.openai.com/docs/guides/function-calling: "An assistant message with 'tool_calls' must be
  followed by tool messages responding to each 'tool_call_id'"; "messages with role 'tool' must be a response to a
  preceding message with 'tool_calls'"; ids of at most 40 characters (64 for responses), names `^[a-zA-Z0-9_-]{1,64}$`.
- Anthropic, https://docs.anthropic.com/en/docs/build-with-claude/tool-use: results in the user message directly
  behind the call, before any text; "`tool_use` ids must be unique"; "text content blocks must contain non-whitespace
  text"; "final assistant content cannot end with trailing whitespace"; "content cannot be empty if `is_error` is
  true"; the first message is the user's, roles alternate; an assistant message does not end in a thought.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+")


def history_violations(messages: list[Json]) -> list[str]:
    """The rules that the JSON of a model history breaks."""
    return list(_history(messages))


def _history(messages: list[Json]) -> Iterator[str]:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if not waiting or waiting.pop(0) != message["tool_call_id"]:
                yield f"{index}: answers no call of the message before it, or not in its turn"
            continue
        if waiting:
            yield f"{index}: stands before the answers to {waiting}"
        if message["tool_call_id"] is not None:
            yield f"{index}: is no answer and names a call"
        waiting = [block["content"]["id"] for block in message["content"] if block["type"] == "tool_call"]
        if waiting and message["role"] != "assistant":
            yield f"{index}: only the assistant calls"
        texts = [block["content"] for block in message["content"] if block["type"] == "text"]
        if not message["content"] or any(not text.strip() for text in texts):
            yield f"{index}: is blank"
    if waiting:
        yield f"the end comes before the answers to {waiting}"


def chat_violations(messages: list[Json]) -> list[str]:
    """The rules of chat completions that `messages` break."""
    return list(_chat(messages))


def _chat(messages: list[Json]) -> Iterator[str]:
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"{index}: answers no call"
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            yield f"{index}: stands before the answers to {waiting}"
        calls = message.get("tool_calls", [])
        waiting = {call["id"] for call in calls}
        if len(waiting) != len(calls) or ("tool_calls" in message and not calls):
            yield f"{index}: two calls of one id, or an empty list"
        for call in calls:
            yield from _call(index, call["id"], 40, call["function"]["name"], call["function"]["arguments"])
    if waiting:
        yield f"the end comes before the answers to {waiting}"


def _call(index: int, call_id: str, longest: int, name: str, arguments: str) -> Iterator[str]:
    if not _ID.fullmatch(call_id) or len(call_id) > longest:
        yield f"{index}: the id {call_id!r}"
    if not _ID.fullmatch(name) or len(name) > 64:
        yield f"{index}: the name {name!r}"
    if not isinstance(json.loads(arguments), dict):
        yield f"{index}: arguments that are no object"


def responses_violations(items: list[Json]) -> list[str]:
    """The rules of responses that the input `items` break."""
    return list(_responses(items))


def _responses(items: list[Json]) -> Iterator[str]:
    asked: set[str] = set()
    answered: set[str] = set()
    for index, item in enumerate(items):
        if item["type"] == "function_call":
            if item["call_id"] in asked:
                yield f"{index}: two calls of one id"
            asked.add(item["call_id"])
            yield from _call(index, item["call_id"], 64, item["name"], item["arguments"])
        elif item["type"] == "function_call_output":
            if item["call_id"] not in asked - answered:
                yield f"{index}: no tool call found for the output"
            answered.add(item["call_id"])
    if asked != answered:
        yield f"no tool output found for {asked - answered}"


def anthropic_violations(request: Json) -> list[str]:
    """The rules of messages that a `request` breaks."""
    return [*_blank(request.get("system", [])), *_turns(request["messages"])]


def _turns(messages: list[Json]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        blocks = message["content"]
        if message["role"] != ("user", "assistant")[index % 2]:
            yield f"{index}: roles must alternate, the user first"
        kinds = [block["type"] for block in blocks]
        answers = [block for block in blocks if block["type"] == "tool_result"]
        if {block["tool_use_id"] for block in answers} != waiting or len(answers) != len(waiting):
            yield f"{index}: does not answer {waiting}"
        if kinds[: len(answers)] != ["tool_result"] * len(answers):
            yield f"{index}: results must come first"
        uses = [block for block in blocks if block["type"] == "tool_use"]
        waiting = {block["id"] for block in uses}
        if len(waiting) != len(uses) or waiting & seen:
            yield f"{index}: `tool_use` ids must be unique"
        seen |= waiting
        if kinds and kinds[-1].endswith("thinking"):
            yield f"{index}: the final block cannot be a thought"
        yield from _blank(blocks)
        yield from _blocks(index, blocks)
    if waiting:
        yield f"the end comes before the answers to {waiting}"
    if messages and messages[-1]["role"] == "assistant" and messages[-1]["content"][-1].get("text", "-")[-1].isspace():
        yield "final assistant content cannot end with trailing whitespace"


def _blocks(index: int, blocks: list[Json]) -> Iterator[str]:
    if not blocks:
        yield f"{index}: empty"
    for block in blocks:
        if block["type"] == "tool_use" and not (_ID.fullmatch(block["id"]) and _ID.fullmatch(block["name"])):
            yield f"{index}: the id {block['id']!r} or the name {block['name']!r}"
        if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            yield f"{index}: content cannot be empty if `is_error` is true"


def _blank(blocks: list[Json]) -> Iterator[str]:
    if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
        yield "text content blocks must contain non-whitespace text"
