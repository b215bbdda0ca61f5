"""A simulated process: a system of its own over the shared store, and tasks that die with it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from incarnate.actors.activation import ActivationActor
from incarnate.actors.projector import GetView, ProjectorActor
from incarnate.actors.system import SessionSystem
from incarnate.domain.commands import (
    Append,
    AppendMany,
    Claim,
    GetCheckpoint,
    GetHead,
    LatestCheckpoint,
    Lease,
    NextTurn,
    PutCheckpoint,
    Replay,
    Retire,
)
from incarnate.simulation.choices import Site
from incarnate.simulation.history import Call, ViewCall
from incarnate.simulation.plain import call_plain
from incarnate.simulation.runtime import SimulatedRuntime
from incarnate.simulation.scheduler import Group, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pykka

    from incarnate.actors.view import View
    from incarnate.domain.keys import ActivationKey
    from incarnate.domain.projections.base import Projection
    from incarnate.simulation.choices import Chosen
    from incarnate.simulation.history import History
    from incarnate.simulation.mailbox import Recorded
    from incarnate.simulation.scheduler import Scheduler
    from incarnate.storage.port import Store

__all__ = ["Process"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well

EPOCH_MS = 1_767_225_600_000
"""What clocks show when a run begins: 2026-01-01T00:00:00Z."""

_SKEWS_MS = (0, 0, 1500, -1500)
"""How far the clock of a process may be off: offsets order a log, times only tell."""

_RESTART_MICROS = 1_000
_LATE_RESTART_MICROS = 200_000


_COMMANDS = frozenset(
    {
        Lease,
        Claim,
        Append,
        AppendMany,
        PutCheckpoint,
        NextTurn,
        Retire,
        GetHead,
        LatestCheckpoint,
        GetCheckpoint,
        Replay,
    }
)

T = TypeVar("T")
V = TypeVar("V")


class SimulatedSystem(SessionSystem):
    """The session system of a simulated process: like any other, and it tells the process which views it has."""

    def __init__(self, process: Process, store: Store, runtime: SimulatedRuntime, options: Mapping[str, Any]) -> None:
        super().__init__(store, clock=process.clock, new_id=process.new_id, dispatcher=runtime, **options)
        self._process = process

    def view(self, key: ActivationKey, projection: Projection[V]) -> View[V]:
        """As `SessionSystem.view`."""
        view = super().view(key, projection)
        self._process.views[key, projection.name] = (view, projection)
        return view


class Process(Group):
    """What a supervisor gets: its process, as it would find it on a machine.

    `system` is its session system, a new one after each start. `starts` counts those, 1 in the first life. `runtime`
    makes locks, events and futures on which tasks of the process can wait for each other.
    """

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        history: History,
        make_store: Callable[[str], Store],
        changed: Callable[[], None],
        options: Mapping[str, Any],
        main: Callable[[Process], object] | None = None,
        may_end_with: tuple[type[BaseException], ...] = (),
    ) -> None:
        self.name = name
        self.scheduler = scheduler
        self.history = history
        self.starts = 0
        self.paused = False
        self.parked: list[Task] = []
        self.alive = False
        self.views: dict[tuple[ActivationKey, str], tuple[View[Any], Projection[Any]]] = {}
        self._make_store = make_store
        self._changed = changed
        self._options = options
        self._main = main
        self._may_end_with = may_end_with
        self._site = Site(f"process {name}")
        self._tasks: list[Task] = []
        self._names: dict[str, int] = {}
        self._busy = 0
        scheduler.add(self)
        self._start()

    def __repr__(self) -> str:
        return f"<Process {self.name}{'' if self.alive else ', killed'}>"

    # What a supervisor does

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return self.scheduler.micros / 1_000_000

    def sleep(self, seconds: float) -> None:
        """Let that much virtual time go by."""
        self.scheduler.block("a sleep", seconds)

    def choose(self, options: Sequence[T]) -> T:
        """One of `options`, as the seed says; a run is shrunk towards the first."""
        return options[self.scheduler.choices.number(self.scheduler.running, len(options))]

    def spawn(self, work: Callable[..., object], *args: Any) -> None:
        """Do `work(*args)` beside what calls this, until it ends or the process dies."""
        name = getattr(work, "__name__", "work")
        self._busy += 1
        self.scheduler.begin(self.task(name, functools.partial(self._supervise, functools.partial(work, *args))))

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        """A running actor of the user's class `actor`, made with `args`; it dies with the process."""
        return self.runtime.start(actor, *args)

    # Its life

    @property
    def mortal(self) -> bool:
        """Whether it may be killed and stopped: it has something to do, and is no part of the test itself."""
        return self.alive and self._main is not None and self._busy > 0

    @property
    def over(self) -> bool:
        """Whether it has nothing to do any more."""
        return not self._busy and (self.alive or self._main is None)  # without a main function nobody starts it anew

    def obey(self, chosen: Chosen) -> None:
        """Die or stop."""
        self.scheduler.note(str(chosen), self.name)
        if chosen.what == "crash":
            self.crash()
            return
        self.paused = True
        life = self.starts
        self.parked = self.scheduler.park(self._tasks)
        self.scheduler.after(chosen.micros, lambda: self._go_on(life))

    def crash(self) -> None:
        """Kill it, as `kill -9` would: nothing of it runs any more. It is started anew, if it has a main function."""
        self.alive = False
        self.paused = False
        self.parked = []
        self._busy = 0
        self.scheduler.kill(self._tasks)
        self._tasks = []
        self.views = {}
        self.store.close()
        if self._main is not None:
            late = self.scheduler.choices.number(self._site, _LATE_RESTART_MICROS)
            self.scheduler.after(_RESTART_MICROS + late, self._start)

    def _go_on(self, life: int) -> None:
        if self.paused and self.starts == life:
            self.scheduler.note("goes on after the pause", self.name)
            self.scheduler.unpark(self)

    def _start(self) -> None:
        self.starts += 1
        self.alive = True
        self._names = {}
        self._prefix = self.name if self.starts == 1 else f"{self.name}.{self.starts}"
        self._ids = 0
        skew = _SKEWS_MS[self.scheduler.choices.number(self._site, len(_SKEWS_MS))]
        self._offset_ms = EPOCH_MS + skew
        self.store = self._make_store(self.name)
        self.runtime = SimulatedRuntime(self)
        self.views = {}
        self.system: SessionSystem = SimulatedSystem(self, self.store, self.runtime, self._options)
        if self._main is not None:
            self.scheduler.note(f"starts ({self.starts})", self.name)
            self.spawn(self._main, self)

    def _supervise(self, work: Callable[[], object]) -> None:
        try:
            call_plain(work)
        except self._may_end_with as error:
            self.scheduler.note(f"ends with {type(error).__name__}")
        self._busy -= 1
        self._changed()

    # What its system and actors need

    def clock(self) -> int:
        """Milliseconds since the epoch, as the process's own clock shows them."""
        return self._offset_ms + self.scheduler.micros // 1000

    def new_id(self) -> str:
        """An id that no process of the run ever made."""
        self._ids += 1
        return f"{self._prefix}-{self._ids}"

    def called(self, actor: pykka.Actor, message: Any) -> Recorded | None:
        """Remember that `message` is sent to `actor`, if a checker wants to know."""
        if type(message) in _COMMANDS and isinstance(actor, ActivationActor):
            return self.history.of(actor._key).add(Call(self.history, self.name, message))  # noqa: SLF001 - it has no other name
        if type(message) is GetView and message.attribute == "value" and isinstance(actor, ProjectorActor):
            reads = self.history.of(actor._key).views  # noqa: SLF001 - likewise
            return ViewCall(reads, actor._projection.fresh(), self.name, (message.generation, message.next_offset))  # noqa: SLF001
        return None

    def task(self, name: str, work: Callable[[], object]) -> Task:
        """A task of this life of the process, not begun."""
        count = self._names[name] = self._names.get(name, 0) + 1
        task = Task(f"{self._prefix}/{name}{'' if count == 1 else f' {count}'}", self, work)
        self._tasks.append(task)
        return task
