"""Anthropic's Messages: https://docs.anthropic.com/en/api/messages.

Its rules, beyond the types: the first message is the user's and roles alternate; ids of calls are unique and match
`^[a-zA-Z0-9_-]+$`; all results of a message's calls are in the user message directly behind it, before any text; no
text is blank, nor a failed result empty; the last text of the assistant's does not end in white space; thinking
goes back unmodified.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from incarnate.domain.events import Reasoning
from incarnate.domain.projections.model_messages import Message
from incarnate.domain.renderings.parts import CallIds, arguments, tool_name, tool_output

__all__ = ["LONGEST_ID", "LONGEST_NAME", "OPENING", "to_anthropic"]

LONGEST_ID = 128
"""Anthropic names no limit for ids; this one keeps a damaged log's from being endless."""

LONGEST_NAME = 128
"""The longest name of a tool."""

OPENING = "(The session begins here.)"
"""The user's first words where a history begins with the assistant's."""

Block = dict[str, Any]


def to_anthropic(messages: Iterable[Message], *, thinking: bool = True) -> dict[str, Any]:
    """The `messages` of a request (`MessageParam`), and its `system` where the history begins with system messages.

    `client.messages.create(model=..., max_tokens=..., **to_anthropic(history))`. A system message further down is
    put into the user's words as `<system>...</system>`, because few models take one there. Signed thoughts stand
    before what they led to, redacted ones too; `thinking=False` leaves them out, for a log whose signatures are
    another provider's.

    Raises:
        ValueError: a call without its answer or an answer without its call.
    """
    ids = CallIds(LONGEST_ID)
    system: list[Block] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role != "tool":
            ids.expect_none()
        if message.role == "system" and not turns:
            system.extend(_text(message.text))
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, ids, thinking=thinking)
        if not turns and role == "assistant" and blocks:
            turns.append({"role": "user", "content": _text(OPENING)})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        elif blocks:
            turns.append({"role": role, "content": blocks})
    ids.expect_none()
    _strip_end(turns)
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _blocks(message: Message, ids: CallIds, *, thinking: bool) -> list[Block]:
    if message.role == "tool":
        return [_result(message, ids)]
    said = _text(message.text)
    if message.role == "system":
        return [{"type": "text", "text": f"<system>\n{block['text']}\n</system>"} for block in said]
    said.extend(
        {
            "type": "tool_use",
            "id": ids.asked(call),
            "name": tool_name(call.name, LONGEST_NAME),
            "input": arguments(call.args),
        }
        for call in message.calls
    )
    # A thought alone is refused: a message must not end in one.
    thoughts = [_thought(thought) for thought in message.thinking] if thinking and said else []
    return thoughts + said


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text and not text.isspace() else []


def _thought(thought: Reasoning) -> Block:
    if thought.text is UNSET:  # a redacted one is nothing but its blob
        return {"type": "redacted_thinking", "data": thought.provider_continuation}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.provider_continuation}


def _result(message: Message, ids: CallIds) -> Block:
    output = tool_output(message)
    block: Block = {"type": "tool_result", "tool_use_id": ids.answered(message)}
    if output.text and not output.text.isspace():
        block["content"] = output.text
    elif output.failed:
        block["content"] = "Error"
    if output.failed:
        block["is_error"] = True
    return block


def _strip_end(turns: list[dict[str, Any]]) -> None:
    """What the model is to go on from must not end in white space."""
    if turns and turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        block = turns[-1]["content"][-1]
        turns[-1]["content"][-1] = {"type": "text", "text": block["text"].rstrip()}
