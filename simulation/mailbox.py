"""Actors in a simulation: each handles its messages as a task of its own, which runs when the scheduler says so."""

from __future__ import annotations

import functools
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import pykka
from pykka._envelope import Envelope  # pykka's documentation names it for new actor types
from pykka.messages import _ActorStop

from incarnate.actors.contained import ContainedActor, Told
from incarnate.domain.commands import Append, AppendMany, Lease, PutCheckpoint
from incarnate.domain.errors import OutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.simulation.scheduler import Scheduler, Task

__all__ = ["Home", "Recorded", "SimulatedActor", "start"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well


class Recorded(Protocol):
    """A call that a checker looks at when the run is over."""

    def answered(self, reply: Any, error: BaseException | None) -> None:
        """The answer reached whoever sent it."""
        ...


class Home(Protocol):
    """The process that actors run in."""

    scheduler: Scheduler

    def task(self, name: str, work: Callable[[], object]) -> Task:
        """A task of it, not begun."""
        ...

    def called(self, actor: pykka.Actor, message: Any) -> Recorded | None:
        """`message` is sent to `actor`."""
        ...


class _Answer(pykka.Future[Any]):
    """An answer; who gets it waits until the scheduler lets both go on."""

    def __init__(self) -> None:
        super().__init__()
        self.call: Recorded | None = None
        self.scheduler: Scheduler | None = None
        self._waiting: list[Task] = []
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def set(self, value: Any = None) -> None:
        self._value = value
        self._settle()

    def set_exception(self, exc_info: Any = None) -> None:
        self._error = (exc_info or sys.exc_info())[1]
        self._settle()

    @property
    def may_have_happened(self) -> bool:
        """Whether its sender was not told that nothing was written: what was must not be written later after all."""
        return self._error is None or isinstance(self._error, OutcomeUnknownError)

    def _settle(self) -> None:
        self._done = True
        scheduler = self.scheduler
        if scheduler is not None:
            for task in self._waiting:
                scheduler.wake(task)

    def get(self, *, timeout: float | None = None) -> Any:
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        scheduler = self.scheduler
        if not self._done and scheduler is not None:
            self._waiting.append(scheduler.running)
            if not scheduler.block("an answer", timeout) and not self._done:
                self._waiting.remove(scheduler.running)
                raise pykka.Timeout(f"{timeout:g} seconds")
        if self.call is not None:
            self.call.answered(self._value, self._error)
        if self._error is not None:
            raise self._error
        return self._value


class _Inbox:
    """Envelopes in order, and the task that handles them."""

    __slots__ = ("_actor", "_process", "_queue", "_scheduler", "_task")

    def __init__(self) -> None:
        self._queue: deque[tuple[Envelope[Any], Recorded | None]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def empty(self) -> bool:
        return not self._queue

    def get(self) -> Envelope[Any]:
        return self._queue.popleft()[0]

    def open(self, actor: SimulatedActor, process: Home, name: str) -> None:
        """Belong to `actor` of `process`."""
        self._actor = actor
        self._process = process
        self._scheduler = process.scheduler
        self._task = process.task(name, self._drain)

    def put(self, envelope: Envelope[Any]) -> None:
        message = envelope.message
        # Who tells gets no answer: like a call whose answer was lost, it may have been done or not.
        call = self._process.called(self._actor, message.message if isinstance(message, Told) else message)
        if isinstance(envelope.reply_to, _Answer):
            envelope.reply_to.scheduler = self._scheduler
            envelope.reply_to.call = call
        self._scheduler.note(f"sends {_name(message)} to {self._task.name}")
        self._enqueue(envelope, call)

    def _enqueue(self, envelope: Envelope[Any], call: Recorded | None) -> None:
        self._queue.append((envelope, call))
        if not self._task.alive:
            self._scheduler.begin(self._task)

    def _drain(self) -> None:
        scheduler, task = self._scheduler, self._task
        while self._queue:
            scheduler.point()
            envelope, task.call = self._queue.popleft()
            answer = envelope.reply_to
            self._actor.step(envelope)
            task.call = None
            may = isinstance(answer, _Answer) and answer.may_have_happened and _may_come_twice(envelope.message)
            again = scheduler.fault("duplicate") if may else None
            if again is not None:
                scheduler.after(again.micros, functools.partial(self._again, envelope.message))

    def _again(self, message: Any) -> None:
        """The same message once more, from nobody: it was sent again by whoever thought it lost."""
        if self._task.dead:
            return
        self._scheduler.note(f"gets {_name(message)} once more", self._task.name)
        answer = _Answer()
        answer.scheduler = self._scheduler
        answer.call = self._process.called(self._actor, message)
        self._enqueue(Envelope(message, reply_to=answer), answer.call)


class _Ref(pykka.ActorRef[Any]):
    """A reference whose messages may be late. Its mailbox has no bound, so nobody waits for room."""

    actor_inbox: _Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - a SimulatedActor's

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None, wait: float | None = 0.0) -> Any:  # noqa: ARG002
        self.actor_inbox._scheduler.point()  # noqa: SLF001 - it is this module's
        return super().ask(message, block=block, timeout=timeout)

    def tell(self, message: Any, wait: float | None = 0.0) -> None:  # noqa: ARG002 - likewise
        self.actor_inbox._scheduler.point()  # noqa: SLF001 - likewise
        super().tell(message)


class SimulatedActor(pykka.Actor):
    """Mix-in: runs as tasks of a simulation. Kept out of pykka's registry, which is of the real process."""

    actor_inbox: _Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - made below

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._actor_ref = _Ref(self)

    @staticmethod
    def _create_actor_inbox() -> _Inbox:
        return _Inbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return _Answer()

    def _start_actor_loop(self) -> None:
        self.on_start()

    def step(self, envelope: Envelope[Any]) -> None:
        """Handle one envelope; what a stopped actor still finds in its inbox is answered, not handled."""
        reply = envelope.reply_to
        try:
            response = self._answer(envelope.message)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the sender's answer
            if reply is not None:
                reply.set_exception()
            elif not isinstance(error, pykka.ActorDeadError):
                self._handle_failure(*sys.exc_info())  # as pykka has it: a failed tell ends the actor
        else:
            if reply is not None:
                reply.set(response)

    def _answer(self, message: Any) -> Any:
        if self.actor_stopped.is_set():
            if isinstance(message, Told) and message.undelivered is not None:
                return message.undelivered(message.message)  # as `ContainedActor` has it: a fresh one is told
            raise pykka.ActorDeadError(f"{self} stopped before handling the message")
        return self._stop() if isinstance(message, _ActorStop) else self._handle_receive(message)


def start(kind: Callable[[], SimulatedActor], process: Home) -> pykka.ActorRef[Any]:
    """The reference of a new actor of `process`."""
    actor = kind()
    # pykka's own text for an actor holds a random id.
    name = str(actor) if isinstance(actor, ContainedActor) else type(actor).__name__
    actor.actor_inbox.open(actor, process, name)
    actor._start_actor_loop()  # noqa: SLF001 - pykka's hook; its start() would register it in a list
    return actor.actor_ref


def _may_come_twice(message: Any) -> bool:
    """Whether the protocol answers a repeat of `message` without doing it again (I6)."""
    kind: type[Any] = type(message)
    if kind in {Append, AppendMany, PutCheckpoint}:
        return message.expected_head is not None
    return kind is Lease


def _name(message: Any) -> str:
    if isinstance(message, Told):
        return type(message.message).__name__
    return type(message).__name__
