"""Emits of many sessions by one thread, in one transaction of the store.

A thread each would have to be woken for its one event and wait for the others at the disk. Here one thread holds all
of the sessions and actors for a moment, each by taking what nobody else has: it never waits for one while it holds
another. What is not free goes the ordinary way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.actors.activation import Finish, Prepare, Prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incarnate.actors.addresses import Address
    from incarnate.actors.session import Session
    from incarnate.domain.decisions import Decision
    from incarnate.domain.events import AppendedEvent, Opaque, SessionEvent

__all__ = ["Emit", "emit_together"]


class Emit:
    """One call of `Session.emit`, and what came of it: where there is neither, it is left to that."""

    def __init__(self, session: Session, event: SessionEvent | Opaque) -> None:
        self._session = session
        self._event = event
        self._held: Address | None = None
        self.appended: AppendedEvent | None = None
        self.error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it was written or refused."""
        return self.appended is not None or self.error is not None

    def prepare(self) -> Prepared | None:
        """Hold the session and its actor, where both are free, and encode the event; what its store is to do."""
        try:
            begun = self._session.begin_emit(self._event)
        except Exception:  # noqa: BLE001 - `Session.emit` says so
            return None
        if begun is None:
            return None
        prepared: Prepared | None = None
        try:
            self._held = begun.ref.held()
            if self._held is not None:
                prepared = self._held.answer(Prepare(begun.command))
        except BaseException as error:  # noqa: BLE001 - it is the answer to this one, and the others go on
            self.error = error
        if prepared is None:
            self._let_go()
        return prepared

    def finish(self, prepared: Prepared, found: Decision | BaseException) -> None:
        """Take what the store came to, tell whoever subscribes, and hold nothing any more."""
        assert self._held is not None, "what was prepared is held"
        try:
            self.appended = self._held.answer(Finish(prepared, found))
        except BaseException as error:  # noqa: BLE001 - as above
            self.error = error
        self._let_go()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.let_go()
        self._session.end_emit(written=self.appended is not None)


def emit_together(emits: Sequence[Emit]) -> None:
    """Write what can be written at once of `emits`, which are of one system; not on the main thread.

    Of two of one session only the first is.
    """
    ready = [(emit, prepared) for emit in emits if (prepared := emit.prepare()) is not None]
    if not ready:
        return
    found: Sequence[Decision | BaseException]
    try:
        found = ready[0][1].store.transact_each([prepared.transaction for _, prepared in ready])
    except BaseException as error:  # noqa: BLE001 - whatever it is, each is answered
        found = [error] * len(ready)
    for (emit, prepared), one in zip(ready, found, strict=True):
        emit.finish(prepared, one)
