"""The `thread` dispatcher: pykka's own way, one thread an actor."""

from __future__ import annotations

import queue
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import pykka

from incarnate.actors.addresses import Address
from incarnate.actors.answers import Answer
from incarnate.actors.contained import ContainedActor, shown
from incarnate.actors.mailboxes import Mailbox
from incarnate.actors.waits import here

if TYPE_CHECKING:
    from pykka._envelope import Envelope  # pykka's documentation names it for new actor types

__all__ = ["ThreadActor"]

_numbers = count()


class ThreadMailbox(Mailbox):
    """pykka's inbox with a bound, and without its race: what is put while a stopping actor clears up is answered."""

    __slots__ = ("_closed", "_idle", "_lock", "_queue", "thread")

    def __init__(self) -> None:
        super().__init__()
        self.thread = 0
        self._queue: queue.SimpleQueue[Envelope[Any]] = queue.SimpleQueue()
        self._lock = threading.RLock()  # not a lock: a signal handler may send in the middle of a send
        self._closed = False
        self._idle = True  # its thread takes the next message at once

    def __len__(self) -> int:
        return self._queue.qsize()

    def get(self) -> Envelope[Any]:
        self._idle = True
        envelope = self._queue.get()
        self._idle = False
        if self._room:
            self._made_room()
        return envelope

    def held(self) -> bool:
        return self.thread == threading.get_ident()

    def close(self) -> None:
        """Answer what came too late; the actor has stopped."""
        with self._lock:
            self._closed = True
        while not self._queue.empty():
            self.handle(self._queue.get())

    def _is_full(self) -> bool:
        # What an idle thread is about to take does not wait: on the caller's own thread it would be handled by now.
        return len(self) - self._stops - self._idle >= self.limit

    def _take_in(self, envelope: Envelope[Any]) -> None:
        with self._lock:
            if not self._closed:
                self._queue.put(envelope)
                return
        error = pykka.ActorDeadError(f"{shown(self.actor)} stopped before handling the message")
        if envelope.reply_to is None:
            raise error
        envelope.reply_to.set_exception((type(error), error, None))


class ThreadActor(ContainedActor):
    """Mix-in: runs on a thread of its own, which does not keep the process alive."""

    actor_inbox: ThreadMailbox  # pyright: ignore[reportIncompatibleVariableOverride] - made below
    thread: threading.Thread

    @staticmethod
    def _create_actor_inbox() -> ThreadMailbox:
        return ThreadMailbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return Answer()

    def _create_actor_ref(self) -> pykka.ActorRef[Any]:
        self.actor_inbox.actor = self
        return Address(self)

    def begin(self, limit: int) -> None:
        """Take messages, at most `limit` that wait."""
        self.actor_inbox.limit = limit
        self._start_actor_loop()

    def _start_actor_loop(self) -> None:
        self.thread = threading.Thread(target=self._actor_loop, name=f"incarnate-actor-{next(_numbers)}", daemon=True)
        self.thread.start()

    def _actor_loop(self) -> None:
        mailbox = self.actor_inbox
        mailbox.thread = threading.get_ident()
        mailbox.holder = here.stack
        here.stack.append(mailbox)
        self._actor_loop_setup()
        while not self.actor_stopped.raised:
            mailbox.handle(mailbox.get())
        mailbox.close()
        mailbox.thread = 0  # another thread may get the same number
