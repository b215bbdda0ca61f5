"""The `valid` balancing: a history that a provider accepts, whatever was lost in a crash.

- Each call is answered exactly once, directly behind its message, in the order of the calls. An answer that has not
  come is a placeholder; when it comes it takes the placeholder's place, however far up that is.
- A result pairs with the latest unanswered call of its id, because harnesses use ids again (`Bash_0`, `item_0`).
- Calls that follow each other make one message, up to the first event of the session's own that says that the model
  was asked again or another incarnation went on. Texts and calls stay messages of their own, as in the reference.
- Orphan results, second results, blank texts (Anthropic refuses them) and unknown events are dropped and counted.
- Sub-agents and sub-calls, turn marks and usage stay out; reasoning goes along with the message that it precedes.
- System messages stay where they came.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, ClassVar, Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

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
from incarnate.domain.projections.model_compaction import Range, compact, offset_of
from incarnate.domain.projections.model_messages import (
    ROLES,
    UNANSWERED_CONTENT,
    Message,
    ResultText,
    TextBlock,
    call_block,
    with_call,
)
from incarnate.domain.projections.model_undo import UndoStack
from incarnate.domain.projections.vector import Vector

__all__ = ["Diagnostics", "ValidBalance"]

Items = Vector[Message]


class Diagnostics(Struct, frozen=True, gc=False):
    """What a history had to leave out."""

    orphans: int = 0
    """Results of no call."""
    doubles: int = 0
    """Results of a call that was already answered."""
    blanks: int = 0
    """Messages without any text."""
    unknown: int = 0
    """Events of a type that this version does not know."""


class _Step(Struct, frozen=True, gc=False):
    """What may still become part of the message that comes next."""

    incarnation: int
    group: int = -1
    """The index of the message that the next call joins."""
    thoughts: tuple[Any, ...] = ()
    """The signed thoughts that nothing has followed yet, the latest outermost: `((), first), second)`. Thousands
    may come in a row, and a flat tuple would be copied at each."""


class _Rare(Struct, frozen=True, gc=False):
    """What few events change."""

    epoch: int = 0
    """How many compactions there were: an index that was noted under another epoch may be stale."""
    summaries: tuple[Message, ...] = ()
    dropped: Diagnostics = Diagnostics()


class _Open(Struct, frozen=True, gc=False):
    """An unanswered call: the index of its answer and the epoch of that index, its offset.

    `below` holds the open call of the same id before it, if there is one, in a tuple: a bare chain of a hundred
    thousand structs is freed by as deep a recursion, which crashes.
    """

    index: int
    epoch: int
    offset: int
    below: tuple[_Open, ...] = ()


_ANSWERED = _Open(-1, -1, -1)
"""What stands for an id whose calls are all answered."""


class _Noted(Struct, frozen=True, gc=False):
    """The undo of a call or a result: the step before it, and what stood under its call id, None for nothing."""

    step: _Step
    call_id: str
    before: _Open | None


class _Handler(Protocol):
    def __call__(
        self, balance: ValidBalance, offset: int, event: Any, items: Items, size: int, generation: int, /
    ) -> Change | None: ...


class ValidBalance:
    """Says how each event changes a valid history."""

    def __init__(self) -> None:
        self._step = _Step(-1)
        self._rare = _Rare()
        self._open: dict[str, _Open] = {}
        # The undo of each event, and apart from it, by offset, of what few events change.
        self._past: UndoStack[_Step | _Noted] = UndoStack()
        self._before = self._step
        self._undo: _Step | _Noted = self._step
        self._rares: dict[int, _Rare] = {}

    @property
    def diagnostics(self) -> Diagnostics:
        """What was left out."""
        return self._rare.dropped

    def reduce(self, appended: AppendedEvent, items: Items, size: int, generation: int) -> Change:
        """How the next event changes `items`."""
        event: Any = appended.event
        self._undo = self._before = before = self._step
        handle = self._handlers.get(type(event))
        change = None
        if handle is None:
            if type(event) is Opaque:
                self._drop(appended.offset, unknown=1)
        elif event.parent_call_id is UNSET:
            if before.incarnation != appended.incarnation:
                self._step = _Step(appended.incarnation)
            change = handle(self, appended.offset, event, items, size, generation)
        self._past.recent.append(self._undo)
        return change or Change(generation, size, ())

    def forget(self, offset: int) -> None:
        """Undo what the newest event, at `offset`, changed."""
        self._rare = self._rares.pop(offset, self._rare)
        undo = self._past.pop()
        if isinstance(undo, _Step):
            self._step = undo
        else:
            self._step = undo.step
            if undo.before is None:
                del self._open[undo.call_id]
            else:
                self._open[undo.call_id] = undo.before

    def seal(self) -> None:
        """Seal the undo."""
        self._past.seal()

    def _text(self, offset: int, event: Any, _items: Items, size: int, generation: int) -> Change | None:
        text, role = event.text, ROLES[type(event)]
        if not text or text.isspace():
            self._drop(offset, blanks=1)
            return None
        step = self._step
        thinking: tuple[Reasoning, ...] = ()
        if step.group >= 0 or step.thoughts:
            self._step = _Step(step.incarnation)
            if step.thoughts and role == "assistant":
                thinking = _flat(step.thoughts)
        return Change(generation, size, (Message(role, (TextBlock(text),), None, offset, thinking),))

    def _think(self, _offset: int, event: Reasoning, _items: Items, _size: int, _generation: int) -> None:
        step = self._step
        # Without its signature a thought can be sent nowhere, and is no part of a message.
        thoughts = (step.thoughts, event) if event.provider_continuation else step.thoughts
        if step.group >= 0 or thoughts is not step.thoughts:
            self._step = _Step(step.incarnation, -1, thoughts)

    def _call(self, offset: int, event: ToolCall, items: Items, size: int, generation: int) -> Change:
        step, call_id = self._step, event.call_id
        answer = Message("tool", UNANSWERED_CONTENT, call_id, offset)
        block = call_block(event)
        if step.group >= 0:
            old = items[step.group]
            content = with_call(old.content, block)
            joined = Message("assistant", content, None, old.offset, old.thinking)
            change = Change(generation, size, (answer,), ((step.group, joined),))
        else:
            thinking = _flat(step.thoughts) if step.thoughts else ()
            message = Message("assistant", (block,), None, offset, thinking)
            change = Change(generation, size, (message, answer))
            self._step = _Step(step.incarnation, size)
            size += 1
        before = self._open.get(call_id)
        self._undo = _Noted(self._before, call_id, before)
        below = () if before is None or before is _ANSWERED else (before,)
        self._open[call_id] = _Open(size, self._rare.epoch, offset, below)
        return change

    def _result(self, offset: int, event: ToolResult, items: Items, size: int, generation: int) -> Change | None:
        self._end_step()
        call_id = event.call_id
        call = self._open.get(call_id)
        if call is None or call is _ANSWERED:
            self._drop(offset, orphans=int(call is None), doubles=int(call is not None))
            return None
        self._undo = _Noted(self._before, call_id, call)
        self._open[call_id] = call.below[0] if call.below else _ANSWERED
        index, at = call.index, call.offset
        if call.epoch != self._rare.epoch:
            index = bisect_right(items, at, key=offset_of) - 1
            if index < 0 or items[index].role != "tool" or items[index].offset != at:
                return None  # a compaction took the call, and the answer goes with it
        return Change(generation, size, (), ((index, Message("tool", ResultText(event), call_id, at)),))

    def _compact(self, offset: int, event: Compaction, items: Items, _size: int, generation: int) -> Change:
        self._end_step()
        rare = self._rare
        done = compact(items, Range.of(event, offset), rare.summaries)
        self._rares[offset] = rare
        self._rare = _Rare(rare.epoch + 1, done.summaries, rare.dropped)
        return Change(generation, done.keep, done.tail)

    def _mark(self, _offset: int, _event: object, _items: Items, _size: int, _generation: int) -> None:
        self._end_step()

    def _end_step(self) -> None:
        """Whatever comes next is part of another message."""
        step = self._step
        if step.group >= 0 or step.thoughts:
            self._step = _Step(step.incarnation)

    def _drop(self, offset: int, **counts: int) -> None:
        rare = self._rare
        self._rares[offset] = rare
        dropped = {name: getattr(rare.dropped, name) + count for name, count in counts.items()}
        self._rare = replace(rare, dropped=replace(rare.dropped, **dropped))

    _handlers: ClassVar[dict[type, _Handler]] = {
        SystemMessage: _text,
        UserMessage: _text,
        AssistantMessage: _text,
        Reasoning: _think,
        ToolCall: _call,
        ToolResult: _result,
        Compaction: _compact,
        TurnStart: _mark,
        TurnEnd: _mark,
    }


def _flat(thoughts: tuple[Any, ...]) -> tuple[Reasoning, ...]:
    flat: list[Reasoning] = []
    while thoughts:
        thoughts, thought = thoughts
        flat.append(thought)
    return tuple(reversed(flat))
