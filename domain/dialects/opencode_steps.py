"""The parts of OpenCode's answers, step by step, in the order in which the model made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from incarnate.domain.dialects.fields import optional_text
from incarnate.domain.dialects.opencode_parts import (
    call_of,
    has_ended,
    never_ran,
    result_of,
    spoken,
    status_of,
    usage_of,
)

if TYPE_CHECKING:
    from incarnate.domain.events import SessionEvent

__all__ = ["Steps"]


class Steps:
    """The step of one session that is being made.

    A step whose stream was cut is made again in the same message, and what it repeats is printed twice. So texts and
    thoughts wait until the step stands: it is over, or a tool of it runs. Parts come in the order of their beginnings,
    whichever of them is complete first.

    Attributes:
        is_open: the step has begun and has neither ended nor failed.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._stands = False
        self._parts: dict[str, dict[str, Any]] = {}
        self._called: set[str] = set()
        self._done: set[str] = set()

    def begin(self) -> None:
        """A step begins; what an attempt before it left that never stood is dropped."""
        if not self._stands:
            self._done.update(self._parts)
            self._parts.clear()
        self.is_open, self._stands = True, False

    def take(self, part: dict[str, Any], call: str | UnsetType = UNSET) -> list[SessionEvent]:
        """A text, thought or tool as it is now.

        Raises:
            DialectError: a tool without an id or a name.
        """
        name = optional_text(part, "id") or f"part-{len(self._done) + len(self._parts)}"
        if name in self._done:
            return []
        if part.get("type") == "tool" and status_of(part) != "pending" and not never_ran(part):
            call_of(part, call)  # refuses before anything is remembered
            self._stands = True
        self._parts[name] = part
        self.is_open = True
        return self._ready(call, force=False)

    def end(self, part: dict[str, Any], model: str | None, call: str | UnsetType = UNSET) -> list[SessionEvent]:
        """The step is over, and has taken these tokens."""
        drafts = self.give_up(call)
        spent = usage_of(part, model, call)
        return drafts if spent is None else [*drafts, spent]

    def give_up(self, call: str | UnsetType = UNSET) -> list[SessionEvent]:
        """Nothing more will come of the step: all of it stands, as far as it has come."""
        drafts = self._ready(call, force=True)
        # A tool that still runs may answer later: in OpenCode's own log its part goes on after the step's end.
        self.is_open, self._stands = False, True
        return drafts

    def _ready(self, call: str | UnsetType, *, force: bool) -> list[SessionEvent]:
        drafts: list[SessionEvent] = []
        for name, part in list(self._parts.items()):
            if part.get("type") == "tool":
                told = self._tool(name, part, call)
                if told is None and not force:
                    break
                drafts += told or []
                continue
            if not force and not (self._stands and has_ended(part)):
                break
            self._finish(name)
            found = spoken(part, call)
            drafts += [] if found is None else [found]
        return drafts

    def _tool(self, name: str, part: dict[str, Any], call: str | UnsetType) -> list[SessionEvent] | None:
        """What a tool says now; None while its arguments are still coming."""
        status = status_of(part)
        if status == "pending":
            return None
        if name not in self._called and never_ran(part):
            self._finish(name)
            return []
        drafts = [] if name in self._called else [call_of(part, call)]
        self._called.add(name)
        if status in ("completed", "error"):
            self._finish(name)
            drafts.append(result_of(part, call))
        return drafts

    def _finish(self, name: str) -> None:
        self._done.add(name)
        self._parts.pop(name)
