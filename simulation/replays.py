"""Does a log hold what is expected? If not, where it parts from it, line by line."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import msgspec

from incarnate.actors.session import Session
from incarnate.domain.codec import encode_json
from incarnate.domain.commands import Replay
from incarnate.domain.events import Opaque
from incarnate.domain.keys import ActivationKey
from incarnate.domain.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.events import AppendedEvent, SessionEvent

__all__ = ["check_replay"]


def check_replay(
    system: SessionSystem | None,
    log: Session | ActivationKey | str,
    expected: Iterable[SessionEvent | Opaque],
    ignore: Collection[str] = (),
) -> None:
    """Hold the events of a log against those expected.

    Args:
        system: whose log it is, where `log` names it.
        log: a session, a key or its text.
        expected: all events of the log, in order.
        ignore: the names of fields that may differ, such as `id` and `parent_id`.

    Raises:
        AssertionError: the log holds others; with the difference, a line an event.
    """
    __tracebackhide__ = True
    key, found = _replay(system, log)
    # As text, in which 1 is neither True nor 1.0.
    lines = [_line(appended.event, ignore) for appended in found]
    wanted = [_line(event, ignore) for event in expected]
    if lines != wanted:
        difference = difflib.unified_diff(wanted, lines, "expected", f"the log of {key}", n=2, lineterm="")
        raise AssertionError(
            f"{key} holds {counted(len(lines), 'event')}, not those expected:\n" + "\n".join(difference)
        )


def _replay(system: SessionSystem | None, log: Session | ActivationKey | str) -> tuple[ActivationKey, Any]:
    if isinstance(log, Session):
        events: Iterable[AppendedEvent] = log._ref.ask(Replay())  # noqa: SLF001 - its own system, whichever that is
        return log.key, events
    assert system is not None, "a key needs a system"
    key = ActivationKey.parse(log) if isinstance(log, str) else log
    return key, system.replay(key)


def _line(event: SessionEvent | Opaque, ignore: Collection[str]) -> str:
    """An event as a line, without what is left out or ignored: the differing part of two lines is then the reason."""
    if isinstance(event, Opaque):
        return event.raw.decode("utf-8", "replace")
    fields = msgspec.structs.asdict(event).items()
    shown = {name: value for name, value in fields if value is not msgspec.UNSET and name not in ignore}
    return f"{type(event).__name__} {encode_json(shown).decode()}"
