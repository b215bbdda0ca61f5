"""The answer to one message, which may be there or still to come."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pykka
from pykka._future import _Unset

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.actors.mailboxes import Mailbox

__all__ = ["Answer"]


class Answer(pykka.Future[Any]):
    """Made in a tenth of the time of pykka's own future, which has a condition; here a lock, once somebody waits."""

    # Defaults on the class, and nothing done to make one: most of them never change.
    done = False
    depth = 0
    """How many actors had asked on, one in the other, when this was asked for."""

    mailbox: Mailbox | None = None
    _get_hook: Callable[[float | None], Any] | None = None
    _get_hook_result: Any = _Unset()
    _value: Any = None
    _error: BaseException | None = None
    _gate: threading.Lock | None = None

    def __init__(self) -> None:
        """Nothing: pykka's own makes two objects."""

    def set(self, value: Any = None) -> None:
        """Give the answer; the first one counts."""
        if not self.done:
            self._value = value
            self._settle()

    def set_exception(self, exc_info: Any = None) -> None:
        """Give an error as the answer."""
        if not self.done:
            self._error = (exc_info or sys.exc_info())[1]
            self._settle()

    def _settle(self) -> None:
        self.done = True
        gate = self._gate
        if gate is not None:
            gate.release()

    def get(self, *, timeout: float | None = None) -> Any:
        """The answer; an error is raised.

        Raises:
            pykka.Timeout: it did not come within `timeout` seconds.
            ReentrantCallError: it would never come: it waits for the call that this is part of.
        """
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if not self.done and self.mailbox is not None:
            self.mailbox.wait_for(self, timeout)
        return self.result()

    def result(self) -> Any:
        """What was given; an error is raised."""
        if self._error is not None:
            raise self._error
        return self._value

    def arrives(self, timeout: float) -> bool:
        """Whether it is there within `timeout` seconds."""
        gate = self._gate or self._make_gate()
        if not self.done and gate.acquire(timeout=timeout):
            gate.release()  # for the next who waits
        return self.done

    def _make_gate(self) -> threading.Lock:
        gate = threading.Lock()
        gate.acquire()  # not to guard anything: whoever settles this releases it
        made: threading.Lock = self.__dict__.setdefault("_gate", gate)  # at once: two may wait, at one gate
        return made

    def held(self) -> bool:
        """Never: it is waited for."""
        return False

    def wanted(self) -> Mailbox | None:
        """Where it is to come from, while it has not."""
        return None if self.done else self.mailbox
