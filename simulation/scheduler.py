"""The scheduler: tasks on greenlets, one at a time, in an order and a time of its own.

Whatever runs gives way at points alone. There the choices say who runs next, and whether a process dies or stops.
"""

from __future__ import annotations

import heapq
from collections import deque
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from incarnate.domain.errors import ClosedError, MissingExtraError, SimulationFailedError
from incarnate.simulation.choices import Site, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from incarnate.simulation.choices import Choices, Chosen

__all__ = ["Group", "Scheduler", "Task"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well


def _optional(name: str) -> Any:
    """A module, or None where it is not installed: the simulation can be imported without, and not used."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


greenlet = _optional("greenlet")

_OF_ANOTHER_THREAD = (
    "a simulated system was called from another thread, which no seed decides on: an asyncio supervisor and one with "
    "threads are tested on a system of their own, such as AsyncSessionSystem.open('memory://') (docs/testing.md)"
)

_STEP_MICROS = 10
"""Virtual time that a point costs, so that a loop which waits for a deadline comes to it."""


class Group(Protocol):
    """A process, as the scheduler sees it: tasks that die and stop together."""

    name: str
    paused: bool
    parked: list[Task]
    """Tasks that could run if it was not paused."""

    @property
    def mortal(self) -> bool:
        """Whether it may be killed and stopped."""
        ...

    def obey(self, chosen: Chosen) -> None:
        """Die or stop."""
        ...


class Task(Site):
    """Work that runs when the scheduler says so. It may be run again once it has ended, and keeps its name."""

    __slots__ = ("alive", "call", "dead", "greenlet", "group", "waits", "what", "woken", "work")

    def __init__(self, name: str, group: Group | None, work: Callable[[], object]) -> None:
        super().__init__(name)
        self.group = group
        self.work = work
        self.greenlet: Any = None
        self.alive = False  # it has begun and not ended
        self.dead = False  # its process was killed: it never runs again
        self.what = ""  # it waits for this; empty while it could run
        self.waits = 0  # how many waits it began, so that a timer of an earlier one is known
        self.woken = False
        self.call: Any = None  # the call of an activation that it handles

    def __repr__(self) -> str:
        return f"<Task {self.name}{f' waits for {self.what}' if self.what else ''}>"


class Scheduler:
    """Runs tasks. The code that made it is a task too, `main`, which is never killed."""

    def __init__(self, choices: Choices, max_steps: int) -> None:
        if greenlet is None:
            raise MissingExtraError("simulation", "a simulation")
        self.choices = choices
        self.micros = 0
        self.steps = 0
        self.switches = 0
        self.lines: list[tuple[int, str, str]] = []
        self.failure: BaseException | None = None
        self.main = Task("main", None, lambda: None)
        self.main.greenlet = greenlet.getcurrent()
        self.main.alive = True
        self.running = self.main
        self.closing = False
        self._thread = get_ident()
        self._max_steps = max_steps
        self._runnable: deque[Task] = deque()
        self._timers: list[tuple[int, int, Task | Callable[[], None], int]] = []
        self._timer_count = 0
        self._started: list[Task] = []  # in order: what is left of them is ended so
        self._groups: dict[str, Group] = {}
        self._hub = greenlet.greenlet(self._serve)

    # What there is to choose from

    def others(self) -> Sequence[str]:
        """The tasks that could run now, in the order in which they came to be."""
        return [task.name for task in self._runnable]

    def victims(self) -> Sequence[str]:
        """The processes that may be killed or stopped."""
        return [name for name, group in self._groups.items() if group.mortal and not group.paused]

    def has_timers(self) -> bool:
        """Whether the next timer could go off early."""
        self._drop_old_timers()
        return bool(self._timers)

    # The trace

    def note(self, text: str, who: str = "") -> None:
        """Put a line into the trace."""
        self.lines.append((self.micros, who or self.running.name, text))

    def text(self) -> str:
        """The trace: a line for each thing that happened."""
        return "".join(f"{milliseconds(micros):>14}  {who}: {text}\n" for micros, who, text in self.lines)

    # Tasks

    def add(self, group: Group) -> None:
        """Know a process."""
        self._groups[group.name] = group

    def begin(self, task: Task) -> None:
        """Have `task` do its work, from the start; it must not be at it already."""
        task.alive = True
        task.what = ""
        task.greenlet = None
        self._make_runnable(task)

    def point(self, weight: int = 1) -> None:
        """Something else may happen here.

        Raises:
            GreenletExit: the running task is at its end.
            ClosedError: the simulation was closed before.
            SimulationFailedError: the run has failed, does not end, or is called from another thread.
        """
        if get_ident() != self._thread:
            self._refuse_thread()
        task = self.running
        if task.dead or self.closing:
            self._refuse(task)
        self._step()
        chosen = self.choices.at_point(task, weight, self)
        if chosen is not None:
            self._obey(task, chosen)

    def fault(self, *kinds: str) -> Chosen | None:
        """Which fault the running task's operation meets."""
        return self.choices.fault(self.running, kinds)

    def block(self, what: str, timeout: float | None = None) -> bool:
        """Have the running task wait until it is woken; False where `timeout` seconds went by before.

        Raises:
            GreenletExit, SimulationFailedError: as `point`.
        """
        if get_ident() != self._thread:
            self._refuse_thread()
        task = self.running
        if task.dead or self.closing:
            self._refuse(task)
        self._step()
        task.waits += 1
        task.what = what
        task.woken = False
        if timeout is not None:
            self._push(int(timeout * 1_000_000), task, task.waits)
        self._switch_from(task)
        return task.woken

    def wake(self, task: Task) -> None:
        """Let a waiting task go on."""
        if task.what and not task.dead:
            task.what = ""
            task.woken = True
            self._make_runnable(task)

    def after(self, micros: int, work: Callable[[], None]) -> None:
        """Do `work`, which must not wait, in so many microseconds."""
        self._push(micros, work, 0)

    def fail(self, error: BaseException) -> None:
        """End the run: whoever started it gets `error`."""
        if self.failure is None:
            self.failure = error
            self.note(f"failed with {type(error).__name__}")
        self.wake(self.main)

    def kill(self, tasks: Sequence[Task]) -> None:
        """Let none of `tasks` ever run again."""
        for task in tasks:
            task.dead = True
        self._runnable = deque(task for task in self._runnable if not task.dead)

    def park(self, tasks: Sequence[Task]) -> list[Task]:
        """Take those of `tasks` that could run out of the order; they are the answer."""
        parked = [task for task in self._runnable if task in tasks]
        self._runnable = deque(task for task in self._runnable if task not in tasks)
        return parked

    def unpark(self, group: Group) -> None:
        """A process that was paused goes on."""
        group.paused = False
        parked, group.parked = group.parked, []
        for task in parked:
            if not task.dead:
                self._runnable.append(task)

    def close(self) -> None:
        """End every task where it stands. Nothing that runs meanwhile reaches a store or another task."""
        self.closing = True
        for task in self._started:
            running = task.greenlet
            if running is not None and not running.dead:
                running.parent = greenlet.getcurrent()
                self.running = task
                running.throw(greenlet.GreenletExit)
        if self._hub:  # its frames are seen by no collector: it would keep the whole run, 230 KB, for ever
            self._hub.parent = greenlet.getcurrent()
            self._hub.throw(greenlet.GreenletExit)
        self._started.clear()
        self._runnable.clear()
        self._timers.clear()
        self.running = self.main

    # Within

    def _refuse_thread(self) -> NoReturn:
        """It would switch to tasks of a thread that is not its own, and whoever waits for it would wait for ever."""
        self.fail(SimulationFailedError(_OF_ANOTHER_THREAD, kind="one_thread"))
        raise SimulationFailedError(_OF_ANOTHER_THREAD, kind="one_thread")

    def _refuse(self, task: Task) -> NoReturn:
        if task is self.main:
            raise ClosedError("the simulation is closed: nothing of it runs any more")
        raise greenlet.GreenletExit

    def _step(self) -> None:
        self.micros += _STEP_MICROS
        self.steps += 1
        if self.steps > self._max_steps and self.failure is None:
            self.fail(SimulationFailedError(f"the run has not ended after {self._max_steps} steps"))
        if self.failure is not None:
            self._give_up()

    def _give_up(self) -> None:
        """Go to `main`, which raises the failure."""
        task = self.running
        if task is self.main:
            assert self.failure is not None
            raise self.failure
        self._make_runnable(task)
        self._switch_from(task)

    def _make_runnable(self, task: Task) -> None:
        group = task.group
        if group is not None and group.paused:
            group.parked.append(task)
        else:
            self._runnable.append(task)

    def _obey(self, task: Task, chosen: Chosen) -> None:
        if chosen.what == "run":
            other = next(one for one in self._runnable if one.name == chosen.whom)
            self._make_runnable(task)
            self._resume(task, other)
        elif chosen.what == "tick":
            self._fire()
        else:
            self._groups[chosen.whom].obey(chosen)
            group = task.group
            if task.dead:
                self._switch_from(task)
            elif group is not None and group.paused:
                group.parked.append(task)
                self._switch_from(task)

    def _switch_from(self, task: Task) -> None:
        """Run whoever is next, and come back when `task` is."""
        self._resume(task, self._pick(task))

    def _pick(self, task: Task) -> Task:
        runnable = self._runnable
        while self.has_timers() and self._timers[0][0] <= self.micros:  # its time has come, though others are busy
            self._fire()
        while not runnable:
            if not self._fire():
                self._deadlock()
        if self.failure is not None and self.main in runnable:
            return self.main
        if len(runnable) == 1:
            return runnable[0]
        return runnable[self.choices.among(task, self.others())]

    def _resume(self, task: Task | None, other: Task) -> None:
        self._runnable.remove(other)
        if other is not task:
            self.running = other
            self.switches += 1
            self.lines.append((self.micros, other.name, "goes on"))
            if other.greenlet is None:
                other.greenlet = greenlet.greenlet(self._run, self._hub)
                self._started.append(other)
                other.greenlet.switch(other)
            else:
                other.greenlet.switch()
        if task is not None:
            self._resumed(task)

    def _resumed(self, task: Task) -> None:
        if task.dead or self.closing:
            raise greenlet.GreenletExit
        if task is self.main and self.failure is not None:
            raise self.failure

    def _run(self, task: Task) -> None:
        try:
            task.work()
        except greenlet.GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, it must not end in the hub
            if not (task.dead or self.closing):
                self.fail(error)
        task.alive = False

    def _serve(self, *_ended: object) -> None:
        """Where a task goes that has ended."""
        while True:
            self._resume(None, self._pick(self.running))

    # Timers

    def _push(self, micros: int, what: Task | Callable[[], None], waits: int) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (self.micros + max(0, micros), self._timer_count, what, waits))

    def _drop_old_timers(self) -> None:
        while self._timers and _is_old(self._timers[0]):
            heapq.heappop(self._timers)

    def _fire(self) -> bool:
        """Let the next timer go off; False where there is none."""
        self._drop_old_timers()
        if not self._timers:
            return False
        due, _, what, _ = heapq.heappop(self._timers)
        self.micros = max(self.micros, due)
        if isinstance(what, Task):
            what.what = ""
            self._make_runnable(what)
        else:
            try:
                what()
            except Exception as error:  # noqa: BLE001 - it is in nobody's name: the run itself fails
                self.fail(error)
        return True

    def _deadlock(self) -> None:
        tasks = dict.fromkeys([self.main, *self._started])
        waiting = [f"{task.name} waits for {task.what}" for task in tasks if task.alive and task.what and not task.dead]
        self.fail(SimulationFailedError(f"nothing can go on: {'; '.join(waiting)}"))


def _is_old(timer: tuple[int, int, Task | Callable[[], None], int]) -> bool:
    what = timer[2]
    return isinstance(what, Task) and (what.dead or not what.what or what.waits != timer[3])
