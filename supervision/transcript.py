"""A log as a text that a model can go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import CallBlock, json_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.projections.model_messages import Message

__all__ = ["transcript_of"]


def transcript_of(events: Iterable[AppendedEvent]) -> str:
    """What the model has seen, as its history has it: a paragraph a message."""
    history = ModelHistory()
    for appended in events:
        history.apply(appended)
    return "\n\n".join([_paragraph(message) for message in history.value])


_NAMES = {"system": "System", "user": "User", "assistant": "You", "tool": "Result"}


def _paragraph(message: Message) -> str:
    # A summary names who says what in it already: an earlier transcript is one.
    return _told(message) if message.summary is not None else f"{_NAMES[message.role]}: {_told(message)}"


def _told(message: Message) -> str:
    parts: list[str] = []
    for block in message.content:
        if isinstance(block, CallBlock):
            call = block.content
            parts.append(f"[you called {call.name} with {json_text(call.args)}]")
        else:
            parts.append(block.content)
    return "\n".join(parts)
