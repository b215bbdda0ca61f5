"""What people read: named blocks of text, one under the other, the long ones cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from incarnate.cli.text import make_console, say
from incarnate.domain.codec import encode_json

__all__ = ["Blocks", "tool_text"]

_MOST_LINES = 12
_MOST_CHARACTERS = 2000


class Blocks(ABC):
    """Prints items as blocks, of which a subclass knows the kind. Long texts of tools are cut unless `full`."""

    def __init__(self, *, full: bool = False) -> None:
        self._console = make_console()
        self._full = full

    @abstractmethod
    def show(self, item: Any, /) -> None:
        """Print one item."""

    def cut(self, text: str) -> str:
        """`text`, or its begin and how much is missing."""
        if self._full:
            return text
        lines = text[:_MOST_CHARACTERS].split("\n")[:_MOST_LINES]
        kept = "\n".join(lines)
        return kept if len(kept) == len(text) else f"{kept}\n[{len(text) - len(kept)} more characters: --full]"

    def block(self, indent: int, name: str, text: str, style: str = "") -> None:
        """Print a name and a text, whose further lines stand under its first."""
        first, *others = text.split("\n")
        margin = "  " * indent
        say(self._console, margin, (f"{name:<10}", "bold" if style == "" else style), (first, style))
        for line in others:
            say(self._console, margin, " " * 10, (line, style))


def tool_text(value: Any) -> str:
    """A tool's value: its text, the texts of its parts, or else its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(_part(item), str) for item in value):
        return "\n".join(item["text"] for item in value)
    return encode_json(value).decode()


def _part(item: Any) -> Any:
    return item.get("text") if isinstance(item, dict) and item.get("type") == "text" else None
