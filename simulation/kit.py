"""`Simulation`: supervisors, the system under them and the store, in one thread and virtual time, as a seed says."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from incarnate.domain.errors import ClosedError, SimulationFailedError, StaleIncarnationError
from incarnate.simulation.checks import CHECKS
from incarnate.simulation.choices import Chosen, Planned, Seeded
from incarnate.simulation.history import History, Stored
from incarnate.simulation.process import Process
from incarnate.simulation.scheduler import Scheduler
from incarnate.simulation.stores import ProcessStore, Versions
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Self

    import pykka

    from incarnate.actors.system import SessionSystem
    from incarnate.domain.keys import ActivationKey
    from incarnate.simulation.checks import Check
    from incarnate.simulation.choices import Plan

__all__ = ["Simulation", "StoreSource"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well

T = TypeVar("T")

StoreSource = str | Callable[[], Store]
"""A URL, in which `{folder}` is a new folder for each run, or what makes the one store of all processes of a run."""

_MAIN = "main"
_MOST_STEPS = 50_000


class Simulation:
    """One run: all that can happen in one order or another is a choice of `seed`, and the same seed is the same run.

    `process` adds a supervisor in a process of its own, which the seed may kill, stop and start again; `system` and
    `spawn` are of the process `main`, which lives as long as the test. `run` lets all of it happen, `check` holds the
    promises of the library against what happened. A process without a supervisor meets no fault, only delays. Use it
    as a context manager, or call `close`.

    Args:
        seed: a whole number from 0 on.
        store: a URL (`{folder}` in it is a new folder), or what makes the store that all processes share.
        wrap: what each process puts around its store, such as a store of the test's own that misbehaves.
        plan: the choices of an earlier run that did not go the usual way; `seed` then only names the run.
        max_steps: a run that takes more has failed: it would not end.

    Raises:
        ValueError: `seed` is none.
        MissingExtraError: greenlet is not installed.
        UnavailableError: the store cannot be opened.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        store: StoreSource = "memory://",
        wrap: Callable[[Store], Store] | None = None,
        plan: Plan | None = None,
        max_steps: int = _MOST_STEPS,
    ) -> None:
        _check_seed(seed)
        self.seed = seed
        self._choices = Seeded(seed) if plan is None else Planned(plan)
        self._scheduler = Scheduler(self._choices, max_steps)
        self.history = History()
        self.options: dict[str, Any] = {}
        """What the systems of processes are made with from here on, such as `max_live`; see `SessionSystem.open`."""
        self._wrap = wrap
        self._source = _Source(store)
        self._versions = Versions() if self._source.shared is not None else None
        self._processes: dict[str, Process] = {}
        self._supervised: set[str] = set()
        self._waits = False
        self._closed = False
        _LOGGER.addFilter(self._take_log)
        try:
            self._main = self._add(_MAIN, None)
        except BaseException:  # a store that cannot be opened: what the library logs from here on must not vanish
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Simulation of seed {self.seed} at step {self.steps}>"

    # Who takes part

    def process(
        self,
        name: str,
        supervisor: Callable[..., object],
        *args: Any,
        may_end_with: tuple[type[BaseException], ...] = (StaleIncarnationError,),
    ) -> Process:
        """Run `supervisor(process, *args)` in a process of its own, and again each time it was killed.

        `process.system` is its session system. An exception that it ends with fails the run, unless it is one of
        `may_end_with`: to stop once a newer incarnation has taken over is what a supervisor should do.
        """

        def main(process: Process) -> object:
            return supervisor(process, *args)

        return self._add(name, main, may_end_with)

    def system(self, name: str = _MAIN) -> SessionSystem:
        """The session system of the process `name`, which is made without a supervisor if there is none yet."""
        process = self._processes.get(name) or self._add(name, None)
        return process.system

    def store(self, name: str = _MAIN) -> Store:
        """What the session system of the process `name` writes to, with what `wrap` put around it."""
        process = self._processes.get(name) or self._add(name, None)
        return process.store

    def spawn(self, work: Callable[..., object], *args: Any) -> None:
        """Do `work(*args)` beside everything else, in the process `main`."""
        self._main.spawn(work, *args)

    def start(self, actor: Callable[..., pykka.Actor], *args: Any) -> pykka.ActorRef[Any]:
        """A running actor of the class `actor`, made with `args`, in the process `main`."""
        return self._main.start(actor, *args)

    def _add(
        self,
        name: str,
        main: Callable[[Process], object] | None,
        may_end_with: tuple[type[BaseException], ...] = (),
    ) -> Process:
        if name in self._processes:
            raise ValueError(f"there is a process {name!r} already")
        if main is not None:
            self._supervised.add(name)
        process = Process(
            name, self._scheduler, self.history, self._make_store, self._changed, self.options, main, may_end_with
        )
        self._processes[name] = process
        return process

    def _make_store(self, name: str) -> Store:
        fails = name in self._supervised
        opened = self._source.open()
        store: Store = ProcessStore(opened, name, self._scheduler, self.history, self._versions, fails=fails)
        return store if self._wrap is None else self._wrap(store)

    # What a test does

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return self._scheduler.micros / 1_000_000

    @property
    def steps(self) -> int:
        """How many points the run came to."""
        return self._scheduler.steps

    @property
    def choices(self) -> Plan:
        """The choices so far that did not go the usual way: with `plan`, they are the run."""
        return self._choices.made

    def sleep(self, seconds: float) -> None:
        """Let that much virtual time go by."""
        self._scheduler.block("a sleep", seconds)

    def crash(self, name: str) -> None:
        """Kill the process `name` now, as a seed may at any time; for the test's own code."""
        self._processes[name].obey(Chosen("crash", name))

    def pause(self, name: str, seconds: float) -> None:
        """Stop the process `name` for that long, as a seed may at any time; for the test's own code."""
        self._processes[name].obey(Chosen("pause", name, int(seconds * 1_000_000)))

    def choose(self, options: Sequence[T]) -> T:
        """One of `options`, as the seed says; a run is shrunk towards the first."""
        return options[self._scheduler.choices.number(self._scheduler.running, len(options))]

    def random(self) -> float:
        """A number from 0 up to, not including, 1, as the seed says."""
        return self._scheduler.choices.number(self._scheduler.running, 1 << 30) / (1 << 30)

    def run(self) -> None:
        """Let everything happen until every supervisor, and all that was spawned, has come to its end.

        Raises:
            SimulationFailedError: nothing can go on, or it does not end.
            ClosedError: it was closed before.
            BaseException: what one of them raised.
        """
        scheduler = self._scheduler
        scheduler.point()
        while not all(process.over for process in self._processes.values()):
            self._waits = True
            scheduler.block("the end of every supervisor")
        self._waits = False

    def _changed(self) -> None:
        if self._waits:
            self._scheduler.wake(self._scheduler.main)

    def check(self, checks: Sequence[Check] = CHECKS) -> None:
        """Hold every promise against what happened. Nothing fails, dies or is late any more from here on.

        Every view of a living process is asked for its value, and the store for all it holds.

        Raises:
            SimulationFailedError: one was broken; its `kind` is the name of the check.
        """
        self._come_to_rest()
        for activation in self.history.activations():
            for check in checks:
                for text in check(activation):
                    name = getattr(check, "__name__", repr(check))
                    self._scheduler.note(f"{name}: {activation.key}: {text}")
                    raise SimulationFailedError(
                        f"{name}: {activation.key}: {text}", kind=name, seed=self.seed, trace=self.trace
                    )

    def _come_to_rest(self) -> None:
        scheduler = self._scheduler
        scheduler.choices = Planned({})
        scheduler.note("comes to rest")
        for process in self._processes.values():
            if process.paused:
                scheduler.unpark(process)
        self.run()
        while scheduler.others():
            scheduler.block("everybody else", 0.001)
        for process in self._processes.values():
            for view, _ in list(process.views.values()):
                with suppress(ClosedError):  # a supervisor may have closed its system
                    view.get()
        with self._source.reading() as store:
            for activation in self.history.activations():
                activation.stored = _stored(store, activation.key)

    # What it was

    @property
    def trace(self) -> str:
        """All that happened, a line each: when in virtual time, in whose name, what."""
        return self._scheduler.text()

    @property
    def digest(self) -> str:
        """The SHA-256 of the trace: equal for equal runs."""
        return hashlib.sha256(self.trace.encode()).hexdigest()

    def close(self) -> None:
        """End what still runs, and let go of the store. Closing twice is no error."""
        if not self._closed:
            self._closed = True
            try:
                self._scheduler.close()
                for process in self._processes.values():
                    process.store.close()
                self._source.close()
            finally:
                _LOGGER.removeFilter(self._take_log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _take_log(self, record: logging.LogRecord) -> bool:
        """What the library logs is a line of the trace, and goes nowhere else: seeds by the thousand would drown it."""
        if not self._scheduler.closing:
            self._scheduler.note(f"logs {record.msg!r}")  # without its arguments: an object's text may hold an address
        return False


_LOGGER = logging.getLogger("incarnate")


class _Source:
    """Where the stores of a run come from."""

    def __init__(self, source: StoreSource) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.shared: Store | None = None
        self._url = ""
        if not isinstance(source, str):
            self.shared = source()
            return
        if "{folder}" in source:
            self._folder = tempfile.TemporaryDirectory(prefix="incarnate-simulation-")
            source = source.replace("{folder}", self._folder.name)
        self._url = source
        if source.lower().startswith("memory://"):
            self.shared = open_store(source)

    def open(self) -> Store:
        """The store of one process: a connection of its own, or the one that all share."""
        return open_store(self._url) if self.shared is None else self.shared

    @contextmanager
    def reading(self) -> Generator[Store]:
        """The store as somebody sees it who has nothing to do with the run."""
        store = self.open()
        try:
            yield store
        finally:
            if store is not self.shared:
                store.close()

    def close(self) -> None:
        """Let go of the shared store and of the folder."""
        if self.shared is not None:
            self.shared.close()
        if self._folder is not None:
            self._folder.cleanup()


def _check_seed(seed: object) -> None:
    """Refuse what names no one run: None would be drawn by chance, and -7 is the same run as 7."""
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"a seed is a whole number from 0 on, not {seed!r}")


def _stored(store: Store, key: ActivationKey) -> Stored:
    with store.snapshot(key) as log:
        head = log.head
        events = list(log.appended(0, head.next_offset))
        checkpoints = [log.checkpoint(name) for name in log.checkpoint_ids()]
        return Stored(head, events, [(kept.id, kept.offset) for kept in checkpoints if kept is not None])
