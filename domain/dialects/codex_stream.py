"""The stream of `codex exec --json`: a thread, its turns, and items that start and complete."""

from __future__ import annotations

from typing import Any

from incarnate.domain.dialects.base import Normalized
from incarnate.domain.dialects.claude_blocks import Stamp
from incarnate.domain.dialects.codex_items import NAME, STREAM_TOOLS, failed_outcome, stream_call, stream_result
from incarnate.domain.dialects.codex_usage import session_total
from incarnate.domain.dialects.drafts import message, reasoning
from incarnate.domain.dialects.fields import require
from incarnate.domain.dialects.implied_turns import ImpliedTurns
from incarnate.domain.errors import DialectError
from incarnate.domain.events import SessionEvent

__all__ = ["StreamNormalizer"]

_ITEM_KINDS = frozenset({"item.started", "item.updated", "item.completed"})


class StreamNormalizer:
    """The records of one or more processes that wrote to one stream.

    Item ids count from 0 in every process, so a call that was open when a process died stays unanswered.
    """

    def __init__(self) -> None:
        self._turns = ImpliedTurns()
        self._started: set[str] = set()

    def feed(self, kind: str, record: dict[str, Any]) -> Normalized:
        """What this record means.

        Raises:
            DialectError: an item without what it must have.
        """
        if kind in _ITEM_KINDS:
            return self._item(kind, record)
        match kind:
            case "thread.started":  # a process begins: what the last one left open, it left open for ever
                self._started.clear()
                return _mark(self._turns.end("interrupted", Stamp()), kind)
            case "turn.started":
                return _mark(self._turns.marked(), kind)
            case "turn.completed":
                begun, usage = self._turns.ensured(), session_total(record.get("usage"))
                return _mark(begun + usage + self._turns.end("completed", Stamp()), kind)
            case "turn.failed":
                begun = self._turns.ensured()
                return _mark(begun + self._turns.end(failed_outcome(record.get("error")), Stamp()), kind)
            case _:  # an `error` may precede a turn that still succeeds; `turn.failed` says it again
                return Normalized((), kind)

    def _item(self, kind: str, record: dict[str, Any]) -> Normalized:
        item = record.get("item")
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            raise DialectError(NAME, f"{kind} without an item that has a type")
        name = item["type"]
        if name in STREAM_TOOLS:
            drafts = self._tool(kind, item)
        elif kind == "item.completed" and name == "agent_message":
            said = message("assistant", require(NAME, item, "text"))
            drafts = [] if said is None else [said]
        elif kind == "item.completed" and name == "reasoning":
            drafts = [reasoning(require(NAME, item, "text"), None)]
        else:
            drafts = []
        if not drafts:
            return Normalized((), f"{kind}/{name}")
        return Normalized(tuple(drafts if self._turns.is_open else self._turns.ensured() + drafts))

    def _tool(self, kind: str, item: dict[str, Any]) -> list[SessionEvent]:
        call_id = require(NAME, item, "id", "item")
        if kind == "item.started" and call_id not in self._started:
            self._started.add(call_id)
            return [stream_call(item)]
        if kind != "item.completed":
            return []
        before = [] if call_id in self._started else [stream_call(item)]
        self._started.discard(call_id)
        return [*before, stream_result(item)]


def _mark(drafts: list[SessionEvent], kind: str) -> Normalized:
    return Normalized(tuple(drafts), None if drafts else kind)
