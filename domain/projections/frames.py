"""The frames that a streaming client would have seen (`fixtures/vectors/transcript_logs.jsonl`, `sse`)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.projections.base import Change, ListProjection

__all__ = [
    "ClientFrames",
    "Frame",
    "FrameData",
    "Payload",
    "StatusPayload",
    "TextPayload",
    "ToolPayload",
    "ToolResultPayload",
    "TurnEndPayload",
]


class StatusPayload(msgspec.Struct, frozen=True, gc=False):
    """What the session does now: `start`, or how the turn ended. A start has no `error`."""

    phase: str
    error: str | UnsetType | None = UNSET


class TextPayload(msgspec.Struct, frozen=True, gc=False):
    """More of what the model says or thinks."""

    delta: str


class ToolPayload(msgspec.Struct, frozen=True, gc=False):
    """A tool call."""

    id: str
    name: str
    args: Any


class ToolResultPayload(msgspec.Struct, frozen=True, gc=False):
    """The answer to a call. A log holds neither how it was rendered nor who decided; both are null."""

    id: str
    ok: bool
    value: Any
    render: None = None
    error: str | None = None
    decision: None = None


class TurnEndPayload(msgspec.Struct, frozen=True, gc=False):
    """How a turn ended; `error` is `kind: message` for the outcome `error`."""

    outcome: str
    error: str | None


Payload = StatusPayload | TextPayload | ToolPayload | ToolResultPayload | TurnEndPayload


class FrameData(msgspec.Struct, frozen=True, gc=False):
    """`turn` counts the turns begun so far, whatever they are called; `seq` is the index of the frame."""

    turn: int
    seq: int
    payload: Payload


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One frame of the stream."""

    event: Literal["status", "text", "thinking", "tool", "tool_result", "turn_end"]
    data: FrameData


class ClientFrames(ListProjection[Frame]):
    """The frames of a log.

    A client joins the text frames to what the session says, so what a sub-agent says, thinks and begins is not among
    them; its calls and results are, as in the reference. Prompts, system text, usage, compactions, events of unknown
    types and thoughts without text have no frame either.
    """

    def _reduce(self, appended: AppendedEvent) -> Change:
        event = appended.event
        match event:
            case ToolCall():
                return self._framed("tool", ToolPayload(event.call_id, event.name, event.args))
            case ToolResult():
                return self._framed("tool_result", _result(event))
            case Opaque() | UserMessage() | SystemMessage() | Usage() | Compaction():
                return self._added()
            case _ if event.parent_call_id is not UNSET:
                return self._added()
            case AssistantMessage():
                return self._framed("text", TextPayload(event.text))
            case Reasoning():
                return self._added() if event.text is UNSET else self._framed("thinking", TextPayload(event.text))
            case TurnStart():
                frame = FrameData(self._turn() + 1, len(self._items), StatusPayload("start"))
                return self._added(Frame("status", frame))
            case TurnEnd():
                return self._ended(event)

    def _turn(self) -> int:
        # The last frame knows it: a turn that begins has a frame of its own, so a rewind has nothing more to restore.
        return self._items[-1].data.turn if self._items else 0

    def _framed(self, name: Literal["text", "thinking", "tool", "tool_result"], payload: Payload) -> Change:
        return self._added(Frame(name, FrameData(self._turn(), len(self._items), payload)))

    def _ended(self, event: TurnEnd) -> Change:
        turn, seq = self._turn(), len(self._items)
        outcome, error = _outcome(event)
        return self._added(
            Frame("turn_end", FrameData(turn, seq, TurnEndPayload(outcome, error))),
            Frame("status", FrameData(turn, seq + 1, StatusPayload(outcome, error))),
        )


def _result(event: ToolResult) -> ToolResultPayload:
    failure = "" if event.error is UNSET else event.error
    return ToolResultPayload(event.call_id, event.ok, event.result, error=None if event.ok else failure)


def _outcome(event: TurnEnd) -> tuple[str, str | None]:
    if isinstance(event.outcome, FailedOutcome):
        error = event.outcome.error
        return "error", f"{error.kind}: {error.message}"
    return ("completed" if event.outcome is UNSET else event.outcome), None
