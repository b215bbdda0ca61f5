"""What the renderings share: call ids and tool names that a provider takes, arguments, the text of a result."""

from __future__ import annotations

import re
from collections import deque
from typing import Any, NamedTuple

import msgspec

from incarnate.domain.codec import encode_json
from incarnate.domain.projections.model_messages import Message, ResultText, ToolUse, json_text

__all__ = ["CallIds", "Output", "arguments", "arguments_text", "tool_name", "tool_output"]

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_object_decoder = msgspec.json.Decoder(dict[str, Any])


class CallIds:
    """Call ids that are unique within a request and match `^[a-zA-Z0-9_-]{1,limit}$`.

    Harnesses use ids again (`Bash_0`) and others hold what providers refuse (`call_1|fc_2`). An id that may stay as
    it is stays; a repeated one gets a number: `Bash_0`, `Bash_0_2`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}
        self._open: dict[str | None, deque[str]] = {}

    def asked(self, call: ToolUse) -> str:
        """The id of a call in the request."""
        new = self._unused(_REFUSED.sub("_", call.id)[: self._limit] or "call")
        self._used.add(new)
        self._open.setdefault(call.id, deque()).append(new)
        return new

    def answered(self, message: Message) -> str:
        """The id in the request of the call that a tool message answers.

        Raises:
            ValueError: no call before it waits for an answer.
        """
        waiting = self._open.get(message.tool_call_id)
        if not waiting:
            raise ValueError(f"no call waits for the answer {message.tool_call_id!r}: {_ADVICE}")
        new = waiting.popleft()
        if not waiting:
            del self._open[message.tool_call_id]
        return new

    def expect_none(self) -> None:
        """Refuse to go on to another message, or to end, while a call waits for its answer.

        Raises:
            ValueError: one does.
        """
        if self._open:
            raise ValueError(f"the call {next(iter(self._open))!r} is not answered behind its message: {_ADVICE}")

    def _unused(self, base: str) -> str:
        new = base
        while new in self._used:
            self._repeats[base] = number = self._repeats.get(base, 1) + 1
            ending = f"_{number}"
            new = base[: self._limit - len(ending)] + ending
        return new


_ADVICE = "a history balanced 'valid' answers each call once, directly behind its message"


def tool_name(name: str, limit: int) -> str:
    """A tool's name as providers take it: `^[a-zA-Z0-9_-]{1,limit}$`."""
    return _REFUSED.sub("_", name)[:limit] or "tool"


def arguments(args: object) -> dict[str, Any]:
    """The arguments of a call as the object that they must be.

    Some harnesses log the JSON text of the object, and after a cut stream half of it; what is no object at all stands
    under `value`.
    """
    if isinstance(args, dict):
        return args
    if args is None:
        return {}
    if isinstance(args, str):
        try:
            return _object_decoder.decode(args)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            pass
    return {"value": args}


def arguments_text(args: object) -> str:
    """The arguments of a call as the JSON text of an object, its keys in the order of the log."""
    return encode_json(arguments(args)).decode()


class Output(NamedTuple):
    """The answer to a call: a text as it is, any other value as JSON; whether the call failed or has no result."""

    text: str
    failed: bool


def tool_output(message: Message) -> Output:
    """What a tool message tells the model."""
    content = message.content
    if not isinstance(content, ResultText):
        return Output(message.text, message.is_placeholder)
    result = content.result
    if result.error and not result.ok:
        return Output(result.error, failed=True)
    return Output(result.result if isinstance(result.result, str) else json_text(result.result), not result.ok)
