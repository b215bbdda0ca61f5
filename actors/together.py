"""Emits of many sessions by one thread, in one transaction of the store.

A thread each would have to be woken for its one event and wait for the others at the disk. Here one thread holds all
of the sessions and actors for a moment, each by taking what nobody else has: it never waits for one while it holds
another. What is not free goes the ordinary way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.actors.activation import Finish, Prepare, Prepared
from incarnate.domain.errors import OutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.actors.addresses import Address
    from incarnate.actors.session import Begun, Session
    from incarnate.domain.decisions import Decision
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent

__all__ = ["Emit", "emit_together"]


class Emit:
    """One call of `Session.emit`, and what came of it: where there is neither, it is left to that."""

    def __init__(self, session: Session, event: SessionEvent | Opaque) -> None:
        self._session = session
        self._event = event
        self._begun: Begun | None = None
        self._held: Address | None = None
        self._prepared: Prepared | None = None
        self.appended: AppendedEvent | None = None
        self.error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it was written or refused."""
        return self.appended is not None or self.error is not None

    def prepare(self) -> Prepared | None:
        """Hold the session and its actor, where both are free, and encode the event; what its store is to do."""
        try:
            begun = self._begun = self._session.begin_emit(self._event)
        except Exception:  # noqa: BLE001 - `Session.emit` says so
            return None
        try:
            if begun is not None:
                self._held = begun.ref.held()
            if begun is not None and self._held is not None:
                self._prepared = self._held.answer(Prepare(begun.command))
        except BaseException as error:  # noqa: BLE001 - it is the answer to this one, and the others go on
            self.error = error
        if self._prepared is None:
            self.let_go()
        return self._prepared

    def finish(self, found: Decision | BaseException) -> None:
        """Take what the store came to, tell whoever subscribes, and hold nothing any more."""
        begun, held, prepared = self._begun, self._held, self._prepared
        assert begun is not None, "what is finished was prepared"
        assert held is not None, "what was prepared is held"
        assert prepared is not None, "what is finished was prepared"
        try:
            self.appended = held.answer(Finish(prepared, found))
            begun.ref.answered()
        except BaseException as error:  # noqa: BLE001 - as above
            self.error = error
        self.let_go()

    def trim(self) -> None:
        """Put to rest whoever is too many, now that nobody is held any more."""
        self._session.trim()

    def let_go(self) -> None:
        """Hold nothing any more, whatever came of it."""
        held, self._held = self._held, None
        begun, self._begun = self._begun, None
        try:
            if held is not None:
                held.let_go()
        finally:
            if begun is not None:
                self._session.end_emit(written=self.appended is not None)


def emit_together(emits: Sequence[Emit]) -> None:
    """Write what can be written at once of `emits`, which are of one system; not on the main thread.

    Of two of one session only the first is.
    """
    try:
        ready = [(emit, prepared) for emit in emits if (prepared := emit.prepare()) is not None]
        if ready:
            for (emit, _), found in zip(ready, _outcomes([prepared for _, prepared in ready]), strict=True):
                emit.finish(found)
            ready[0][0].trim()
    finally:
        for emit in emits:
            emit.let_go()


def _outcomes(prepared: Sequence[Prepared]) -> Sequence[Decision | BaseException]:
    try:
        found = prepared[0].store.transact_each([one.transaction for one in prepared])
        if len(found) != len(prepared):
            raise OutcomeUnknownError(f"the store answered {len(found)} of {len(prepared)} calls")
    except BaseException as error:  # noqa: BLE001 - whatever it is, each is answered
        return [error] * len(prepared)
    return found
