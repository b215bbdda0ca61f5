"""One event of a log as the lines that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from incarnate.cli.blocks import Blocks, tool_text
from incarnate.domain.events import (
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

if TYPE_CHECKING:
    from incarnate.domain.events import AppendedEvent, SessionEvent

__all__ = ["Transcript"]


class Transcript(Blocks):
    """Prints events in the order of the log; what happened inside a call stands further in.

    Long texts of tools are cut unless `full`.
    """

    def __init__(self, *, full: bool = False) -> None:
        super().__init__(full=full)
        self._calls: dict[str, tuple[str, int]] = {}  # the name of each call, and how far in it stands

    def show(self, appended: AppendedEvent, /) -> None:
        """Print one event."""
        event = appended.event
        indent = self._indent(event)
        match event:
            case TurnStart():
                label = "" if event.label is UNSET else f" ({event.label})"
                self.block(indent, "turn", f"{event.turn}{label}", "bold")
            case TurnEnd():
                self.block(indent, "end", f"of turn {event.turn}{_outcome(event)}", "bold")
            case SystemMessage():
                self.block(indent, "system", event.text, "dim")
            case UserMessage():
                self.block(indent, "user", event.text, "cyan")
            case AssistantMessage():
                self.block(indent, "assistant", event.text)
            case Reasoning():
                hidden = "(kept by the provider, not readable)"
                self.block(indent, "thinking", hidden if event.text is UNSET else event.text, "dim italic")
            case ToolCall():
                self._calls[event.call_id] = (event.name, indent)
                self.block(indent, "call", self.cut(f"{event.name} {tool_text(event.args)}"), "yellow")
            case ToolResult():
                self._result(indent, event)
            case Compaction():
                summary = "" if event.summary is UNSET else f"\n{self.cut(event.summary)}"
                replaced = f"{event.replaces_from} up to {event.replaces_to}"
                self.block(indent, "compacted", f"{event.reason}: events {replaced}{summary}", "magenta")
            case Usage():
                self.block(indent, "usage", _tokens(event), "dim")
            case _:
                self.block(indent, event.type, self.cut(event.raw.decode("utf-8", "replace")), "dim")

    def _indent(self, event: SessionEvent | Opaque) -> int:
        call = UNSET if isinstance(event, Opaque) else event.parent_call_id
        return 0 if call is UNSET else self._calls.get(call, ("", 0))[1] + 1

    def _result(self, indent: int, event: ToolResult) -> None:
        name = self._calls.get(event.call_id, (event.call_id, 0))[0]
        text = self.cut(tool_text(event.answer))
        self.block(indent, "result", f"{name} {'' if event.ok else 'failed: '}{text}", "green" if event.ok else "red")


def _outcome(event: TurnEnd) -> str:
    if event.outcome is UNSET:
        return ""
    if isinstance(event.outcome, FailedOutcome):
        return f": {event.outcome.error.kind}: {event.outcome.error.message}"
    return f": {event.outcome}"


def _tokens(event: Usage) -> str:
    counts = [
        ("in", event.input_tokens),
        ("out", event.output_tokens),
        ("from the cache", event.cache_read_tokens),
        ("to the cache", event.cache_write_tokens),
        ("reasoning", event.reasoning_tokens),
    ]
    told = ", ".join(f"{count} {name}" for name, count in counts if count is not UNSET)
    return told if event.model is UNSET else f"{told} ({event.model})"
