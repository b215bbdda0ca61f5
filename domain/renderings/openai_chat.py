"""OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat/create, and those who copy it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from incarnate.domain.projections.model_messages import Message
from incarnate.domain.renderings.parts import CallIds, arguments_text, tool_name, tool_output

__all__ = ["LONGEST_ID", "LONGEST_NAME", "failure_text", "to_openai_chat"]

LONGEST_ID = 40
"""Longer ids of calls are refused: "string too long. Expected a string with maximum length 40"."""

LONGEST_NAME = 64
"""The longest name of a function."""


def to_openai_chat(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The `messages` of a chat completion (`ChatCompletionMessageParam`).

    Calls join the assistant's text directly before them, as the provider wrote them. A failed result, for which the
    format has no mark, begins with `Error: `.

    Raises:
        ValueError: a call without its answer or an answer without its call.
    """
    ids = CallIds(LONGEST_ID)
    rendered: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            answer = {"role": "tool", "tool_call_id": ids.answered(message), "content": failure_text(message)}
            rendered.append(answer)
            continue
        ids.expect_none()
        if message.calls:
            calls = _calls(message, ids)
            last = rendered[-1] if rendered else {}
            if last.get("role") == "assistant" and "tool_calls" not in last:
                last["tool_calls"] = calls
            else:
                rendered.append({"role": "assistant", "tool_calls": calls})
        else:
            rendered.append({"role": message.role, "content": message.text})
    ids.expect_none()
    return rendered


def failure_text(message: Message) -> str:
    """The text of an answer; one that tells of a failure says so."""
    output = tool_output(message)
    return f"Error: {output.text}" if output.failed and not output.text.startswith("Error: ") else output.text


def _calls(message: Message, ids: CallIds) -> list[dict[str, Any]]:
    return [
        {
            "id": ids.asked(call),
            "type": "function",
            "function": {"name": tool_name(call.name, LONGEST_NAME), "arguments": arguments_text(call.args)},
        }
        for call in message.calls
    ]
