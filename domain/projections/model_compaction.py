"""What a compaction does to a list of messages: its offset range goes, its summary comes.

A call and its answer go together: both are out when the call is inside the range, and both stay when it is outside.
A summary is itself replaced by a later compaction that names its event or covers all that it stands for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import takewhile

from msgspec import UNSET, Struct

from incarnate.domain.events import Compaction
from incarnate.domain.projections.model_messages import CallBlock, Message, Summary, TextBlock, calls_content
from incarnate.domain.projections.vector import Vector

__all__ = ["Compacted", "Range", "compact", "offset_of"]


class Compacted(Struct, frozen=True):
    """A list after a compaction: its first `keep` messages stay, `tail` stands behind them."""

    keep: int
    tail: tuple[Message, ...]
    summaries: tuple[Message, ...]


class Range(Struct, frozen=True, gc=False):
    """The offsets that a compaction replaces, and the message that stands for them, if it brought one."""

    span: Summary
    message: Message | None

    @classmethod
    def of(cls, event: Compaction, offset: int) -> Range:
        """The range of the compaction at `offset`."""
        first = min(event.replaces_from, offset)
        span = Summary(first, max(first, min(event.replaces_to, offset)), offset)
        text = "" if event.summary is UNSET else event.summary
        if not text or text.isspace():
            return cls(span, None)
        # A prompt, as the harnesses put it: a provider takes no other role for it, and it may come first.
        return cls(span, Message("user", (TextBlock(text),), None, first, (), span))

    def holds(self, offset: int) -> bool:
        """Whether it replaces the event at `offset`."""
        return self.span.first <= offset < self.span.end

    def replaces(self, message: Message) -> bool:
        """Whether it replaces a message that is no answer to a call."""
        old = message.summary
        if old is None:
            return self.holds(offset_of(message))
        covered = old.first < old.end and self.span.first <= old.first and old.end <= self.span.end
        return covered or self.holds(old.offset)


def offset_of(message: Message) -> int:
    """Where a message of a history stands in its log."""
    assert message.offset is not None
    return message.offset


def compact(items: Vector[Message], where: Range, summaries: tuple[Message, ...]) -> Compacted:
    """`items`, each of whose calls is answered directly behind its message, after a compaction.

    `summaries` are those of former compactions that are still in `items`. The cost is that of what stands behind the
    first message that goes.
    """
    start = _first_touched(items, where, summaries)
    old = items[start:]
    new = _refilled(old, where)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(old, new, strict=False)))
    kept = tuple(message for message in summaries if not where.replaces(message))
    live = kept if where.message is None else (*kept, where.message)
    return Compacted(start + same, tuple(new[same:]), live)


def _first_touched(items: Vector[Message], where: Range, summaries: tuple[Message, ...]) -> int:
    start = bisect_left(items, where.span.first, key=offset_of)
    for message in summaries:
        if where.replaces(message):  # it stands where its range began, which may be before this one
            start = min(start, bisect_left(items, offset_of(message), key=offset_of))
    while 0 < start < len(items) and items[start].role == "tool":
        start -= 1  # answers go with the message of their calls
    return start


def _refilled(old: Sequence[Message], where: Range) -> list[Message]:
    """The messages that stay and the summary, in the order of the log."""
    first = where.span.first
    before: list[Message] = []
    after: list[Message] = []
    at = 0
    while at < len(old):
        message = old[at]
        at += 1
        if isinstance(message.content[0], CallBlock):
            answers = old[at : at + len(message.content)]
            at += len(answers)
            _split(message, answers, where, before, after)
        elif not where.replaces(message):
            (before if offset_of(message) < first else after).append(message)
    return [*before, *([] if where.message is None else [where.message]), *after]


def _split(
    message: Message, answers: Sequence[Message], where: Range, before: list[Message], after: list[Message]
) -> None:
    """Put the calls that stay, with their answers, to the side of the range on which they are."""
    first, end = where.span.first, where.span.end
    calls = list(zip(message.content, answers, strict=True))
    for side, group in (
        (before, [call for call in calls if offset_of(call[1]) < first]),
        (after, [call for call in calls if offset_of(call[1]) >= end]),
    ):
        if len(group) == len(calls):
            side.extend((message, *answers))
        elif group:
            side.extend((_part(message, group), *(answer for _, answer in group)))


def _part(message: Message, group: list[tuple[TextBlock | CallBlock, Message]]) -> Message:
    offset = group[0][1].offset
    # What was thought came before the first call; without it the thought would stand before another.
    thinking = message.thinking if offset == message.offset else ()
    return Message("assistant", calls_content([block for block, _ in group]), None, offset, thinking)
