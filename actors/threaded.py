"""The `thread` dispatcher: pykka's own, one thread an actor."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

import pykka

if TYPE_CHECKING:
    from pykka._envelope import Envelope  # pykka's documentation names it for new actor types

__all__ = ["ThreadActor"]


class _Inbox:
    """pykka's inbox without its race: a message put while the stopping actor looks for leftovers is answered too."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Envelope[Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False

    def put(self, envelope: Envelope[Any]) -> None:
        with self._lock:
            if not self._closed:
                self._queue.put(envelope)
                return
        if envelope.reply_to is not None:
            error = pykka.ActorDeadError("the actor stopped before handling the message")
            envelope.reply_to.set_exception((type(error), error, None))

    def get(self) -> Envelope[Any]:
        return self._queue.get()

    def empty(self) -> bool:
        # Asked only by an actor that has stopped, between leftovers: from the first time on, nothing may come in.
        with self._lock:
            self._closed = True
            return self._queue.empty()


class ThreadActor(pykka.ThreadingActor):
    """Mix-in: runs on a thread of its own, which does not keep the process alive."""

    use_daemon_thread = True

    @staticmethod
    def _create_actor_inbox() -> _Inbox:
        return _Inbox()
