"""How a session may be gone on with, as its log tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from incarnate.actors.resuming import way_of
from incarnate.actors.turn_checkpoints import named_session
from incarnate.cli.errors import UsageFailure
from incarnate.cli.options import known_head
from incarnate.domain.codec import encode_appended
from incarnate.domain.commands import LatestCheckpoint

if TYPE_CHECKING:
    from incarnate.actors.resuming import Way
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.keys import ActivationKey

__all__ = ["Plan", "lack", "plan_of"]


class Plan(NamedTuple):
    """All that is known of going on with an activation."""

    key: ActivationKey
    incarnation: int | None
    checkpoint: Checkpoint | None
    seed_events: int
    seed_bytes: int
    next_offset: int
    discards: int
    harness: str | None
    session_id: str | None
    prompt: str

    @property
    def way(self) -> Way | None:
        """How the harness resumes the session, where both are known."""
        return way_of(self.harness, self.session_id, self.prompt)


def plan_of(
    system: SessionSystem, key: ActivationKey, harness: str | None, session_id: str | None, prompt: str
) -> Plan:
    """What the newest checkpoint and the log tell."""
    head = known_head(system, key)
    checkpoint: Checkpoint | None = system.activation(key).ask(LatestCheckpoint())
    # Without a checkpoint nothing is restored: a lease goes on at the head, and the library refuses to erase the log.
    offset = head.next_offset if checkpoint is None else checkpoint.offset
    named = named_session(checkpoint)
    if named is not None and harness in {None, named[0]}:
        harness, session_id = named[0], session_id or named[1]
    elif (harness is None) != (session_id is None):
        raise UsageFailure(lack(key, checkpoint), "give both --harness and --session-id")
    events = 0 if checkpoint is None else offset
    size = sum(len(encode_appended(appended)) + 1 for appended in system.replay(key, 0, events))
    discards = head.next_offset - offset
    return Plan(key, head.fence, checkpoint, events, size, offset, discards, harness, session_id, prompt)


def lack(key: ActivationKey, checkpoint: Checkpoint | None) -> str:
    """What a session to go on with is missing."""
    if checkpoint is None:
        return f"{key} has no checkpoint yet"
    named = named_session(checkpoint)
    return f"the newest checkpoint of {key} names {'no session' if named is None else f'a session of {named[0]}'}"
