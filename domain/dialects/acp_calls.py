"""The tool calls of an ACP session that are known and not answered, and what updates told of them so far."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from incarnate.domain.dialects.acp_updates import text_blocks
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.fields import either, optional_text
from incarnate.domain.dialects.stamped import answered, called
from incarnate.domain.events import SessionEvent

__all__ = ["AcpCalls"]

_RUNNING = frozenset({"in_progress", "completed", "failed", "cancelled"})
_ENDED = frozenset({"completed", "failed", "cancelled"})


class _Call:
    """A call as it is known; later updates say again what has changed, and nothing else."""

    def __init__(self, call_id: str, first: dict[str, Any]) -> None:
        self.call_id = call_id
        self.known: dict[str, Any] = {}
        self.is_told = False
        # Later titles say what the call does; the first is the tool's name, where an agent tells it at all.
        self.title = optional_text(first, "title")

    @property
    def stamp(self) -> Stamp:
        parent = _in_meta(self.known.get("_meta"), "parentToolUseId", "parentToolCallId")
        return Stamp(UNSET if parent is None else parent)

    @property
    def is_ended(self) -> bool:
        return _status(self.known) in _ENDED

    @property
    def has_output(self) -> bool:
        return "rawOutput" in self.known or "content" in self.known

    def merge(self, update: dict[str, Any]) -> None:
        self.known |= {name: value for name, value in update.items() if value is not None}

    def tell(self) -> SessionEvent:
        self.is_told = True
        known = self.known
        name = optional_text(known, "name") or _in_meta(known.get("_meta"), "toolName") or self.title
        return called(self.call_id, name or self.call_id, known.get("rawInput"), self.stamp)

    def answer(self) -> SessionEvent:
        known = self.known
        raw, content = known.get("rawOutput"), known.get("content")
        result = content if raw is None else raw
        exit_code = _exit_code(raw)
        ok = known.get("status") == "completed" and exit_code == 0
        reason: object = None
        if not ok and not isinstance(result, str):
            words = optional_text(raw, "error", "message", "formatted_output") if isinstance(raw, dict) else None
            reason = words or text_blocks(content) or (f"exit code {exit_code}" if exit_code else known.get("status"))
        return answered(self.call_id, result, self.stamp, ok=ok, error=reason)


class AcpCalls:
    """Calls by their id.

    Many agents announce a call before its arguments are known and tell them in an update; one that is replayed is born
    ended, and its output may follow. Both are held until what they lack comes, or until something else is said.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Call] = {}
        self._left: dict[str, _Call] = {}
        self._closed: set[str] = set()

    def knows(self, call_id: str) -> bool:
        """The call was told before."""
        return call_id in self._open or call_id in self._left or call_id in self._closed

    def update(
        self, call_id: str, update: dict[str, Any], *, is_call: bool, is_final: bool = False
    ) -> list[SessionEvent] | None:
        """What an update of a call tells; None where it tells nothing, now or later.

        `is_final` where its arguments do not change any more: leave to run it is asked for. An update of an unknown
        call announces it, if it tells how it ended.
        """
        call = self._open.get(call_id)
        if call is None:
            is_end = _status(update) in _ENDED
            if not is_call and not is_end:
                return None
            if not is_call and call_id in self._closed:
                return None
            # A call that a dead process left may be answered by the one that resumes it.
            call = (self._left.pop(call_id, None) if is_end and not is_call else None) or _Call(call_id, update)
            self._open[call_id] = call
        call.merge(_larger_input(update, call.known) if is_final else update)
        drafts: list[SessionEvent] = []
        is_running = _status(call.known) in _RUNNING or (not is_call and ("content" in update or "rawInput" in update))
        if not call.is_told and (is_final or is_running):
            drafts.append(call.tell())
        if call.is_ended and (call.has_output or not is_call):
            drafts.append(self._close(call))
        return drafts

    def settle(self) -> list[SessionEvent]:
        """What is held: what it lacks does not come any more."""
        drafts: list[SessionEvent] = []
        for call in list(self._open.values()):
            if not call.is_told:
                drafts.append(call.tell())
            if call.is_ended:
                drafts.append(self._close(call))
        return drafts

    def forget(self) -> None:
        """The turn is over: what is open stays unanswered, unless the answer comes late."""
        self._left.update(self._open)
        self._open.clear()

    def _close(self, call: _Call) -> SessionEvent:
        del self._open[call.call_id]
        self._closed.add(call.call_id)
        return call.answer()


def _status(told: dict[str, Any]) -> str:
    return optional_text(told, "status") or ""


def _larger_input(update: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """What is asked leave for may be told in other words than the model's, which are kept where they say more."""
    mine, its = known.get("rawInput"), update.get("rawInput")
    if isinstance(mine, dict) and isinstance(its, dict) and len(mine) >= len(its):
        return {**update, "rawInput": mine}
    return update


def _exit_code(raw: object) -> int:
    """The exit code of a command that ran: agents call it completed, whatever it is. 0 where none is told."""
    if not isinstance(raw, dict):
        return 0
    metadata, contents = raw.get("metadata"), raw.get("contents")
    places = [raw, metadata, *(contents if isinstance(contents, list) else [])]
    codes = [either(place, "exit_code", "exitCode", "exit") for place in places if isinstance(place, dict)]
    return next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), 0)


def _in_meta(meta: object, *names: str) -> str | None:
    """A text in what an adapter adds, at its top or under the adapter's name."""
    if not isinstance(meta, dict):
        return None
    places = [meta, *[value for value in meta.values() if isinstance(value, dict)]]
    return next((found for place in places if (found := optional_text(place, *names)) is not None), None)
