"""The messages of a model history: what the model may see, and the JSON that other tools read.

The JSON of a message is the reference's (`engine` in `fixtures/vectors/transcript_logs.jsonl`); `offset`, `thinking`
and `summary` are ours and stay out of it. A result's text is made when it is asked for: a history that is kept for
its last message would otherwise hold every large result twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from incarnate.domain.codec import encode_json
from incarnate.domain.events import AssistantMessage, Reasoning, SystemMessage, ToolCall, ToolResult, UserMessage
from incarnate.domain.projections.vector import Vector

__all__ = [
    "CANCELLED",
    "CANCELLED_CONTENT",
    "ROLES",
    "UNANSWERED",
    "UNANSWERED_CONTENT",
    "CallBlock",
    "Content",
    "Message",
    "ResultText",
    "Role",
    "Summary",
    "TextBlock",
    "ToolUse",
    "call_block",
    "calls_content",
    "json_text",
    "result_text",
    "with_call",
]

Role = Literal["system", "user", "assistant", "tool"]
ROLES: dict[type, Role] = {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant"}

UNANSWERED = "Error: no result was recorded for this tool call; whether it ran, or how far, is unknown"
"""The text of a placeholder in a `valid` history. After a crash nobody knows whether the tool ran, so it claims
neither; it holds no time and no number, so that a provider's prompt cache stays good."""

CANCELLED = "Error: tool call was cancelled before execution (no result recorded)"
"""The reference's placeholder, to the letter."""

_sorted_encoder = msgspec.json.Encoder(order="sorted")


def json_text(value: object) -> str:
    """The JSON of an opaque value as the reference writes it: no blanks, keys sorted by their UTF-8 bytes."""
    return _sorted_encoder.encode(value).decode()


def result_text(result: ToolResult) -> str:
    """What the model reads for a result, as the reference writes it: the error if there is one, else the JSON."""
    return f"Error: {result.error}" if result.error and not result.ok else json_text(result.result)


class TextBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """A text."""

    content: str


class ToolUse(msgspec.Struct, frozen=True, gc=False):
    """What the model called."""

    id: str
    name: str
    args: Any


class CallBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="tool_call"):
    """One call of an assistant message."""

    content: ToolUse


class ResultText(msgspec.Struct, frozen=True, gc=False):
    """The content of a tool message: one text block, made from the result when it is read."""

    result: ToolResult

    @property
    def content(self) -> str:
        """The text."""
        return result_text(self.result)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[TextBlock]:
        yield TextBlock(result_text(self.result))

    def __getitem__(self, index: int) -> TextBlock:
        return (TextBlock(result_text(self.result)),)[index]


Content = Sequence[TextBlock | CallBlock] | ResultText
"""A tuple of blocks; a `Vector` where many calls make one message; the text of a result that is made when read."""


class Summary(NamedTuple):
    """What a summary stands for: the offsets from `first` up to, not including, `end`, by the compaction at `offset`.

    `end` is at most `offset`: a compaction cannot speak for what comes after it.
    """

    first: int
    end: int
    offset: int


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message that the model may see.

    `offset` is that of the event which it begins with, or the call's for the answer to a call; None for a message
    that is in no log. `thinking` is the reasoning that came directly before it, which Anthropic wants back unchanged.
    `summary` says what a compaction's summary stands for.
    """

    role: Role
    content: Content
    tool_call_id: str | None = None
    offset: int | None = None
    thinking: tuple[Reasoning, ...] = ()
    summary: Summary | None = None

    @classmethod
    def of_text(cls, role: Role, text: str) -> Message:
        """A message of one text, such as the next prompt."""
        return cls(role, (TextBlock(text),))

    @property
    def text(self) -> str:
        """The texts of its blocks, one after the other."""
        return "".join([block.content for block in self.content if isinstance(block, TextBlock)])

    @property
    def calls(self) -> list[ToolUse]:
        """The tool calls of an assistant message."""
        return [block.content for block in self.content if isinstance(block, CallBlock)]

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for a result that is not there."""
        return self.content in (UNANSWERED_CONTENT, CANCELLED_CONTENT)

    def to_json(self) -> dict[str, Any]:
        """Its JSON as builtins: `role`, `content` and `tool_call_id`, as other tools read it."""
        return {
            "role": self.role,
            "content": [msgspec.to_builtins(block) for block in self.content],
            "tool_call_id": self.tool_call_id,
        }

    def encode(self) -> bytes:
        """Its JSON as bytes."""
        return encode_json({"role": self.role, "content": list(self.content), "tool_call_id": self.tool_call_id})


UNANSWERED_CONTENT = (TextBlock(UNANSWERED),)
CANCELLED_CONTENT = (TextBlock(CANCELLED),)


def call_block(event: ToolCall) -> CallBlock:
    """A call as a block of an assistant message."""
    return CallBlock(ToolUse(event.call_id, event.name, event.args))


def with_call(content: Content, block: CallBlock) -> Content:
    """The content of an assistant message with one more call.

    A tuple up to 32 blocks, where copying it costs what a vector's tail costs, and a vector above: a message of
    20,000 parallel calls is not copied at each of them.
    """
    if isinstance(content, Vector):
        return content.append(block)
    assert isinstance(content, tuple)
    return (*content, block) if len(content) < _MOST_IN_A_TUPLE else Vector((*content, block))


def calls_content(blocks: Sequence[TextBlock | CallBlock]) -> Content:
    """The content of an assistant message that consists of these calls."""
    return tuple(blocks) if len(blocks) <= _MOST_IN_A_TUPLE else Vector(blocks)


_MOST_IN_A_TUPLE = 32
