"""What a supervisor does next: a pure function of what it knows, so that a simulation runs it through every kill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from incarnate.domain.wording import counted
from incarnate.supervision.edge import SignalKind
from incarnate.supervision.knowledge import (
    Claimed,
    Exited,
    Fact,
    Fenced,
    Known,
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
    from incarnate.supervision.knowledge import Outlook, Policy

__all__ = [
    "EXIT_DONE",
    "EXIT_FENCED",
    "EXIT_GAVE_UP",
    "EXIT_NOT_STARTED",
    "EXIT_REFUSED",
    "EXIT_UNFINISHED",
    "EXIT_UNRECORDED",
    "STOPS_AT_ONCE",
    "AwaitPredecessor",
    "Claim",
    "EndLeftovers",
    "EndPredecessor",
    "EndTree",
    "Finish",
    "Launch",
    "Peek",
    "Reconcile",
    "Signal",
    "Step",
    "Wait",
    "decide",
    "evolve",
]

EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_FENCED = 6
EXIT_GAVE_UP = 7
EXIT_UNFINISHED = 8
EXIT_UNRECORDED = 9
EXIT_NOT_STARTED = 127  # as shells have it

STOPS_AT_ONCE = 3
"""So many times must a stop be asked until not even a store that is away is waited for."""

_A_MOMENT = 0.5  # a store that is well needs less: whoever presses ^C three times in a row loses nothing


class EndLeftovers(msgspec.Struct, frozen=True):
    """End what dead supervisors of this machine left, found by its recorded identity."""


class Peek(msgspec.Struct, frozen=True):
    """See whether there is anything to do, before anybody is fenced."""


class Claim(msgspec.Struct, frozen=True):
    """Take the activation; with `after`, only if nobody has since that incarnation of ours."""

    after: int | None = None


class AwaitPredecessor(msgspec.Struct, frozen=True):
    """Wait until the other supervisor of this machine has ended its harness, or until a time."""

    until: float


class EndPredecessor(msgspec.Struct, frozen=True):
    """End the harness of a living supervisor of this machine that was fenced and does not end it."""


class Reconcile(msgspec.Struct, frozen=True):
    """Append what the harness's own files know, and close what is open."""


class Launch(msgspec.Struct, frozen=True):
    """Start the harness.

    `session`: its own one to go on with, None for a new one. `carry`: tell a new one what an old one, that is not here,
    had come to. `ask`: what the user asked is asked, not that it go on.
    """

    session: str | None = None
    carry: bool = False
    ask: bool = True


class Signal(msgspec.Struct, frozen=True):
    """Send the harness a signal."""

    kind: SignalKind


class EndTree(msgspec.Struct, frozen=True):
    """End all that the harness started, and it."""


class Wait(msgspec.Struct, frozen=True):
    """Wait for a fact, until a time of the supervisor's clock if one is given."""

    until: float | None = None


class Finish(msgspec.Struct, frozen=True):
    """End the supervisor."""

    code: int
    reason: str


Step = (
    EndLeftovers
    | Peek
    | Claim
    | AwaitPredecessor
    | EndPredecessor
    | Reconcile
    | Launch
    | Signal
    | EndTree
    | Wait
    | Finish
)


def decide(known: Known, policy: Policy, now: float) -> Step:
    """What to do next. What blocks is done at once, and its end is a fact; `Wait` is the only step that waits."""
    match known.phase:
        case "alive":
            return _while_alive(known, policy, now)
        case "dead":
            return EndTree()  # whatever else is known: nothing of a harness outlives it
        case "gone":
            return _while_gone(known, policy, now)
        case _:
            return _without_process(known, policy, now)


def _without_process(known: Known, policy: Policy, now: float) -> Step:
    over = _over(known)
    if over is not None:
        return over
    match known.phase:
        case "fresh":
            return EndLeftovers()
        case "unseen":
            return Peek()
        case "unclaimed":
            return _done(known) or Claim(known.incarnation)
        case "claimed":
            until = known.since + policy.predecessor
            return AwaitPredecessor(until) if now < until else EndPredecessor()
        case "unlevel" | "recorded":
            return Reconcile()
        case _:
            return _next_life(known, policy, now)


def _over(known: Known) -> Finish | None:
    """Why nothing more is done where no process lives, if that is so."""
    if known.fenced is not None:
        by = "a newer one" if known.fenced.current is None else f"incarnation {known.fenced.current}"
        return Finish(EXIT_FENCED, f"{by} has taken over")
    if known.broken:
        return Finish(known.code, known.broken)
    # What was recorded is levelled first, so that whoever comes next finds nothing open.
    if known.stop is not None and known.phase not in {"recorded", "unlevel"}:
        return _done(known) or Finish(known.stop.code, "stopped")
    return None


def _while_alive(known: Known, policy: Policy, now: float) -> Step:
    if known.fenced is not None or known.broken or known.stops > 1:
        return EndTree()
    if known.stop is None:
        return Wait()
    ladder: tuple[tuple[SignalKind, float], ...] = (("interrupt", policy.interrupt), ("terminate", policy.terminate))
    due: list[tuple[SignalKind, float]] = [(kind, seconds) for kind, seconds in ladder if seconds > 0]
    sent = next((at for at, (kind, _) in enumerate(due) if kind == known.signal), -1)
    if sent >= 0 and now < known.signalled + due[sent][1]:
        return Wait(known.signalled + due[sent][1])
    return Signal(due[sent + 1][0]) if sent + 1 < len(due) else EndTree()


def _while_gone(known: Known, policy: Policy, now: float) -> Step:
    """Its output is recorded to the end, whatever that takes; with a stop asked, not for ever."""
    if known.fenced is not None or known.broken:
        over = _over(known)
        assert over is not None, "somebody has taken over, or nothing can be recorded"
        return over
    if known.stop is None:
        return Wait()
    patience = policy.flush if known.stops < STOPS_AT_ONCE else min(policy.flush, _A_MOMENT)
    until = max(known.stop.at, known.since) + patience
    if now < until:
        return Wait(until)
    return Finish(EXIT_UNRECORDED, "stopped; the store did not take the end of the output in time")


def _next_life(known: Known, policy: Policy, now: float) -> Step:
    outlook = known.outlook
    over = _verdict(known, policy)
    if over is not None:
        return over
    if known.lives == 0:
        return _launch(known, outlook)
    pause = min(policy.max_backoff, policy.backoff * 2 ** min(known.quick, 30)) if policy.backoff else 0.0
    until = known.since + pause
    if now < until:
        return Wait(until)
    # `incarnation` belongs to the life that ended: each harness speaks with an incarnation of its own.
    return _launch(known, outlook) if known.status is None else Claim(known.incarnation)


def _verdict(known: Known, policy: Policy) -> Finish | None:
    """Whether the work is done, or nothing helps it."""
    outlook = known.outlook
    done = _done(known)
    if done is not None:
        return done
    if known.unkillable:
        pids = ", ".join(map(str, known.unkillable))
        return Finish(EXIT_GAVE_UP, f"not even SIGKILL ends what the harness left: {pids}")
    if known.lives and outlook.turn in {"cancelled", "step_limit"} and known.spoke:
        return Finish(EXIT_UNFINISHED, f"the harness ended its turn without finishing it: {outlook.turn}")
    if known.lives and known.status == 0 and known.unread and not known.spoke and outlook.session is None:
        # It did something, by its own account all of it: another time it would do it again, and tell no more of it.
        return Finish(EXIT_GAVE_UP, f"not started again: it ended with status 0{_unread(known)}")
    if known.lives and known.status is not None and known.restarts >= policy.max_restarts:
        if known.unstarted:
            return Finish(EXIT_NOT_STARTED, known.unstarted)
        cause = outlook.reason or f"it {status_words(known.status)}{_unread(known)}"
        return Finish(EXIT_GAVE_UP, f"gave up after {counted(known.restarts, 'restart')}: {cause}")
    return None


def _unread(known: Known) -> str:
    printed = counted(known.unread, "line")
    return f", and nothing in the {printed} that it printed is of this harness" if known.unread else ""


def _done(known: Known) -> Finish | None:
    """Exit codes say nothing: a turn is done when the log says so, and it is one of ours."""
    if known.outlook.turn != "completed" or known.phase not in {"level", "unclaimed"}:
        return None
    if known.lives:
        return Finish(EXIT_DONE, "done") if known.spoke else None
    return Finish(EXIT_DONE, "done before: the log holds the turn to its end") if known.outlook.is_asked else None


def _launch(known: Known, outlook: Outlook) -> Launch:
    if outlook.events == 0:
        return Launch()
    # What was never asked, or was done before, is asked; else the session is told to go on with it.
    ask = outlook.turn in {"completed", "none"} or not outlook.is_asked
    if outlook.session is None or not outlook.is_here or outlook.session == known.lost:
        return Launch(carry=True, ask=ask)
    return Launch(outlook.session, ask=ask)


def evolve(known: Known, fact: Fact, policy: Policy) -> Known:  # noqa: C901, PLR0911, PLR0912 - one arm a fact
    """What is known after `fact`."""
    change = msgspec.structs.replace
    match fact:
        case LeftoversEnded():
            # A living one is taken over from, whatever the log says: its harness may hang behind the turn's end.
            phase = "unclaimed" if fact.predecessor else "unseen"
            return change(known, phase=phase, since=fact.at, predecessor=fact.predecessor)
        case Peeked():
            return change(known, phase="unclaimed", outlook=fact.outlook or known.outlook)
        case Claimed():
            return _claimed(known, fact)
        case PredecessorGone():
            return change(known, phase="unlevel", predecessor=False) if known.phase == "claimed" else known
        case Reconciled():
            return _levelled(known, fact)
        case Started():
            again = known.restarts + (1 if known.lives else 0)
            return change(
                known,
                phase="alive",
                since=fact.at,
                started=fact.at,
                lives=known.lives + 1,
                restarts=again,
                status=None,
                written=None,
                unstarted="",
                resumed=fact.resumed,
            )
        case Exited():
            if known.phase != "alive":
                return known
            is_quick = fact.at - known.started < policy.stable
            return change(
                known, phase="dead", since=fact.at, status=fact.status, quick=known.quick + 1 if is_quick else 0
            )
        case TreeEnded():
            ended = -9 if fact.status is None else fact.status
            status = ended if known.status is None else known.status
            gone = change(known, phase="gone", since=fact.at, status=status, unkillable=fact.unkillable)
            return _recorded(gone)
        case OutputRecorded():
            refused = known.refused + fact.refused
            return _recorded(change(known, written=fact.events, unread=fact.unread, refused=refused))
        case Signalled():
            return change(known, signal=fact.kind, signalled=fact.at)
        case StopAsked():
            return change(known, stop=known.stop or fact, stops=known.stops + 1)
        case Fenced():
            # Our own next claim fences our last one.
            is_ours = known.incarnation is not None and fact.incarnation < known.incarnation
            return known if is_ours else change(known, fenced=known.fenced or fact)
        case NotStarted():
            return _unstarted(known, fact)
        case StoreFailed(hint=hint) if hint and known.phase != "recorded":  # nothing that was printed is missing
            return change(known, broken=known.broken or fact.reason, code=known.code or EXIT_REFUSED, hint=hint)
        case RecordingFailed() | StoreFailed():
            return change(known, broken=known.broken or fact.reason, code=known.code or EXIT_UNRECORDED)


def _claimed(known: Known, fact: Claimed) -> Known:
    """After a life of our own the log is level; a predecessor's harness may live only before the first of them."""
    if known.lives:
        return msgspec.structs.replace(known, phase="level", incarnation=fact.incarnation, status=None)
    phase = "claimed" if known.predecessor else "unlevel"
    return msgspec.structs.replace(known, phase=phase, incarnation=fact.incarnation, since=fact.at)


def _unstarted(known: Known, fact: NotStarted) -> Known:
    """A program that has run may be away for a while, such as while it is upgraded: that is one more short life."""
    change = msgspec.structs.replace
    if fact.for_now or not known.lives:
        return change(known, broken=fact.reason, code=EXIT_GAVE_UP if fact.for_now else EXIT_NOT_STARTED)
    tried, quick = known.restarts + 1, known.quick + 1
    return change(known, since=fact.at, status=EXIT_NOT_STARTED, unstarted=fact.reason, restarts=tried, quick=quick)


def _recorded(known: Known) -> Known:
    """A harness that has closed its output is over once nothing of it lives, and one that is once all is recorded."""
    if known.phase != "gone" or known.written is None:
        return known
    return msgspec.structs.replace(known, phase="recorded", spoke=known.written > 0)


def _levelled(known: Known, fact: Reconciled) -> Known:
    spoke = known.spoke or fact.found > 0
    # A harness that does not know its session says so on standard error and ends without a word.
    lost = known.outlook.session if known.lives and known.resumed and not spoke else known.lost
    return msgspec.structs.replace(known, phase="level", outlook=fact.outlook, spoke=spoke, lost=lost)
