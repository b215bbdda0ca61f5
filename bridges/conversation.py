"""A conversation of items, kept as the log of an activation by one of its incarnations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from incarnate.bridges.openai_items import is_item, rewound, to_event, to_item
from incarnate.domain.commands import AppendMany, Claim, GetHead, Lease, Replay
from incarnate.domain.errors import OffsetError, OutcomeUnknownError, StaleIncarnationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.actors.directory import ActivationRef
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent
    from incarnate.domain.heads import Head

__all__ = ["Conversation"]

_TRIES = 3
_FEW_OTHERS = 16  # events between items, such as turn marks, that a short read makes room for


class _Write(NamedTuple):
    """A write of unknown outcome: what asked for it, what was sent, and what to answer once it is in the log."""

    request: tuple[str, Any]
    command: AppendMany
    last_id: str
    reply: Any


class Conversation:
    """Items in order. Its first call takes the activation. Every call blocks; never two at once.

    Every call may raise:
        StaleIncarnationError: a newer incarnation has taken over; stop.
        HeadMovedError: somebody else wrote with the same incarnation; the next call goes on from there.
        StoreBusyError, ClosedError, ForkedError: see each.
        OutcomeUnknownError: from what writes. The same call made next does not double it; after any other, `items`
            tells whether it happened.
    """

    def __init__(self, ref: ActivationRef, incarnation: int | None, new_id: Callable[[], str]) -> None:
        self.incarnation = incarnation
        self._ref = ref
        self._new_id = new_id
        self._seen: tuple[int, int] | None = None  # None: not taken, or not known where the log stands
        self._tip: tuple[int, str] | None = None  # the offset after our last write, and the id that stands before it
        self._unsettled: _Write | None = None

    def take(self) -> int:
        """Take the activation, unless that was done; the incarnation."""
        if self._seen is None:
            head: Head = self._ref.ask(Claim() if self.incarnation is None else Lease(self.incarnation))
            assert head.fence is not None, "a claim and a lease raise the fence"
            self.incarnation = head.fence
            self._seen = head.expected
        assert self.incarnation is not None, "it was just taken"
        return self.incarnation

    def items(self, limit: int | None = None) -> list[Any]:
        """All items, or the last `limit`; a negative limit is none, as in the SDK's own sessions."""
        self._unsettled = None
        self.take()
        if limit is None or limit < 0:
            self._owned_head()
            return [to_item(appended.event) for appended in self._events(0) if is_item(appended.event)]
        return [to_item(appended.event) for appended in self._tail(limit)]

    def add(self, items: Sequence[Any]) -> None:
        """Append items, all or none.

        Raises:
            UnencodableEventError: a value outside the encoding contract; its path begins with `$[INDEX]`.
        """
        request = ("add", items)
        if items and not self._is_settled(request):
            self.take()
            offset = self._offset()
            events: list[SessionEvent | Opaque] = []
            parent_id = self._id_before(offset)
            for index, item in enumerate(items):
                events.append(to_event(item, self._new_id(), parent_id, f"$[{index}]"))
                parent_id = events[-1].id
            self._write(request, offset, events)

    def pop(self) -> Any:
        """Take the last item away and give it back; None where there is none."""
        request = ("pop_item", None)
        if (unsettled := self._is_settled(request)) is not None:
            return unsettled.reply
        self.take()
        last = self._tail(1)
        if not last:
            return None
        item = to_item(last[0].event)
        self._rewind(request, last[0].offset, item)
        return item

    def rewind(self, offset: int, by: str = "rewind_to") -> None:
        """Take everything away from `offset` on, knowingly.

        Raises:
            OffsetError: `offset` is below 0 or above the head.
        """
        request = (by, offset)
        if self._is_settled(request) is None:
            self.take()
            if not 0 <= offset <= self._offset():
                raise OffsetError(f"{self._ref.key} ends at {self._offset()}: it cannot be rewound to {offset}")
            if offset < self._offset():
                self._rewind(request, offset)

    def _rewind(self, request: tuple[str, Any], offset: int, reply: Any = None) -> None:
        # A rewind is an append below the head, so something must stand there. It is never written over by the next
        # item: that would prune a checkpoint which was made above it.
        self._write(request, offset, [rewound(self._new_id(), self._id_before(offset), request[0])], reply)

    def _write(
        self, request: tuple[str, Any], offset: int, events: Sequence[SessionEvent | Opaque], reply: Any = None
    ) -> None:
        command = AppendMany(self.take(), offset, tuple(events), self._seen)
        self._send(_Write(request, command, events[-1].id, reply))

    def _is_settled(self, request: tuple[str, Any]) -> _Write | None:
        """Bring the write of unknown outcome to an end if `request` asks for the same again; forget it otherwise."""
        unsettled, self._unsettled = self._unsettled, None
        if unsettled is None or unsettled.request != request:
            return None
        self._send(unsettled)
        return unsettled

    def _send(self, write: _Write) -> None:
        command, self._seen, self._tip = write.command, None, None
        assert command.expected_head is not None, "it says where the log was seen"
        generation, next_offset = command.expected_head
        for tries in range(1, _TRIES + 1):
            try:
                self._ref.ask(command)  # whatever it raises, the next call asks where the log stands
                break
            except OutcomeUnknownError:
                if tries == _TRIES:
                    self._unsettled = write
                    raise
        end = command.offset + len(command.events)
        self._seen = (generation + (command.offset < next_offset), end)
        self._tip = (end, write.last_id)

    def _offset(self) -> int:
        assert self._seen is not None, "it was taken before"
        return self._seen[1]

    def _id_before(self, offset: int) -> str | None:
        if self._tip is not None and self._tip[0] == offset:
            return self._tip[1]
        before = self._events(offset - 1, offset) if offset else ()
        return before[0].event.id if before else None

    def _events(self, start: int, stop: int | None = None) -> tuple[AppendedEvent, ...]:
        events: tuple[AppendedEvent, ...] = self._ref.ask(Replay(start, stop))
        return events

    def _owned_head(self) -> int:
        """Where the log ends. Who was taken over is told so before its agent begins another turn."""
        head: Head = self._ref.ask(GetHead())
        if self.incarnation is not None and head.fence is not None and head.fence > self.incarnation:
            raise StaleIncarnationError(key=self._ref.key, incarnation=self.incarnation, current=head.fence)
        return head.next_offset

    def _tail(self, count: int) -> list[AppendedEvent]:
        """The last `count` events that are items, read from the end."""
        window = count + _FEW_OTHERS
        while True:
            start = max(0, self._owned_head() - window)
            found = [appended for appended in self._events(start) if is_item(appended.event)]
            if len(found) >= count or start == 0:
                return found[len(found) - min(count, len(found)) :]
            window *= 2
