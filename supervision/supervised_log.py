"""The log as one supervisor keeps it: claimed, levelled with the harness's own files, carried to a new session."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET

from incarnate.actors.logs import log
from incarnate.actors.turn_checkpoints import named_session
from incarnate.domain.commands import GetHead
from incarnate.domain.dialects.linker import Linker
from incarnate.domain.errors import (
    BackingOffError,
    LogCorruptionError,
    OutcomeUnknownError,
    RetiredError,
    StaleIncarnationError,
    StoreBusyError,
    StoreFileError,
    StoreServerError,
)
from incarnate.domain.events import MAX_INTEGER, Compaction
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.boundaries import SupervisedBoundaries, named_log
from incarnate.supervision.commands import cut_transcript
from incarnate.supervision.knowledge import Outlook, Reconciled
from incarnate.supervision.mind import Mind, prompt_key
from incarnate.supervision.reconcile import asked_in, level
from incarnate.supervision.recorder import Recorder
from incarnate.supervision.transcript import transcript_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.actors.runtime import Runtime
    from incarnate.actors.session import Session
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.checkpoints import Checkpoint
    from incarnate.domain.error_root import IncarnateError
    from incarnate.domain.events import Opaque, SessionEvent
    from incarnate.domain.heads import Head
    from incarnate.supervision.boundaries import Every
    from incarnate.supervision.harness import Harness
    from incarnate.supervision.recorder import Asked
    from incarnate.supervision.world import World

__all__ = ["SupervisedLog", "mended_by"]

_REFUSALS = (RetiredError, LogCorruptionError, StoreFileError)

T = TypeVar("T")

_PATIENCE_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0)  # between tries of a store that fails; the last one for ever

_TAIL = 16  # events in which a turn that is done ends: few harnesses tell anything behind that


class SupervisedLog:
    """One activation's log in the hands of one supervisor. One thread at a time calls it, but for `give_up`, `hasten`.

    Attributes:
        mind: the fold of the log, level with what this supervisor appended.
        session_id: the harness's own session, as far as it is known.
    """

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey,
        harness: Harness,
        *,
        runtime: Runtime,
        world: World,
        every: Every,
        clock: Callable[[], int],
    ) -> None:
        self._system = system
        self._key = key
        self._harness = harness
        self._began_ms = clock()
        self._runtime = runtime
        self._given_up = runtime.event()
        self._until = math.inf  # how long the store is waited for
        self._session: Session | None = None
        self.mind = Mind()
        self.session_id: str | None = None
        self._asked: bytes | None = None  # what the last life was asked
        self._boundaries = SupervisedBoundaries(
            system,
            key,
            harness.dialect.name,
            self.mind,
            world=world,
            every=every,
            argv=harness.command.argv,
            clock=clock,
        )

    @property
    def owned(self) -> Session:
        """The handle of the newest claim."""
        assert self._session is not None, "the plan levels and launches only what is claimed"
        return self._session

    def claim(self, after: int | None, on_fenced: Callable[[int], object]) -> int:
        """Take the activation, and give the incarnation. Never back from who took it over, as far as can be seen.

        `on_fenced` is told which incarnation of ours was fenced, by our own next claim too.

        Raises:
            StaleIncarnationError: somebody has it since `after`.
        """
        if after is not None:
            head = self._head()
            if head.fence is not None and head.fence > after:
                raise StaleIncarnationError(key=self._key, incarnation=after, current=head.fence)
        session = self.patiently(lambda: self._system.claim(self._key))
        self._session = session
        self._boundaries.generation = self._head().generation
        self.patiently(lambda: session.on_fenced(lambda: on_fenced(session.incarnation)))
        return session.incarnation

    def recorder(self, asked: Asked) -> Recorder:
        """What records the next life."""
        self._asked = None if asked.logged is None else prompt_key(asked.logged)
        return self.patiently(
            lambda: Recorder(
                self._system, self.owned, self._harness.dialect, asked, self._boundaries, self.mind, self.patiently
            )
        )

    def peek(self) -> Outlook | None:
        """The outlook of a log that is level as it is, with its last turn done; None where it must be claimed to know.

        Nothing is written, and nobody fenced: a restart loop around what is done takes it from nobody.
        """
        head = self._head()
        tail, mind = Mind(), Mind()
        self._read(tail, head.next_offset - _TAIL)
        if head.retired or tail.turn != "completed":
            return None  # a long log with work left is read once, when it is levelled
        self._read(mind)
        newest = self.patiently(self._boundaries.newest)
        if newest is None or newest.offset < mind.next_offset:
            return None
        session_id = None if self._is_of_another(newest, mind) else self._named(newest)
        disk = [] if session_id is None else self._harness.files.last_turn(session_id)
        is_level = not level(mind, self._last_turn(mind) if disk else (), disk, 0).drafts
        return self._outlook(mind, session_id) if is_level else None

    # levelling

    def reconcile(self, *, has_lived: bool, theirs: frozenset[str] = frozenset()) -> Reconciled:
        """Append what the harness's files know, close what is open, and make the checkpoint that is owed.

        `theirs` are sessions of others, which were perhaps asked the same.
        """
        session, mind = self.owned, self.mind
        self._read(mind)
        session_id = self._find_session(theirs, has_lived=has_lived)
        disk = [] if session_id is None else self._harness.files.last_turn(session_id)
        levelling = level(mind, self._last_turn(mind) if disk else (), disk, session.incarnation)
        if levelling.drafts:
            self._append(levelling.drafts)
        newest = self.patiently(self._boundaries.newest)
        if mind.next_offset and (newest is None or newest.offset < mind.next_offset):
            self.patiently(lambda: self._boundaries.put(session.incarnation, mind.next_offset, session_id))
        return Reconciled(self._outlook(mind, session_id), len(levelling.found))

    def _find_session(self, theirs: frozenset[str], *, has_lived: bool) -> str | None:
        """What the harness said, what the log says, or else what the harness wrote last, if it was asked the same."""
        is_theirs = False
        if self.session_id is None:
            newest = self.patiently(self._boundaries.newest)
            is_theirs = self._is_of_another(newest, self.mind)
            self.session_id = None if is_theirs else self._named(newest)
        if self.session_id is None and (has_lived or (self.mind.is_open and not is_theirs)):
            # Some print no id, and any may be killed before it is recorded.
            files = self._harness.files
            latest = files.newest(self._began_ms / 1000 if has_lived else 0.0, theirs)
            asked = None if latest is None else asked_in(files.last_turn(latest))
            self.session_id = latest if asked is not None and asked in {self._asked, self.mind.asked} else None
        return self.session_id

    def _is_of_another(self, checkpoint: Checkpoint | None, mind: Mind) -> bool:
        """Whether its session has, or will have, more than this log: that of where it was forked off, or rewound.

        Whoever went on with it would be told what the other one did, or what was taken back.
        """
        named = named_log(checkpoint)
        if named is None:
            return False
        key, generation = named
        if key == str(self._key):
            return generation < self._head().generation
        head: Head = self.patiently(lambda: self._system.activation(ActivationKey.parse(key)).ask(GetHead()))
        return not head.retired or head.next_offset != mind.next_offset

    def _named(self, checkpoint: Checkpoint | None) -> str | None:
        named = named_session(checkpoint)
        return named[1] if named is not None and named[0] == self._harness.dialect.name else None

    def _last_turn(self, mind: Mind) -> list[SessionEvent | Opaque]:
        if mind.turn_start is None:
            return []
        replayed = self.patiently(lambda: list(self._system.replay(self._key, mind.turn_offset, mind.next_offset)))
        return [appended.event for appended in replayed]

    def _append(self, drafts: Sequence[SessionEvent]) -> None:
        """Link and append, in one commit: a kill leaves all of it or nothing."""
        session, mind = self.owned, self.mind
        numbers = iter(range(self._head().next_turn, MAX_INTEGER))
        linker = Linker(mind.last_id, mind.next_offset, _no_id, lambda: next(numbers))
        if mind.is_open and mind.turn_start is not None:
            linker.open_turns.append(mind.turn_start.turn)
        events = linker.link(drafts)
        appended = self.patiently(lambda: session.emit_many(events))
        self.patiently(lambda: self._boundaries.follow(session.incarnation, appended, self.session_id))

    def _outlook(self, mind: Mind, session_id: str | None) -> Outlook:
        asked = self._harness.command.prompt
        return Outlook(
            events=mind.next_offset,
            session=session_id,
            is_here=session_id is not None and self._harness.files.is_here(session_id),
            turn=mind.turn,
            is_asked=asked is None or mind.task == prompt_key(asked),
            reason=mind.reason,
        )

    def carry(self, prompt: str) -> str:
        """The transcript as a new session can be told it, which is all that a model sees of the log from here on.

        Cut before it is committed: the log says what was handed over, beside `prompt`, and no more.
        """
        whole = self.patiently(lambda: transcript_of(self._system.replay(self._key)))
        transcript = cut_transcript(whole, prompt)
        carried = Compaction(
            id=f"carried:{self.owned.incarnation}",
            parent_id=None,
            reason="carried to a new session",
            replaces_from=0,
            replaces_to=self.mind.next_offset,
            summary=transcript or UNSET,
        )
        self.session_id = None
        self._append((carried,))
        return transcript

    # the store

    def _read(self, mind: Mind, start: int = 0) -> None:
        """Fold what the log has grown by; of a new mind, from `start` on."""
        self.patiently(lambda: mind.take(self._system.replay(self._key, max(start, mind.next_offset))))

    def _head(self) -> Head:
        head: Head = self.patiently(lambda: self._system.activation(self._key).ask(GetHead()))
        return head

    def give_up(self) -> None:
        """Wait for the store no longer."""
        self._given_up.set()

    def hasten(self, until: float) -> None:
        """Wait for the store no longer than that, in seconds of the runtime's clock."""
        self._until = min(self._until, until)

    def patiently(self, call: Callable[[], T], /) -> T:
        """The answer of a call that may be repeated as it is, however long the store is away, until a stop is asked.

        Raises:
            StoreBusyError, OutcomeUnknownError, StoreServerError, BackingOffError: and it was waited for long enough.
            StoreFileError: the same, where what is missing is room; at once, where it is anything else.
        """
        tries = 0
        while True:
            try:
                return call()
            except (StoreBusyError, OutcomeUnknownError, StoreServerError, StoreFileError, BackingOffError) as error:
                if mended_by(error):
                    raise
                pause = _PATIENCE_SECONDS[min(tries, len(_PATIENCE_SECONDS) - 1)]
                tries += 1
                if tries & (tries - 1) == 0:  # at ever longer intervals: it may be away for days
                    log(logging.WARNING, "store_failed", "the store failed %s: %s", _times(tries), error)
                left = self._until - self._runtime.monotonic()
                if left <= 0 or self._given_up.is_set() or self._given_up.wait(min(pause, left)):
                    raise


def mended_by(error: IncarnateError) -> str:
    """What mends a refusal that no waiting mends; nothing for any other error."""
    is_passing = isinstance(error, StoreFileError) and error.is_full
    return error.hint if isinstance(error, _REFUSALS) and not is_passing else ""


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times in a row"


def _no_id() -> str:
    raise AssertionError("what is levelled has ids")
