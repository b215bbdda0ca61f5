"""The checkpoints of a log that a harness's output is ingested into: at every turn end, and where a session begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET

from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.commands import GetCheckpoint, LatestCheckpoint, PutCheckpoint
from incarnate.domain.events import TurnEnd, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.events import AppendedEvent, SessionEvent
    from incarnate.domain.keys import ActivationKey

__all__ = ["HARNESS_SESSION", "Boundaries", "TurnCheckpoints", "harness_session", "named_session"]

HARNESS_SESSION = "harness-session"
"""The kind of the ledger entry that names the harness's own session: what a supervisor resumes."""


class Boundaries(Protocol):
    """Makes checkpoints where an ingested log comes to a boundary. Each call returns how many it made."""

    def is_boundary(self, draft: SessionEvent) -> bool:
        """Whether there is one right after this event, so that nothing may wait any longer to be appended."""
        ...

    def settle(self, incarnation: int, session_id: str | None) -> int:
        """What an earlier run owes; called before each append."""
        ...

    def follow(self, incarnation: int, events: Iterable[AppendedEvent], session_id: str | None) -> int:
        """Those of the events that were just appended."""
        ...

    def note_session(self, incarnation: int, offset: int, session_id: str) -> int:
        """The one that names the harness's session; its first events end at `offset`."""
        ...


class TurnCheckpoints:
    """Makes the checkpoints of one log, each right after a turn end: a record may end one turn and begin the next.

    An agent may die in its first turn, so a session that no checkpoint names yet gets one too, right after its first
    events. Not before them: on a fresh log that would be a checkpoint at 0, and a restore would erase everything.

    Their ids come from their offsets, so that a run after a kill makes none twice.
    """

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey,
        harness: str,
        *,
        commit_sha: Callable[[], str],
        clock: Callable[[], int],
    ) -> None:
        self._system = system
        self._ref = system.activation(key)
        self._key = key
        self._harness = harness
        self._commit_sha = commit_sha
        self._clock = clock
        self._settled = False

    def is_boundary(self, draft: SessionEvent) -> bool:
        """Whether a turn ends with it."""
        return isinstance(draft, TurnEnd)

    def settle(self, incarnation: int, session_id: str | None) -> int:
        """Make the checkpoint of the log's last turn end if it has none; later calls do nothing.

        A run that was killed between a turn end and its checkpoint leaves one owed. Returns how many were made.
        """
        if self._settled:
            return 0
        self._settled = True
        newest: Checkpoint | None = self._ref.ask(LatestCheckpoint())
        after = 0 if newest is None else newest.offset
        owed = after
        for appended in self._system.replay(self._key, after):
            if _ends_turn(appended):
                owed = appended.offset + 1
        if owed == after:
            return 0
        self._put("turn-end", incarnation, owed, session_id or _session_in(newest, self._harness))
        return 1

    def follow(self, incarnation: int, events: Iterable[AppendedEvent], session_id: str | None) -> int:
        """Make the checkpoints of the turn ends in `events`, which were just appended. Returns how many."""
        made = 0
        for appended in events:
            if _ends_turn(appended):
                self._put("turn-end", incarnation, appended.offset + 1, session_id)
                made += 1
        return made

    def note_session(self, incarnation: int, offset: int, session_id: str) -> int:
        """Make the checkpoint at `offset` that names the session, unless the newest one does. Returns how many."""
        if named_session(self._ref.ask(LatestCheckpoint())) == (self._harness, session_id):
            return 0
        if self._ref.ask(GetCheckpoint(f"session:{offset}")) is not None:
            return 0
        self._put("session", incarnation, offset, session_id)
        return 1

    def _put(self, kind: str, incarnation: int, offset: int, session_id: str | None) -> None:
        checkpoint = Checkpoint(
            id=f"{kind}:{offset}",
            offset=offset,
            commit_sha=self._commit_sha(),
            effect_ledger=() if session_id is None else (harness_session(self._harness, session_id),),
            incarnation=incarnation,
            at=timestamp(self._clock()),
        )
        self._ref.ask(PutCheckpoint(incarnation, checkpoint))


def harness_session(harness: str, session_id: str) -> EffectEntry:
    """The ledger entry that names the harness's own session."""
    return EffectEntry(
        id=f"{harness}:{session_id}", kind=HARNESS_SESSION, detail={"harness": harness, "sessionId": session_id}
    )


def named_session(checkpoint: Checkpoint | None) -> tuple[str, str] | None:
    """The harness and its session id that the checkpoint's ledger names, the last one if there are several."""
    for effect in reversed(() if checkpoint is None else checkpoint.effect_ledger):
        detail = effect.detail
        if effect.kind == HARNESS_SESSION and isinstance(detail, dict):
            harness, session_id = detail.get("harness"), detail.get("sessionId")
            if isinstance(harness, str) and isinstance(session_id, str):
                return harness, session_id
    return None


def _session_in(checkpoint: Checkpoint | None, harness: str) -> str | None:
    named = named_session(checkpoint)
    return named[1] if named is not None and named[0] == harness else None


def _ends_turn(appended: AppendedEvent) -> bool:
    # A turn end inside a call is a sub-agent's: the main agent is in the middle of something there.
    return isinstance(appended.event, TurnEnd) and appended.event.parent_call_id is UNSET
