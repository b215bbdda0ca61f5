"""The checkpoints of a supervised log: at each boundary, with the world's commit and what tools did since the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import UNSET

from incarnate.actors.turn_checkpoints import harness_session, named_session
from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.commands import LatestCheckpoint, PutCheckpoint
from incarnate.domain.events import ToolCall, ToolResult, TurnEnd, timestamp
from incarnate.supervision.commands import legible
from incarnate.supervision.reconcile import GUESSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.events import AppendedEvent, SessionEvent
    from incarnate.domain.keys import ActivationKey
    from incarnate.supervision.mind import Mind
    from incarnate.supervision.world import World

__all__ = ["HARNESS_COMMAND", "Every", "SupervisedBoundaries", "named_command", "named_log"]

Every = Literal["turn", "tool"]

_MOST_EFFECTS = 1000  # tools in one ledger: what a turn of any length did fits into memory and into one event

HARNESS_COMMAND = "harness-command"
"""The kind of the ledger entry that holds the command line: what another machine needs to go on."""


class SupervisedBoundaries:
    """Makes the checkpoints of one supervisor, and folds what is appended into its mind.

    `generation` is the log's, since the claim.
    """

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey,
        harness: str,
        mind: Mind,
        *,
        world: World,
        every: Every,
        argv: tuple[str, ...],
        clock: Callable[[], int],
    ) -> None:
        self._ref = system.activation(key)
        self._key = str(key)
        self.generation = 0
        self._harness = harness
        self._mind = mind
        self._world = world
        self._every = every
        self._argv = [legible(word) for word in argv]
        self._clock = clock
        self._names: dict[str, str] = {}
        self._effects: list[EffectEntry] = []  # since the last checkpoint
        self._left_out = 0
        self._due: list[int] = []

    def is_boundary(self, draft: SessionEvent) -> bool:
        """Whether a turn, or with `tool` a call of the main agent, ends with it."""
        if draft.parent_call_id is not UNSET:
            return False
        return isinstance(draft, TurnEnd) or (self._every == "tool" and isinstance(draft, ToolResult))

    def settle(self, incarnation: int, session_id: str | None) -> int:  # noqa: ARG002 - the port's
        """Nothing: what an earlier run owes is made when the log is levelled."""
        return 0

    def follow(self, incarnation: int, events: Iterable[AppendedEvent], session_id: str | None) -> int:
        """Those of the events that were just appended; they share one look at the world.

        May be called again after a failure: nothing is taken twice, and what is owed is made.
        """
        for appended in events:
            if appended.offset >= self._mind.next_offset:
                self._mind.take((appended,))
                self._due += [appended.offset + 1] if self._note(appended) else []
        made = 0
        while self._due:
            self.put(incarnation, self._due[0], session_id, look=len(self._due) == 1)
            del self._due[0]
            made += 1
        return made

    def note_session(self, incarnation: int, offset: int, session_id: str) -> int:
        """The one that names the session, unless the newest one does."""
        if named_session(self.newest()) == (self._harness, session_id):
            return 0
        self.put(incarnation, offset, session_id)
        return 1

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint."""
        found: Checkpoint | None = self._ref.ask(LatestCheckpoint())
        return found

    def put(self, incarnation: int, offset: int, session_id: str | None, *, look: bool = True) -> None:
        """Make one. Its id says whose it is: two supervisors may each have one at an offset."""
        seen = self._world.look() if look else None
        self._effects += () if seen is None else seen.effects
        if self._left_out:
            self._effects.append(EffectEntry(id="more", kind="tools", detail={"count": self._left_out}))
        named = () if session_id is None else (harness_session(self._harness, session_id),)
        command = EffectEntry(id=self._harness, kind=HARNESS_COMMAND, detail=self._told_of_run())
        checkpoint = Checkpoint(
            id=f"run:{incarnation}:{offset}",
            offset=offset,
            commit_sha="-" if seen is None else seen.commit_sha,
            effect_ledger=(*named, command, *self._effects),
            incarnation=incarnation,
            at=timestamp(self._clock()),
        )
        self._ref.ask(PutCheckpoint(incarnation, checkpoint))
        self._effects, self._left_out = [], 0

    def _told_of_run(self) -> dict[str, object]:
        return {"argv": self._argv, "key": self._key, "generation": self.generation}

    def _note(self, appended: AppendedEvent) -> bool:
        """Remember what a tool did; whether there is a boundary behind this event."""
        event = appended.event
        if isinstance(event, ToolCall):
            self._names[event.call_id] = event.name
        elif isinstance(event, ToolResult):
            name = self._names.pop(event.call_id, None)
            detail = {"tool": name, "ok": event.ok, "unknown": event.id.startswith(GUESSED)}
            if len(self._effects) < _MOST_EFFECTS:
                self._effects.append(EffectEntry(id=event.call_id, kind="tool", detail=detail))
            else:
                self._left_out += 1
        return isinstance(event, TurnEnd | ToolResult) and self.is_boundary(event)


def named_command(checkpoint: Checkpoint | None) -> tuple[str, tuple[str, ...]] | None:
    """The harness and its command line, with `{prompt}` in the prompt's place, that the checkpoint names."""
    for effect in () if checkpoint is None else checkpoint.effect_ledger:
        if effect.kind == HARNESS_COMMAND and isinstance(effect.detail, dict):
            argv = effect.detail.get("argv")
            if isinstance(argv, list):
                return effect.id, tuple([str(word) for word in argv])
    return None


def named_log(checkpoint: Checkpoint | None) -> tuple[str, int] | None:
    """The activation whose supervisor made the checkpoint, and how often it had been rewound by then."""
    for effect in () if checkpoint is None else checkpoint.effect_ledger:
        if effect.kind == HARNESS_COMMAND and isinstance(effect.detail, dict):
            key, generation = effect.detail.get("key"), effect.detail.get("generation")
            return (key, generation) if isinstance(key, str) and isinstance(generation, int) else None
    return None
