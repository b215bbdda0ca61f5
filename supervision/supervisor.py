"""The supervisor: one mailbox of facts, a plan that says what to do next, and hands that do it."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import deque
from typing import TYPE_CHECKING

from incarnate.actors.logs import log
from incarnate.domain.errors import ClosedError, HarnessNotStartedError, IncarnateError, StaleIncarnationError
from incarnate.supervision.commands import carry_prompt, go_on_prompt, legible
from incarnate.supervision.edge import Deadlines
from incarnate.supervision.fact_words import carried_words, fact_fields, fact_words
from incarnate.supervision.knowledge import (
    Claimed,
    Fenced,
    Known,
    LeftoversEnded,
    NotStarted,
    Peeked,
    Policy,
    PredecessorGone,
    Signalled,
    Started,
    StopAsked,
    StoreFailed,
    TreeEnded,
)
from incarnate.supervision.machine import LoneMachine
from incarnate.supervision.plan import (
    STOPS_AT_ONCE,
    AwaitPredecessor,
    Claim,
    EndLeftovers,
    EndPredecessor,
    EndTree,
    Finish,
    Launch,
    Peek,
    Reconcile,
    Signal,
    Wait,
    decide,
    evolve,
)
from incarnate.supervision.recorder import Asked
from incarnate.supervision.supervised_log import SupervisedLog, mended_by
from incarnate.supervision.tap import Tap
from incarnate.supervision.world import NoWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.actors.runtime import Runtime
    from incarnate.actors.system import SessionSystem
    from incarnate.domain.keys import ActivationKey
    from incarnate.supervision.boundaries import Every
    from incarnate.supervision.edge import Edge, Identity, Running
    from incarnate.supervision.harness import Harness
    from incarnate.supervision.knowledge import Fact
    from incarnate.supervision.machine import Machine
    from incarnate.supervision.plan import Step
    from incarnate.supervision.recorder import Recorder
    from incarnate.supervision.tap import PassOn
    from incarnate.supervision.world import World

__all__ = ["Supervisor"]

_NOTE_SECONDS = 1.0
_READER_SECONDS = 5.0  # how long whoever reads our output may take nothing, once a stop was asked
_NEIGHBOUR_SECONDS = 0.1  # between looks whether another supervisor of this machine has gone


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_run_id() -> str:
    return uuid.uuid4().hex


def _nowhere(_chunk: bytes | memoryview) -> None:
    """Standard output is passed on to nobody."""


class Supervisor:
    """Keeps one harness alive, and its session durable.

    `run` blocks until nothing is left to do; `stop` may be called from any thread. Everything that waits does so
    through `runtime`, everything that touches a process through `edge`: a simulation gives both.
    """

    def __init__(
        self,
        system: SessionSystem,
        key: ActivationKey,
        harness: Harness,
        *,
        edge: Edge,
        runtime: Runtime,
        machine: Machine | None = None,
        policy: Policy | None = None,
        world: World | None = None,
        every: Every = "turn",
        pass_on: PassOn = _nowhere,
        on_change: Callable[[Known, int], object] | None = None,
        clock: Callable[[], int] = _now_ms,
        new_run_id: Callable[[], str] = _new_run_id,
    ) -> None:
        """Nothing happens yet.

        Args:
            system: the store's system.
            key: the activation.
            harness: what to keep alive.
            edge: starts processes.
            runtime: threads and a clock.
            machine: the other supervisors here; unless given there are none.
            policy: restarts and deadlines.
            world: what checkpoints join the mind with.
            every: where checkpoints are made.
            pass_on: is given what the harness prints, byte for byte, and answers how many of the bytes it took; None
                for all. One that cannot take any should answer 0 within a moment, and is asked again: else a stop must
                wait for it.
            on_change: is told what is known and the head of the log, after each change of phase.
            clock: milliseconds since the epoch.
            new_run_id: ids of the starts of a harness, each one new.
        """
        self._key = key
        self._harness = harness
        self._edge = edge
        self._runtime = runtime
        self._machine: Machine = machine or LoneMachine()
        self._policy = policy or Policy()
        self._pass_on = pass_on
        self._on_change = on_change
        self._new_run_id = new_run_id
        self._log = SupervisedLog(
            system, key, harness, runtime=runtime, world=world or NoWorld(), every=every, clock=clock
        )
        self._known = Known()
        self._tap: Tap | None = None
        self._identity: Identity | None = None
        self._noted = 0
        self._is_unrecorded = False
        self._stops = 0
        self._ending: Running | None = None  # a harness that is given time to end
        self._facts: deque[Fact] = deque()
        self._changed = runtime.condition()

    @property
    def known(self) -> Known:
        """What it knows now."""
        return self._known

    def stop(self, code: int = 143) -> None:
        """Have the harness end, record all it wrote, close what is open, and exit with `code`.

        Asked again, the harness is ended at once; the third time, nobody waits for the store any longer either. Not
        for signal handlers: it takes a lock.
        """
        now, policy = self._runtime.monotonic(), self._policy
        with self._changed:
            self._stops += 1
            is_last = self._stops >= STOPS_AT_ONCE
            ending = self._ending if self._stops > 1 else None
        # Whoever waits for the store now takes no facts: a stop must reach it all the same.
        self._log.hasten(now if is_last else now + policy.interrupt + policy.terminate + policy.flush)
        self._tell(StopAsked(now, code))
        if ending is not None:
            ending.end(self._deadlines)  # whoever ends it takes no facts either, and was given the time of one stop

    def run(self) -> Finish:
        """Keep the harness alive until nothing is left to do."""
        try:
            while True:
                self._take_facts()
                step = decide(self._known, self._policy, self._runtime.monotonic())
                if isinstance(step, Finish):
                    refused = self._known.refused
                    log(logging.INFO, "finished", "finished: %s", step.reason, code=step.code, refused=refused)
                    return step
                self._do(step)
        finally:
            self._shut()

    # facts

    def _tell(self, fact: Fact) -> None:
        with self._changed:
            self._facts.append(fact)
            self._changed.notify_all()

    def _take_facts(self) -> None:
        while True:
            with self._changed:
                if not self._facts:
                    return
                fact = self._facts.popleft()
            self._learn(fact)

    def _learn(self, fact: Fact) -> None:
        before = self._known.phase
        self._known = known = evolve(self._known, fact, self._policy)
        log(logging.INFO, "learned", "%s", fact_words(fact), **fact_fields(fact, known))
        if known.phase != before:
            self._note()

    def _wait(self, until: float | None) -> None:
        """Wait for a fact; each second, what others may know of the log is recorded if it has grown."""
        left = _NOTE_SECONDS if until is None else min(_NOTE_SECONDS, until - self._runtime.monotonic())
        with self._changed:
            self._changed.wait_for(lambda: self._facts, max(0.0, left))
        if self._log.mind.next_offset != self._noted:
            self._note()

    def _note(self) -> None:
        known, offset = self._known, self._log.mind.next_offset
        self._noted = offset
        try:
            self._machine.note(
                phase=known.phase,
                incarnation=known.incarnation,
                identity=self._identity,
                restarts=known.restarts,
                offset=offset,
                session=self._session_id,
            )
        except OSError as error:
            if not self._is_unrecorded:  # once, not each second
                log(logging.WARNING, "note_failed", "the state of this supervisor cannot be recorded: %s", error)
            self._is_unrecorded = True
        else:
            self._is_unrecorded = False
        if self._on_change is not None:
            self._on_change(known, offset)

    @property
    def _session_id(self) -> str | None:
        """As soon as the harness has told it: no neighbour must take it for its own."""
        told = None if self._tap is None else self._tap.recorder.report.session_id
        return told or self._log.session_id

    # steps

    def _do(self, step: Step) -> None:
        log(logging.DEBUG, "does", "does %s", step)
        match step:
            case Wait():
                self._wait(step.until)
            case AwaitPredecessor():
                self._await_predecessor(step.until)
            case EndLeftovers():
                self._machine.end_leftovers(self._edge, self._deadlines)
                has_predecessor = self._machine.has_predecessor()
                self._learn(LeftoversEnded(self._runtime.monotonic(), has_predecessor))
            case EndPredecessor():
                self._machine.end_predecessor(self._edge, self._deadlines)
                self._learn(PredecessorGone())
            case Signal():
                self._running.signal(step.kind)
                self._learn(Signalled(step.kind, self._runtime.monotonic()))
            case EndTree():
                self._end_tree()
            case _:
                self._attempt(step)

    def _attempt(self, step: Step) -> None:
        """A step that needs the store: its refusals are facts too."""
        try:
            match step:
                case Peek():
                    self._learn(Peeked(self._log.peek()))
                case Claim():
                    self._claim(step.after)
                case Reconcile():
                    self._reconcile()
                case Launch():
                    self._launch(step)
                case _:
                    raise AssertionError(f"{step} needs no store")
        except StaleIncarnationError as error:
            self._learn(Fenced(error.incarnation, error.current))
        except HarnessNotStartedError as error:
            self._learn(NotStarted(str(error), at=self._runtime.monotonic()))
            if not self._known.broken:
                log(logging.WARNING, "not_started", "%s: %s; it may be away for a while", self._key, error)
        except ClosedError:
            raise
        except IncarnateError as error:
            self._learn(StoreFailed(str(error), mended_by(error)))

    @property
    def _deadlines(self) -> Deadlines:
        return Deadlines(terminate=0.0 if self._stops > 1 else self._policy.terminate)

    @property
    def _env(self) -> dict[str, str]:
        return dict(os.environ if self._harness.env is None else self._harness.env)

    @property
    def _running(self) -> Running:
        assert self._tap is not None, "the plan signals and ends only what runs"
        return self._tap.running

    def _await_predecessor(self, until: float) -> None:
        if not self._machine.has_predecessor():
            # It may have been killed meanwhile, and then it ended nothing.
            self._machine.end_leftovers(self._edge, self._deadlines)
            self._learn(PredecessorGone())
            return
        self._wait(min(until, self._runtime.monotonic() + _NEIGHBOUR_SECONDS))

    def _claim(self, after: int | None) -> None:
        if after is None:  # nobody is fenced, and no key made, for a command line with a slip in it
            self._check()
        incarnation = self._log.claim(after, lambda ours: self._tell(Fenced(ours)))
        self._learn(Claimed(incarnation, self._runtime.monotonic()))

    def _check(self) -> None:
        self._edge.check(self._harness.command.argv, env=self._env, cwd=self._harness.cwd)

    def _reconcile(self) -> None:
        """What the last life told of its session is kept; then nothing of it is."""
        tap, self._tap = self._tap, None
        if tap is not None:
            tap.join()
            self._log.session_id = tap.recorder.report.session_id or self._log.session_id
            tap.running.close()
        self._learn(self._log.reconcile(has_lived=self._known.lives > 0, theirs=self._machine.sessions()))

    def _end_tree(self) -> None:
        tap, known = self._tap, self._known
        if tap is not None and known.stop is not None:
            tap.hurry(_READER_SECONDS if known.stops == 1 else 0.0)
        with self._changed:
            self._ending = running = self._running
        ended = running.end(self._deadlines)
        with self._changed:
            self._ending = None
        self._identity = None
        self._learn(TreeEnded(ended.orphans, ended.unkillable, self._runtime.monotonic(), running.poll()))

    # launching

    def _launch(self, launch: Launch) -> None:
        self._check()  # or the log would tell of a new session that nobody began
        harness = self._harness
        goes_on = go_on_prompt(harness.go_on, self._log.owned.incarnation)
        logged = (harness.command.prompt if launch.ask else None) or (None if launch == Launch() else goes_on)
        prompt = logged
        logged = None if prompt is None else legible(prompt)
        if launch.carry:
            why = carried_words(self._known.outlook, harness.files.place())
            log(logging.WARNING, "carried", "%s: %s", self._key, why)
            prompt = carry_prompt(self._log.carry(logged or goes_on), prompt or goes_on)
        if launch.session is None:
            argv = harness.command.asking(prompt)
        else:
            argv = harness.command.resuming(harness.dialect, launch.session, prompt)
        self._start(argv, self._log.recorder(Asked(prompt, logged)), resumed=launch.session is not None)

    def _start(self, argv: Sequence[str], recorder: Recorder, *, resumed: bool) -> None:
        self._take_facts()
        if self._known.fenced is not None or self._known.stop is not None:
            return  # it was asked meanwhile: nothing is started that would be ended at once
        run_id = self._new_run_id()
        # Recorded before it starts: a kill between the two leaves something that can be found.
        self._identity = self._edge.identity(run_id)
        self._note()
        try:
            running = self._edge.start(argv, env=self._env, cwd=self._harness.cwd, run_id=run_id)
        except OSError as error:
            why = f"{argv[0]} could not be started: {error.strerror or error}"
            self._learn(NotStarted(why, for_now=True))
            return
        self._identity = running.identity
        self._tap = Tap(self._runtime, running, recorder, pass_on=self._pass_on, tell=self._tell)
        self._learn(Started(self._runtime.monotonic(), resumed))

    def _shut(self) -> None:
        """Leave nothing alive, whatever happened."""
        self._log.give_up()
        tap, self._tap = self._tap, None
        if tap is not None:
            tap.give_up()
            tap.running.end(self._deadlines)
            tap.join()
            tap.running.close()
        try:
            self._machine.close()
        except OSError as error:  # the work is done all the same; who lists records sees that nobody holds this one
            log(logging.WARNING, "note_failed", "the record of this supervisor cannot be removed: %s", error)
