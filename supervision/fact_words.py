"""What a supervisor has learned, in words: for the log that a person or a filter reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incarnate.domain.wording import counted
from incarnate.supervision.knowledge import (
    Claimed,
    Exited,
    Fenced,
    LeftoversEnded,
    NotStarted,
    OutputRecorded,
    Peeked,
    PredecessorGone,
    Reconciled,
    RecordingFailed,
    Signalled,
    Started,
    StopAsked,
    StoreFailed,
    TreeEnded,
)
from incarnate.supervision.status_words import status_words

if TYPE_CHECKING:
    from incarnate.supervision.knowledge import Fact, Known, Outlook

__all__ = ["absent_words", "carried_words", "fact_fields", "fact_words"]


def fact_words(fact: Fact) -> str:  # noqa: C901, PLR0911, PLR0912 - one arm a fact
    """One sentence without an end."""
    match fact:
        case LeftoversEnded():
            return "nothing of a dead run lives here" + (", and another run has the key" if fact.predecessor else "")
        case Peeked():
            done = "its last turn is done" if fact.outlook else "it may have something left to do"
            return f"the log was looked at: {done}"
        case Claimed():
            return f"claimed as incarnation {fact.incarnation}"
        case PredecessorGone():
            return "the harness of the other run has ended"
        case Reconciled():
            outlook = fact.outlook
            found = f"; {counted(fact.found, 'event')} came from the harness's files" if fact.found else ""
            return f"the log is level at {counted(outlook.events, 'event')}, its last turn {_turn(outlook.turn)}{found}"
        case Started():
            return "the harness runs" + (", and goes on with its own session" if fact.resumed else "")
        case Signalled():
            return f"the harness was sent {_SIGNALS.get(fact.kind, fact.kind)}"
        case Exited():
            return f"the harness {status_words(fact.status)}"
        case TreeEnded():
            return f"all that it started has ended{_outlived(fact)}"
        case OutputRecorded():
            return _recorded(fact)
        case Fenced():
            by = "a newer one" if fact.current is None else f"incarnation {fact.current}"
            return f"incarnation {fact.incarnation} is fenced by {by}"
        case StopAsked():
            return f"a stop was asked, to exit with {fact.code}"
        case NotStarted() | RecordingFailed() | StoreFailed():
            return fact.reason


def fact_fields(fact: Fact, known: Known) -> dict[str, Any]:
    """What a record of a log says of the fact beside the words; `known` is what is known after it."""
    ignored = {"ignored": dict(fact.ignored)} if isinstance(fact, OutputRecorded) and fact.ignored else {}
    return {
        "fact": type(fact).__name__,
        "phase": known.phase,
        "incarnation": known.incarnation,
        "restarts": known.restarts,
        "refused": known.refused,
        **ignored,
    }


def carried_words(outlook: Outlook, place: str) -> str:
    """Why a session is not resumed by its id, and what is done instead; its files would be in `place`."""
    session = outlook.session
    if session is None:
        why = "nothing tells its id"
    elif outlook.is_here:
        why = f"the harness did not go on with {session}"
    else:
        why = absent_words(session, place)
    return f"{why}: a new session gets the log as text"


def absent_words(session: str, place: str) -> str:
    """That its session files are not in `place`."""
    return f"its session files ({session}) are not in {place}"


_SIGNALS = {"interrupt": "SIGINT", "terminate": "SIGTERM", "kill": "SIGKILL"}


def _recorded(fact: OutputRecorded) -> str:
    events = counted(fact.events, "event")
    if not fact.refused:
        return f"all that it printed is recorded, {events}"
    was = "was" if fact.refused == 1 else "were"
    return f"what it printed is recorded, {events}; {counted(fact.refused, 'line')} {was} refused"


def _turn(turn: str) -> str:
    return "not begun" if turn == "none" else turn.replace("_", " ")


def _outlived(fact: TreeEnded) -> str:
    orphans = f"; {fact.orphans} had outlived it" if fact.orphans else ""
    alive = f"; not even SIGKILL ends {', '.join(map(str, fact.unkillable))}" if fact.unkillable else ""
    return orphans + alive
