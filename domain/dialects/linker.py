"""Drafts to events: parents, ids, turn numbers and the place of compactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from incarnate.domain.dialects.base import UNNUMBERED, UNPLACED
from incarnate.domain.events import Compaction, SessionEvent, TurnEnd, TurnStart

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Linker"]


class Linker:
    """Links the drafts of one log, record by record, in the order in which they are appended.

    `parent_id` and `next_offset` say where the log ends, `new_id` gives an id for a draft without one and `next_turn`
    a number for a turn that begins. The same drafts with the same answers of both give the same events, which is how
    a second run over a file finds what the log already holds.

    Attributes:
        parent_id: the id of the last event linked.
        next_offset: where the next event lands.
        open_turns: the numbers of the turns that began here and have not ended, oldest first.
    """

    def __init__(
        self, parent_id: str | None, next_offset: int, new_id: Callable[[], str], next_turn: Callable[[], int]
    ) -> None:
        self.parent_id = parent_id
        self.next_offset = next_offset
        self.open_turns: deque[int] = deque()
        self._new_id = new_id
        self._next_turn = next_turn

    def link(self, drafts: Iterable[SessionEvent]) -> tuple[SessionEvent, ...]:
        """The drafts as events that follow each other and the last one linked."""
        return tuple([self.link_one(draft) for draft in drafts])

    def link_one(self, draft: SessionEvent) -> SessionEvent:
        """The draft as the event that follows the last one linked."""
        return self.link_as(draft.id or self._new_id(), draft)

    def link_as(self, event_id: str, draft: SessionEvent) -> SessionEvent:
        """The same, with this id in place of its own."""
        place = _PLACES.get(type(draft))
        if place is None:
            event = replace(draft, id=event_id, parent_id=self.parent_id)
        else:
            event = replace(draft, id=event_id, parent_id=self.parent_id, **place(self, draft))
        self.parent_id = event_id
        self.next_offset += 1
        return event

    def _start(self, draft: TurnStart) -> dict[str, int]:
        number = self._next_turn() if draft.turn == UNNUMBERED else draft.turn
        self.open_turns.append(number)
        return {"turn": number}

    def _end(self, draft: TurnEnd) -> dict[str, int]:
        turn = draft.turn
        if turn != UNNUMBERED:
            if turn in self.open_turns:
                self.open_turns.remove(turn)
            return {"turn": turn}
        # Without a start the end still needs a number that no other turn has.
        return {"turn": self.open_turns.popleft() if self.open_turns else self._next_turn()}

    def _compact(self, draft: Compaction) -> dict[str, int]:
        begin, end = draft.replaces_from, draft.replaces_to
        if begin < 0:
            begin = 0 if begin == UNPLACED else self._back(begin)
        return {"replaces_from": begin, "replaces_to": self._back(end) if end < 0 else end}

    def _back(self, place: int) -> int:
        """`kept(n)`, counted back from here; what was kept may lie before this log began."""
        return max(0, self.next_offset + place - UNPLACED)


# Looked up by the very type, which takes a tenth of what asking `isinstance` three times does.
_PLACES: dict[type, Callable[[Linker, Any], dict[str, int]]] = {
    TurnStart: Linker._start,  # noqa: SLF001 - its own
    TurnEnd: Linker._end,  # noqa: SLF001
    Compaction: Linker._compact,  # noqa: SLF001
}
