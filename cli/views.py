"""The views that `show` prints: what makes each, and how its items read as JSON and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from incarnate.cli.blocks import Blocks, tool_text
from incarnate.cli.transcript import Transcript
from incarnate.domain.codec import encode_appended, encode_json
from incarnate.domain.projections.frames import ClientFrames
from incarnate.domain.projections.log import LogEvents
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.studio import StudioTranscript
from incarnate.domain.renderings.parts import tool_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.projections.base import Projection
    from incarnate.domain.projections.frames import Frame
    from incarnate.domain.projections.model_messages import Message

__all__ = ["ENCODED", "PRINTED", "EncodedView", "PrintedView"]


class EncodedView(NamedTuple):
    """A view as JSON: its projection, and the JSON of an item."""

    projection: Callable[[], Projection[Any]]
    encode: Callable[[Any], bytes]


class PrintedView(NamedTuple):
    """A view as text: its projection, what an item is called, and what prints items."""

    projection: Callable[[], Projection[Any]]
    item: str
    printer: type[Blocks]


class _Model(Blocks):
    def __init__(self, *, full: bool = False) -> None:
        super().__init__(full=full)
        self._calls: dict[str | None, str] = {}

    def show(self, message: Message, /) -> None:
        """Print one message."""
        for thought in message.thinking:
            hidden = "(kept by the provider, not readable)"
            self.block(0, "thinking", hidden if thought.text is UNSET else thought.text, "dim italic")
        if message.role == "tool":
            name, output = self._calls.get(message.tool_call_id, message.tool_call_id), tool_output(message)
            style = "dim" if message.is_placeholder else "red" if output.failed else "green"
            self.block(0, "result", self.cut(f"{name} {output.text}"), style)
        elif message.summary is not None:
            self.block(0, "summary", message.text, "magenta")
        elif not message.calls or message.text:
            self.block(0, message.role, message.text, {"system": "dim", "user": "cyan"}.get(message.role, ""))
        for call in message.calls:
            self._calls[call.id] = call.name
            self.block(0, "call", self.cut(f"{call.name} {tool_text(call.args)}"), "yellow")


class _Frames(Blocks):
    def show(self, frame: Frame, /) -> None:
        """Print one frame."""
        data = frame.data
        payload = self.cut(encode_json(data.payload).decode())
        self.block(0, str(data.seq), f"turn {data.turn}  {frame.event:<11}  {payload}")


ENCODED: dict[str | None, EncodedView] = {
    None: EncodedView(LogEvents, encode_appended),
    "studio": EncodedView(StudioTranscript, encode_json),
    "model": EncodedView(ModelHistory, lambda message: message.encode()),
    "frames": EncodedView(ClientFrames, encode_json),
}
"""By the name that `--view` gives; without one they are the events themselves."""

PRINTED = {
    "studio": PrintedView(LogEvents, "event", Transcript),  # people want turns and usage in it too
    "model": PrintedView(ModelHistory, "message", _Model),
    "frames": PrintedView(ClientFrames, "frame", _Frames),
}
