"""OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses/create."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from incarnate.domain.projections.model_messages import Message
from incarnate.domain.renderings.openai_chat import LONGEST_NAME, failure_text
from incarnate.domain.renderings.parts import CallIds, arguments_text, tool_name

__all__ = ["LONGEST_ID", "to_openai_responses"]

LONGEST_ID = 64
"""The longest `call_id`."""


def to_openai_responses(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The `input` of a response (`ResponseInputItemParam`): messages, function calls and their outputs.

    A failed result, for which the format has no mark, begins with `Error: `.

    Raises:
        ValueError: a call without its answer or an answer without its call.
    """
    ids = CallIds(LONGEST_ID)
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            call_id = ids.answered(message)
            items.append({"type": "function_call_output", "call_id": call_id, "output": failure_text(message)})
            continue
        ids.expect_none()
        if message.calls:
            items.extend(_calls(message, ids))
        else:
            items.append({"type": "message", "role": message.role, "content": message.text})
    ids.expect_none()
    return items


def _calls(message: Message, ids: CallIds) -> list[dict[str, Any]]:
    return [
        {
            "type": "function_call",
            "call_id": ids.asked(call),
            "name": tool_name(call.name, LONGEST_NAME),
            "arguments": arguments_text(call.args),
        }
        for call in message.calls
    ]
