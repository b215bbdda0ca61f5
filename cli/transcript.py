"""One event of a log as the lines that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from incarnate.cli.text import make_console, say
from incarnate.domain.codec import encode_json
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

_MOST_LINES = 12
_MOST_CHARACTERS = 2000


class Transcript:
    """Prints events in the order of the log; what happened inside a call stands further in.

    Long texts of tools are cut unless `full`.
    """

    def __init__(self, *, full: bool = False) -> None:
        self._console = make_console()
        self._full = full
        self._calls: dict[str, tuple[str, int]] = {}  # the name of each call, and how far in it stands

    def show(self, appended: AppendedEvent) -> None:
        """Print one event."""
        event = appended.event
        indent = self._indent(event)
        match event:
            case TurnStart():
                label = "" if event.label is UNSET else f" ({event.label})"
                self._block(indent, "turn", f"{event.turn}{label}", "bold")
            case TurnEnd():
                self._block(indent, "end", f"of turn {event.turn}{_outcome(event)}", "bold")
            case SystemMessage():
                self._block(indent, "system", event.text, "dim")
            case UserMessage():
                self._block(indent, "user", event.text, "cyan")
            case AssistantMessage():
                self._block(indent, "assistant", event.text)
            case Reasoning():
                hidden = "(kept by the provider, not readable)"
                self._block(indent, "thinking", hidden if event.text is UNSET else event.text, "dim italic")
            case ToolCall():
                self._calls[event.call_id] = (event.name, indent)
                self._block(indent, "call", self._cut(f"{event.name} {_text(event.args)}"), "yellow")
            case ToolResult():
                self._result(indent, event)
            case Compaction():
                summary = "" if event.summary is UNSET else f"\n{self._cut(event.summary)}"
                replaced = f"{event.replaces_from} up to {event.replaces_to}"
                self._block(indent, "compacted", f"{event.reason}: events {replaced}{summary}", "magenta")
            case Usage():
                self._block(indent, "usage", _tokens(event), "dim")
            case _:
                self._block(indent, event.type, self._cut(event.raw.decode("utf-8", "replace")), "dim")

    def _indent(self, event: SessionEvent | Opaque) -> int:
        call = UNSET if isinstance(event, Opaque) else event.parent_call_id
        return 0 if call is UNSET else self._calls.get(call, ("", 0))[1] + 1

    def _result(self, indent: int, event: ToolResult) -> None:
        name = self._calls.get(event.call_id, (event.call_id, 0))[0]
        answer = event.result if event.ok or event.error is UNSET else event.error
        text = self._cut(_text(answer))
        self._block(indent, "result", f"{name} {'' if event.ok else 'failed: '}{text}", "green" if event.ok else "red")

    def _cut(self, text: str) -> str:
        if self._full:
            return text
        lines = text[:_MOST_CHARACTERS].split("\n")[:_MOST_LINES]
        kept = "\n".join(lines)
        return kept if len(kept) == len(text) else f"{kept}\n[{len(text) - len(kept)} more characters: --full]"

    def _block(self, indent: int, name: str, text: str, style: str = "") -> None:
        first, *others = text.split("\n")
        margin = "  " * indent
        say(self._console, margin, (f"{name:<10}", "bold" if style == "" else style), (first, style))
        for line in others:
            say(self._console, margin, " " * 10, (line, style))


def _text(value: Any) -> str:
    """A tool's value: its text, the texts of its parts, or else its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(_part(item), str) for item in value):
        return "\n".join(item["text"] for item in value)
    return encode_json(value).decode()


def _part(item: Any) -> Any:
    return item.get("text") if isinstance(item, dict) and item.get("type") == "text" else None


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
