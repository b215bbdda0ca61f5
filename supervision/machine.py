"""What one machine knows of its supervisors: who lives, and what those that died have left alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from incarnate.supervision.edge import Deadlines, Edge, Identity

__all__ = ["LoneMachine", "Machine"]


class Machine(Protocol):
    """The supervisors of one activation on this machine, as one of them sees the others."""

    def end_leftovers(self, edge: Edge, deadlines: Deadlines) -> None:
        """End what supervisors that died had started, by its recorded identity."""
        ...

    def has_predecessor(self) -> bool:
        """Whether another supervisor of this activation lives here that was there before this one."""
        ...

    def sessions(self) -> frozenset[str]:
        """The harnesses' own sessions that other supervisors here have, of whatever activation."""
        ...

    def end_predecessor(self, edge: Edge, deadlines: Deadlines) -> None:
        """End what the other ones had started; they are fenced, and should have done so."""
        ...

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
        """Record what others should know. It is on disk when this returns, so that a kill right after loses nothing."""
        ...

    def close(self) -> None:
        """This supervisor is over, and left nothing."""
        ...


class LoneMachine:
    """Nobody else is here, and nothing is recorded: for tests, and where a container holds one supervisor alone."""

    def end_leftovers(self, edge: Edge, deadlines: Deadlines) -> None:
        """Nothing."""

    def has_predecessor(self) -> bool:
        """Never."""
        return False

    def sessions(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def end_predecessor(self, edge: Edge, deadlines: Deadlines) -> None:
        """Nothing."""

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
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
