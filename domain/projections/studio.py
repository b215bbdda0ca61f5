"""The whole transcript, for people: everything said, thought and done, sub-agents included.

The JSON of an item is the reference's (`fixtures/vectors/transcript_logs.jsonl`, `studio`), with fields of ours left
out when unset. It holds no offset; the attribute `offset` of an item does, and leads back to its event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.projections.base import Change, ListProjection

__all__ = ["StudioCall", "StudioCompaction", "StudioItem", "StudioResult", "StudioText", "StudioTranscript"]


class _Placed:
    # A slot beside the fields: msgspec neither encodes nor compares it, so an item's JSON is the reference's.
    __slots__ = ("offset",)
    offset: int


class _Item(_Placed, msgspec.Struct, frozen=True, kw_only=True, gc=False):
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # msgspec's own would lose the offset.
        return _rebuilt, (self.offset, type(self), msgspec.structs.asdict(self))

    def __copy__(self) -> Self:
        return self


class StudioText(_Item, frozen=True, kw_only=True, gc=False):
    """Something said or thought; `tool_parent_id` is the call inside which it was (a sub-agent's words).

    `content` is empty for a thought of which the provider gave no text.
    """

    role: Literal["system", "user", "assistant", "thinking"]
    content: str
    tool_parent_id: str | UnsetType = UNSET


class StudioCall(_Item, frozen=True, kw_only=True, gc=False):
    """A tool call; `tool_parent_id` is the call inside which it was made."""

    role: Literal["tool"] = "tool"
    kind: Literal["call"] = "call"
    tool_call_id: str
    tool_name: str
    tool_args: Any
    tool_parent_id: str | UnsetType = UNSET


class StudioResult(_Item, frozen=True, kw_only=True, gc=False):
    """The answer to a call; it failed where `tool_error` is a string, even an empty one."""

    role: Literal["tool"] = "tool"
    kind: Literal["result"] = "result"
    tool_call_id: str
    tool_value: Any
    tool_error: str | None
    tool_parent_id: str | UnsetType = UNSET


class StudioCompaction(_Item, frozen=True, kw_only=True, gc=False):
    """The mark where a harness gave up what the model saw of some offsets; the items above it stay.

    `content` is the summary that took their place, empty where the harness did not tell.
    """

    role: Literal["compaction"] = "compaction"
    content: str
    reason: str
    replaces_from: int
    replaces_to: int
    tool_parent_id: str | UnsetType = UNSET


StudioItem = StudioText | StudioCall | StudioResult | StudioCompaction


class StudioTranscript(ListProjection[StudioItem]):
    """One item for each message, thought, call, result and compaction, in the order of the log.

    Turn marks, usage and events of unknown types have none, as in the reference: `ReplayAnalysis` and `UsageTotals`
    count them.
    """

    def _reduce(self, appended: AppendedEvent) -> Change:
        item = _item(appended.event)
        if item is None:
            return self._added()
        return self._added(_at(appended.offset, item))


I = TypeVar("I", bound=_Item)  # noqa: E741

_set_offset: Callable[[object, int], None] = _Placed.__dict__["offset"].__set__


def _at(offset: int, item: I) -> I:
    _set_offset(item, offset)  # past the frozen struct, once, before anyone has seen it
    return item


def _rebuilt(offset: int, kind: type[I], fields: dict[str, Any]) -> I:
    return _at(offset, kind(**fields))


def _item(event: SessionEvent | Opaque) -> StudioItem | None:
    match event:
        case ToolCall() | ToolResult():
            return _tool_item(event)
        case SystemMessage() | UserMessage() | AssistantMessage() | Reasoning():
            return _text_item(event)
        case Compaction():
            return StudioCompaction(
                content="" if event.summary is UNSET else event.summary,
                reason=event.reason,
                replaces_from=event.replaces_from,
                replaces_to=event.replaces_to,
                tool_parent_id=event.parent_call_id,
            )
        case TurnStart() | TurnEnd() | Usage() | Opaque():
            return None


def _text_item(event: SystemMessage | UserMessage | AssistantMessage | Reasoning) -> StudioText:
    inside = event.parent_call_id
    match event:
        case AssistantMessage():
            return StudioText(role="assistant", content=event.text, tool_parent_id=inside)
        case Reasoning():
            text = "" if event.text is UNSET else event.text
            return StudioText(role="thinking", content=text, tool_parent_id=inside)
        case UserMessage():
            return StudioText(role="user", content=event.text, tool_parent_id=inside)
        case SystemMessage():
            return StudioText(role="system", content=event.text, tool_parent_id=inside)


def _tool_item(event: ToolCall | ToolResult) -> StudioItem:
    if isinstance(event, ToolCall):
        return StudioCall(
            tool_call_id=event.call_id,
            tool_name=event.name,
            tool_args=event.args,
            tool_parent_id=event.parent_call_id,
        )
    failure = "" if event.error is UNSET else event.error
    return StudioResult(
        tool_call_id=event.call_id,
        tool_value=event.result,
        tool_error=None if event.ok else failure,
        tool_parent_id=event.parent_call_id,
    )
