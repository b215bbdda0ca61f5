"""The supervisors of one activation on this machine, by the records that each keeps of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from incarnate.domain.events import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.supervision.edge import Deadlines, Edge, Identity
    from incarnate.supervision.registry import Found, Registry, RunRecord

__all__ = ["Neighbours"]


class Neighbours:
    """One supervisor's record, and what it sees of the others. The record is there until `close`, or until it dies."""

    def __init__(self, registry: Registry, record: RunRecord, clock: Callable[[], int]) -> None:
        self._registry = registry
        self._record = record
        self._clock = clock
        self._entry = registry.open(record)
        # Those that come later are successors: they fence us, and wait for us. Two that begin at once see each other,
        # and the one that is fenced goes.
        there = frozenset(_name(found.record) for found in registry.live() if self._is_same(found.record))
        self._older = there - {_name(record)}

    def end_leftovers(self, edge: Edge, deadlines: Deadlines) -> None:
        """What dead supervisors of any activation left: nobody else looks for it."""
        for found in self._registry.dead():
            if found.record.identity is not None:
                edge.leftovers(found.record.identity, deadlines)
            found.forget()

    def has_predecessor(self) -> bool:
        """Whether one that was there before us lives, and may have a harness."""
        return bool(self._predecessors())

    def sessions(self) -> frozenset[str]:
        """Those of the others that live: of one's own activation the log tells."""
        others = [found.record for found in self._registry.live() if found.record.key != self._record.key]
        return frozenset(record.session for record in others if record.session is not None)

    def end_predecessor(self, edge: Edge, deadlines: Deadlines) -> None:
        """Its harness; the supervisor itself is left to find out that it is fenced."""
        for found in self._predecessors():
            if found.record.identity is not None:
                edge.leftovers(found.record.identity, deadlines)

    def note(
        self,
        *,
        phase: str,
        incarnation: int | None,
        identity: Identity | None,
        restarts: int,
        offset: int,
        session: str | None,
    ) -> None:
        """Write the record anew."""
        is_new = offset != self._record.offset
        self._record = replace(
            self._record,
            phase=phase,
            incarnation=incarnation,
            identity=identity,
            restarts=restarts,
            offset=offset,
            offset_at=timestamp(self._clock()) if is_new else self._record.offset_at,
            session=session,
        )
        self._entry.update(self._record)

    def close(self) -> None:
        """Remove the record."""
        self._entry.close()

    def _predecessors(self) -> list[Found]:
        return [found for found in self._registry.live() if _name(found.record) in self._older]

    def _is_same(self, other: RunRecord) -> bool:
        """Of the same activation, and here: elsewhere nothing of it can be ended."""
        is_same = (other.key, other.store) == (self._record.key, self._record.store)
        return is_same and self._registry.is_here(other)


def _name(record: RunRecord) -> tuple[int, str]:
    return record.pid, record.started_at
