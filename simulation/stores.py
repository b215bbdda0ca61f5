# ruff: noqa: D102 - the port says what each does
"""The store as one simulated process sees it: late, busy, forgetful of answers, and gone when the process dies."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from incarnate.domain.errors import OutcomeUnknownError, StoreBusyError
from incarnate.simulation.history import Call, Commit
from incarnate.storage.faulty import FaultyStore
from incarnate.storage.port import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence

    from incarnate.domain.decisions import Decision, StoredLog
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.simulation.choices import Chosen
    from incarnate.simulation.history import History
    from incarnate.simulation.scheduler import Scheduler
    from incarnate.storage.port import ActivationInfo, Decide, Snapshot, Swept

__all__ = ["ProcessStore"]

__tracebackhide__ = True  # pytest shows the lines of a test and its supervisor alone; --full-trace shows these as well

T = TypeVar("T")

_WEIGHT = 4
"""A point around a commit counts for so many others: most races are there."""


class ProcessStore(Store):
    """`store`, reached by `process` through points and faults.

    `versions` counts the commits of all processes, for a store that cannot tell processes of one memory apart; None
    where `store` is the process's own and tells by itself. With `fails` it meets faults, else it is only late.
    """

    def __init__(
        self,
        store: Store,
        process: str,
        scheduler: Scheduler,
        history: History,
        versions: Versions | None,
        *,
        fails: bool,
    ) -> None:
        self.store = store
        self.url = store.url
        self._faulty = FaultyStore(store)
        self._process = process
        self._scheduler = scheduler
        self._history = history
        self._versions = versions
        self._fails = fails

    def _fault(self, *kinds: str) -> Chosen | None:
        return self._scheduler.fault(*kinds) if self._fails else None

    def _acts(self) -> Call | None:
        """The call that the store is asked for, which is noted in it."""
        call: object = self._scheduler.running.call
        if not isinstance(call, Call):
            return None
        call.acted = self._history.tick()
        return call

    # Writes

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        scheduler = self._scheduler
        scheduler.point(_WEIGHT)
        fault = self._fault("fail", "tear", "delay", "lose")
        if fault is not None:
            self._before(fault, f"a write to {key}")
        try:
            decision = self._commit(key, decide, now_ms, fault)
        except BaseException as error:
            scheduler.note(f"cannot write to {key}: {type(error).__name__}")
            raise
        scheduler.point(_WEIGHT)
        late = self._fault("delay")
        if late is not None:
            self._before(late, f"the answer to a write to {key}")
        if fault is not None and fault.what == "lose":
            raise OutcomeUnknownError("the answer was lost on purpose; it was written")
        return decision

    def _before(self, fault: Chosen, what: str) -> None:
        self._scheduler.note(f"{fault}: {what}")
        if fault.what == "fail":
            raise StoreBusyError("busy on purpose; nothing was written")
        if fault.what == "delay":
            self._scheduler.block("a slow store", fault.micros / 1_000_000)

    def _commit(self, key: ActivationKey, decide: Decide, now_ms: int, fault: Chosen | None) -> Decision:
        before: list[Head] = []

        def work_out(stored: StoredLog) -> Decision:
            before[:] = [stored.head]
            return decide(stored)

        call = self._acts()
        if call is not None:
            call.at_ms = now_ms
        if fault is None or fault.what != "tear":
            decision = self.store.transact(key, work_out, now_ms)
        else:
            armed = self._faulty.tear(kind="transact", key=key)
            try:
                decision = self._faulty.transact(key, work_out, now_ms)
            finally:
                armed.cancel()
        self._committed(key, decision, before[0])
        return decision

    def _committed(self, key: ActivationKey, decision: Decision, before: Head) -> None:
        change = decision.change
        head = decision.head
        refused = "" if decision.error is None else f", refused with {type(decision.error).__name__}"
        stands = f"{key} stands at {head.generation}:{head.next_offset}, fence {head.fence}{refused}"
        if change is None:
            self._scheduler.note(f"writes nothing: {stands}")
            return
        self._scheduler.note(f"commits: {stands}")
        commit = Commit(self._history.tick(), self._process, before, change, head)
        self._history.of(key).commits.append(commit)
        self._moved()

    def _moved(self) -> None:
        if self._versions is not None:
            self._versions.add(self._process)

    def _do(self, what: str, work: Callable[[], T]) -> T:
        scheduler = self._scheduler
        scheduler.point(_WEIGHT)
        fault = self._fault("fail", "delay", "lose")
        if fault is not None:
            self._before(fault, what)
        result = work()
        scheduler.note(f"does {what}")
        self._moved()
        scheduler.point(_WEIGHT)
        if fault is not None and fault.what == "lose":
            raise OutcomeUnknownError("the answer was lost on purpose; it was written")
        return result

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        self._history.of(new_key).whole = False
        return self._do(f"a fork of {key} to {new_key}", lambda: self.store.fork(key, new_key, offset, now_ms))

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        for activation in self._history.activations():
            activation.whole = activation.whole and keys is not None and activation.key not in keys
        return self._do("a sweep", lambda: self.store.sweep(before_ms, keys))

    def vacuum(self) -> None:
        self._do("a vacuum", self.store.vacuum)

    # Reads

    def _read(self, what: str) -> None:
        scheduler = self._scheduler
        scheduler.point()
        fault = self._fault("busy read", "delay")
        if fault is not None:
            scheduler.note(f"{fault}: {what}")
            if fault.what == "busy read":
                raise StoreBusyError("busy on purpose")
            scheduler.block("a slow store", fault.micros / 1_000_000)
        self._acts()

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        self._read("a snapshot")
        with self.store.snapshot(key) as log:
            yield log
        self._scheduler.point()

    def head(self, key: ActivationKey) -> Head:
        self._read("a head")
        head = self.store.head(key)
        self._scheduler.point()
        return head

    def activations(self) -> Iterator[ActivationInfo]:
        self._read("a listing")
        return self.store.activations()

    def keys(self) -> Iterator[ActivationKey]:
        self._read("a listing")
        return self.store.keys()

    def group_sizes(self) -> Sequence[int]:
        return self.store.group_sizes()

    def version(self) -> int:
        self._scheduler.point()
        return self.store.version() if self._versions is None else self._versions.seen_by(self._process)

    def close(self) -> None:
        if self._versions is None:
            self.store.close()  # else it is every process's, and the simulation closes it


class Versions:
    """How many commits each process made: what others made is what a process watches for."""

    def __init__(self) -> None:
        self._all = 0
        self._own: dict[str, int] = {}

    def add(self, process: str) -> None:
        """`process` has committed."""
        self._all += 1
        self._own[process] = self._own.get(process, 0) + 1

    def seen_by(self, process: str) -> int:
        """A number that changes when another process than `process` has committed."""
        return self._all - self._own.get(process, 0)
