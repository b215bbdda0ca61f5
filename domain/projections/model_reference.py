"""The `reference` balancing: the reference system's history to the letter, its quirk included.

Its algorithm, as recorded in `fixtures/vectors/transcript_logs.jsonl`: tool calls that follow each other make one
message and each result is a message where it came. Sub-calls between two calls do not part them; everything else that
has a transcript row does, the results of sub-calls too. Then the messages are walked: behind a message of calls go the
results that directly follow it, whosever they are, and a placeholder for each call that none of them answers; the
message behind those is not checked itself (the quirk), so that its own calls may stay unanswered.

Its transcripts have no compactions and no system messages. Here a compaction is worked out on the unbalanced messages,
which are then balanced again, and a system message is a message like any other.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Any, ClassVar, Protocol

from msgspec import UNSET, Struct

from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    Opaque,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from incarnate.domain.projections.base import Change
from incarnate.domain.projections.model_compaction import Range, offset_of
from incarnate.domain.projections.model_messages import (
    CANCELLED_CONTENT,
    ROLES,
    Message,
    ResultText,
    TextBlock,
    call_block,
    with_call,
)
from incarnate.domain.projections.model_undo import UndoStack
from incarnate.domain.projections.model_valid import Diagnostics
from incarnate.domain.projections.vector import Vector

__all__ = ["ReferenceBalance"]

Items = Vector[Message]


class _Walk(Struct, frozen=True, gc=False):
    """Where the walk stands behind the last message.

    `group` is the index of the message that the next call joins, or -1. `missing` placeholders end the list; `left`
    says how many of them stand for each call id. It belongs to the message of calls that is being answered and is
    None where none is: the next message is then checked.
    """

    group: int = -1
    missing: int = 0
    left: dict[str, int] | None = None


class _Handler(Protocol):
    def __call__(
        self, balance: ReferenceBalance, offset: int, event: Any, items: Items, size: int, generation: int, /
    ) -> Change | None: ...


class ReferenceBalance:
    """Says how each event changes the reference's history."""

    def __init__(self) -> None:
        self._walk = _Walk()
        # The undo: the walk before each event, and what stood in its `left` where the event changed that.
        self._walks: UndoStack[_Walk] = UndoStack()
        self._lefts: dict[int, tuple[str, int]] = {}

    @property
    def diagnostics(self) -> Diagnostics:
        """Nothing: it drops nothing."""
        return Diagnostics()

    def reduce(self, appended: AppendedEvent, items: Items, size: int, generation: int) -> Change:
        """How the next event changes `items`."""
        event = appended.event
        before = self._walk
        change = None
        handle = self._handlers.get(type(event))
        if handle is not None and not isinstance(event, Opaque):
            if event.parent_call_id is UNSET:
                change = handle(self, appended.offset, event, items, size, generation)
            elif type(event) is ToolResult:
                self._part()  # a sub-call's result has a row, and what else is inside a call has none
        self._walks.recent.append(before)
        return change or Change(generation, size, ())

    def forget(self, offset: int) -> None:
        """Undo what the newest event, at `offset`, changed."""
        self._walk = walk = self._walks.pop()
        noted = self._lefts.pop(offset, None)
        if noted is not None and walk.left is not None:
            call_id, count = noted
            if count:
                walk.left[call_id] = count
            else:
                walk.left.pop(call_id, None)

    def seal(self) -> None:
        """Seal the undo."""
        self._walks.seal()

    def _part(self, *_: object) -> None:
        walk = self._walk
        if walk.group >= 0:
            self._walk = _Walk(-1, walk.missing, walk.left)

    def _think(self, _offset: int, event: Reasoning, *_: object) -> None:
        if event.text is not UNSET:  # a bare signature has no row
            self._part()

    def _text(self, offset: int, event: Any, _items: Items, size: int, generation: int) -> Change:
        self._walk = _Walk()
        message = Message(ROLES[type(event)], (TextBlock(event.text),), None, offset)
        return Change(generation, size, (message,))

    def _call(self, offset: int, event: ToolCall, items: Items, size: int, generation: int) -> Change:
        walk, call_id = self._walk, event.call_id
        if walk.group < 0:
            return self._first_call(offset, event, size, generation)
        old = items[walk.group]
        joined = Message("assistant", with_call(old.content, call_block(event)), None, old.offset)
        if walk.left is None:
            return Change(generation, size, (), ((walk.group, joined),))
        self._note(offset, call_id, walk.left.get(call_id, 0) + 1)
        self._walk = _Walk(walk.group, walk.missing + 1, walk.left)
        return Change(generation, size, (_placeholder(call_id, offset),), ((walk.group, joined),))

    def _first_call(self, offset: int, event: ToolCall, size: int, generation: int) -> Change:
        message = Message("assistant", (call_block(event),), None, offset)
        if self._walk.left is not None:  # the quirk: behind the results of another message it is not checked
            self._walk = _Walk(size)
            return Change(generation, size, (message,))
        self._walk = _Walk(size, 1, {event.call_id: 1})
        return Change(generation, size, (message, _placeholder(event.call_id, offset)))

    def _result(self, offset: int, event: ToolResult, items: Items, size: int, generation: int) -> Change:
        walk, call_id = self._walk, event.call_id
        answer = Message("tool", ResultText(event), call_id, offset)
        if walk.left is None:
            self._walk = _Walk()
            return Change(generation, size, (answer,))
        count = walk.left.get(call_id, 0)
        first = size - walk.missing
        self._walk = _Walk(-1, walk.missing - count, walk.left)
        if count:
            self._note(offset, call_id, 0)
        # It stands before the placeholders and takes those of its id away. Where it answers the first of them, as
        # results mostly do, that is one message; otherwise those before the one that it answers move down by one.
        if count == 1 and items[first].tool_call_id == call_id:
            return Change(generation, size, (), ((first, answer),))
        rest = [message for message in items[first:] if message.tool_call_id != call_id]
        return Change(generation, first, (answer, *rest))

    def _note(self, offset: int, call_id: str, count: int) -> None:
        left = self._walk.left
        assert left is not None
        self._lefts[offset] = (call_id, left.get(call_id, 0))
        if count:
            left[call_id] = count
        else:
            del left[call_id]

    def _compact(self, offset: int, event: Compaction, items: Items, _size: int, generation: int) -> Change:
        # Where a walk stood in the middle of a list is not kept: a compaction, which is rare, walks all of it anew.
        new, self._walk = _balanced(_compacted(items, Range.of(event, offset)))
        keep = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(items, new, strict=False)))
        return Change(generation, keep, tuple(new[keep:]))

    _handlers: ClassVar[dict[type, _Handler]] = {
        SystemMessage: _text,
        UserMessage: _text,
        AssistantMessage: _text,
        Reasoning: _think,
        ToolCall: _call,
        ToolResult: _result,
        Compaction: _compact,
        TurnStart: _part,
        TurnEnd: _part,
    }


def _compacted(items: Items, where: Range) -> list[Message]:
    """The unbalanced messages after a compaction: calls by their message, results by the call that they answer."""
    before: list[Message] = []
    after: list[Message] = []
    open_calls: dict[str | None, list[int]] = {}
    for message in items:
        if message.is_placeholder:
            continue
        offset = offset_of(message)
        for call in message.calls:
            open_calls.setdefault(call.id, []).append(offset)
        if message.role == "tool":
            answered = open_calls.get(message.tool_call_id)
            offset = answered.pop() if answered else offset
        if not (where.holds(offset) if message.summary is None else where.replaces(message)):
            (before if offset < where.span.first else after).append(message)
    return [*before, *([] if where.message is None else [where.message]), *after]


def _balanced(messages: list[Message]) -> tuple[list[Message], _Walk]:
    """The reference's walk over unbalanced messages, and where it stands behind the last."""
    new: list[Message] = []
    asked: Message | None = None
    answered: set[str | None] = set()
    for message in messages:
        if message.role == "tool":
            answered.add(message.tool_call_id)
        else:
            checked = asked is None
            new.extend(_missing(asked, answered))
            asked = message if checked and message.calls else None
            answered = set()
        new.append(message)
    if asked is None:
        return new, _Walk()
    missing = _missing(asked, answered)
    return [*new, *missing], _Walk(-1, len(missing), dict(Counter(str(m.tool_call_id) for m in missing)))


def _missing(asked: Message | None, answered: set[str | None]) -> list[Message]:
    """The placeholders of the calls of `asked` that no result answers."""
    if asked is None:
        return []
    return [_placeholder(call.id, offset_of(asked)) for call in asked.calls if call.id not in answered]


def _placeholder(call_id: str, offset: int) -> Message:
    return Message("tool", CANCELLED_CONTENT, call_id, offset)
