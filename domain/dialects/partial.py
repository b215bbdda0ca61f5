"""Blocks of an answer that are still being streamed, as Claude's partial messages tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.dialects.stamped import said, thought

if TYPE_CHECKING:
    from msgspec import UnsetType

    from incarnate.domain.dialects.claude_blocks import Stamp
    from incarnate.domain.events import SessionEvent

__all__ = ["PartialBlocks"]

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking"}


class PartialBlocks:
    """The block that each agent is streaming; it counts for nothing once the whole block has come.

    What a killed process streamed and never finished is nowhere else. Arguments of a call in the making are left out:
    nothing was called.
    """

    def __init__(self) -> None:
        self._streamed: dict[str | UnsetType, tuple[str, list[str], Stamp]] = {}

    def take(self, event: dict[str, Any], stamp: Stamp) -> None:
        """One event of the stream."""
        if event.get("type") == "content_block_start":
            self.whole(stamp)
        delta = event.get("delta")
        kind = _DELTAS.get(str(delta.get("type"))) if isinstance(delta, dict) else None
        piece = delta.get(kind) if isinstance(delta, dict) and kind is not None else None
        if kind is not None and isinstance(piece, str):
            streamed = self._streamed.setdefault(stamp.parent_call_id, (kind, [], stamp))
            streamed[1].append(piece)

    def whole(self, stamp: Stamp) -> None:
        """The block that was streamed has come whole."""
        self._streamed.pop(stamp.parent_call_id, None)

    def drafts(self) -> list[SessionEvent]:
        """What came of the blocks that will never be whole."""
        streamed, self._streamed = list(self._streamed.values()), {}
        texts = [(kind, "".join(pieces), stamp) for kind, pieces, stamp in streamed]
        return [
            said(text, stamp) if kind == "text" else thought(text, None, stamp) for kind, text, stamp in texts if text
        ]
