"""Calls on their way from an event loop to threads and back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from incarnate.actors.session import Session
from incarnate.actors.together import Emit, emit_together

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from incarnate.domain.events import Opaque, SessionEvent

__all__ = ["Back", "Batch", "Call", "Carrier", "Order", "heard"]


class Back(Protocol):
    """What a thread hands back to the loop."""

    def settle(self) -> None:
        """Tell whoever waits; on the loop's thread."""
        ...


class Order(Protocol):
    """What calls are part of that go one after the other."""

    unheard: BaseException | None
    """What a call came to that nobody awaited any more."""

    def settled(self) -> None:
        """One call that was sent is done."""
        ...


class Carrier(Protocol):
    """What carries calls over."""

    loop: asyncio.AbstractEventLoop

    def send(self, calls: Sequence[Call]) -> None:
        """Have `calls` run on one thread, one after the other; on the loop's thread."""
        ...

    def hand_back(self, *backs: Back) -> None:
        """Have all of `backs` settled on the loop. Any thread may ask for it."""
        ...

    def settled(self, call: Call) -> None:
        """One call less is under way."""
        ...

    def batch_done(self) -> None:
        """One batch less is on its way."""
        ...


class Call:
    """One call on its way: `run` on a thread, then `settle` on the loop. Whoever awaits may have gone meanwhile."""

    __slots__ = ("_arguments", "_carrier", "_error", "_lane", "_named", "_value", "_work", "ends_turn", "future")

    def __init__(
        self, carrier: Carrier, lane: Order | None, work: Callable[..., Any], arguments: tuple[Any, ...], named: Any
    ) -> None:
        self.future: asyncio.Future[Any] = carrier.loop.create_future()
        self._carrier = carrier
        self._lane = lane
        self._work = work
        self._arguments = arguments
        self._named = named
        self._value: Any = None
        self.ends_turn = False  # with it a thread is free again
        self._error: BaseException | None = None

    @property
    def emit(self) -> tuple[Session, SessionEvent | Opaque] | None:
        """The session and the event, where it is an emit."""
        if self._work is not Session.emit or len(self._arguments) != 2 or self._named:  # noqa: PLR2004 - those two
            return None
        session, event = self._arguments
        return (session, event) if session.emits_together else None

    def run(self) -> None:
        """Do the work, unless nobody wants it any more."""
        if self.future.cancelled():
            return
        try:
            self._value = self._work(*self._arguments, **self._named)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's answer, and the thread goes on
            self.fail(error)

    def answer(self, emit: Emit) -> bool:
        """Answer with what came of `emit`, if anything did; whether it did."""
        self._value = emit.appended
        if emit.error is not None:
            self.fail(emit.error)
        return emit.is_done

    def fail(self, error: BaseException) -> None:
        """Answer with `error`."""
        if isinstance(error, StopIteration):  # no future takes one; a coroutine makes this of it too
            stopped, error = error, RuntimeError("the call raised StopIteration")
            error.__cause__ = stopped
        self._error = error

    def settle(self) -> None:
        """Answer whoever awaits."""
        future, error, lane = self.future, self._error, self._lane
        self._error = None  # its traceback leads here
        if future.done():
            if lane is not None:
                lane.unheard = error or lane.unheard
        elif error is None:
            future.set_result(self._value)
        else:
            future.set_exception(error)
        self._carrier.settled(self)
        if lane is not None:
            lane.settled()


class Batch:
    """Emits that one thread does together."""

    def __init__(self, carrier: Carrier, calls: Sequence[Call]) -> None:
        self._carrier = carrier
        self._calls = calls
        self._left: set[Call] = set()  # those that have to be done one by one

    def run(self) -> None:
        """Do them, and hand back what is done."""
        emits: dict[Call, Emit] = {}
        with suppress(BaseException):  # what it came to in doing them is told to each; these threads must go on
            for call in self._calls:
                if not call.future.cancelled() and (asked := call.emit) is not None:
                    emits[call] = Emit(*asked)
            emit_together(list(emits.values()))
        left = self._left = {call for call in self._calls if not _is_over(call, emits.get(call))}
        # At once: a loop that takes one while the others are still to come has to be woken for each.
        self._carrier.hand_back(*(call for call in self._calls if call not in left), self)

    def settle(self) -> None:
        """The next ones may go. What is left takes its place among all other calls: it may wait for long."""
        for call in self._left:
            self._carrier.send((call,))
        self._carrier.batch_done()


def _is_over(call: Call, emit: Emit | None) -> bool:
    """Whether `call` needs nobody any more, now that `emit` was tried for it."""
    return call.future.cancelled() if emit is None else call.answer(emit)


def heard(future: asyncio.Future[Any]) -> None:
    """Take note of what `future` failed with, so that the loop does not say that nobody did."""
    if not future.cancelled():
        future.exception()
