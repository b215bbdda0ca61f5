"""The answer that pi is streaming: what a killed process leaves of it is nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.pi_messages import assistant_drafts
from incarnate.domain.dialects.stamped import said, thought
from incarnate.domain.errors import DialectError

if TYPE_CHECKING:
    from incarnate.domain.events import SessionEvent

__all__ = ["PartialAnswer"]

_TEXT, _THINKING = "text", "thinking"


class PartialAnswer:
    """The blocks of one answer by their place in it; calls are left out, as none runs before the answer is whole."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[str, list[str]]] = {}
        self._message: dict[str, Any] | None = None

    def take(self, record: dict[str, Any]) -> str | None:
        """One update. Returns its kind where nothing was taken from it."""
        message, update = record.get("message"), record.get("assistantMessageEvent")
        if isinstance(message, dict):  # old versions repeat the whole of the answer each time
            self._message = message
            return None
        kind = update.get("type") if isinstance(update, dict) else None
        if not isinstance(update, dict) or not isinstance(kind, str):
            return "message_update"
        block, _, step = kind.partition("_")
        place, text = update.get("contentIndex"), update.get("content" if step == "end" else "delta")
        if block not in (_TEXT, _THINKING) or not isinstance(place, int) or not isinstance(text, str):
            return f"message_update/{kind}"
        parts = self._blocks.setdefault(place, (block, []))[1]
        if step == "end":
            parts.clear()
        parts.append(text)
        return None

    def whole(self) -> None:
        """The answer has come whole."""
        self._blocks.clear()
        self._message = None

    def drafts(self) -> list[SessionEvent]:
        """What came of an answer that will never be whole."""
        blocks, message = sorted(self._blocks.items()), self._message
        self.whole()
        if message is not None:
            try:
                return assistant_drafts({**message, "stopReason": "aborted"}).drafts
            except DialectError:
                return []
        texts = [(kind, "".join(parts)) for _, (kind, parts) in blocks]
        return [said(text, Stamp()) if kind == _TEXT else thought(text, None, Stamp()) for kind, text in texts if text]
