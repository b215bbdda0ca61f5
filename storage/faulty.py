"""A store that fails on demand: any store, with faults for its next operations, to test what uses it.

```python
store = FaultyStore(open_store("memory://"))
with SessionSystem(store) as system:
    session = system.claim(key)
    store.lose(kind="checkpoint")                # the next checkpoint is written, and its answer lost
```
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from incarnate.domain.codec import EncodedEvent
from incarnate.domain.decisions import Decision
from incarnate.domain.errors import OutcomeUnknownError, RefusedError, StoreBusyError, StoreUrlError
from incarnate.storage.port import Snapshot, Store, Swept

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence
    from typing import SupportsIndex

    from incarnate.domain.decisions import Change, StoredLog
    from incarnate.domain.heads import Head
    from incarnate.domain.keys import ActivationKey
    from incarnate.storage.port import ActivationInfo, Decide

__all__ = ["Fault", "FaultyStore", "Kind"]

T = TypeVar("T")

Kind = Literal[
    "write",
    "transact",
    "append",
    "rewind",
    "checkpoint",
    "turn",
    "fence",
    "retire",
    "fork",
    "sweep",
    "vacuum",
    "read",
    "head",
    "snapshot",
    "activations",
    "version",
]
"""What a fault waits for.

`write` is any of `transact`, `fork`, `sweep` and `vacuum`; `read` any of `head`, `snapshot`, `activations` and
`version`. From `append` to `retire` it is a `transact` by what its first step is about to change: a rewind is an append
too, and what takes the fence is a `fence` besides what else it is.
"""

Effect = Literal["fail", "reject", "tear", "lose", "delay"]

_WRITES = frozenset({"transact", "fork", "sweep", "vacuum"})
_CHANGES = frozenset({"append", "rewind", "checkpoint", "turn", "fence", "retire"})


class Fault:
    """One armed fault.

    `left` is how many operations it still waits for, None for all to come; `hits` how many it has met; `reached` is
    set at the first of them.
    """

    def __init__(
        self,
        effect: Effect,
        times: int | None,
        kind: Kind,
        key: ActivationKey | None,
        *,
        error: BaseException | None = None,
        wait: Callable[[], object] | None = None,
    ) -> None:
        self.effect = effect
        self.kind = kind
        self.key = key
        self.left = times
        self.hits = 0
        self.reached = threading.Event()
        self.error = error
        self.wait = wait

    def cancel(self) -> None:
        """Wait for nothing any more."""
        self.left = 0

    def fits(self, names: set[str], key: ActivationKey | None) -> bool:
        """Whether an operation of these names on `key` is one that it waits for."""
        return self.left != 0 and self.kind in names and (self.key is None or self.key == key)

    def hit(self) -> None:
        """It has met one."""
        self.left = None if self.left is None else self.left - 1
        self.hits += 1
        self.reached.set()

    def strike(self, *effects: Effect) -> None:
        """Raise its error, if it has one of these effects."""
        if self.effect in effects and self.error is not None:
            raise self.error

    def altered(self, decides: Sequence[Decide]) -> Sequence[Decide]:
        """What the store is asked to decide in the place of `decides`."""
        if self.effect == "reject":
            return [self._refuse]
        return [self._torn(decides[0]), *decides[1:]] if self.effect == "tear" else decides

    def _refuse(self, stored: StoredLog) -> Decision:
        assert isinstance(self.error, RefusedError)
        return Decision(None, stored.head, error=self.error)

    def _torn(self, decide: Decide) -> Decide:
        error = self.error
        assert error is not None

        def work_out(stored: StoredLog) -> Decision:
            decision = decide(stored)
            if decision.change is None or not decision.change.events:
                raise error
            torn = _TornEvents(decision.change.events)
            torn.error = error
            return msgspec.structs.replace(decision, change=msgspec.structs.replace(decision.change, events=torn))

        return work_out

    def __repr__(self) -> str:
        return f"<Fault {self.effect} {self.kind}: {self.hits} hit, {'all' if self.left is None else self.left} left>"


class _TornEvents(tuple[EncodedEvent, ...]):  # noqa: SLOT001 - a tuple has no room for slots
    """Events that break off half-way."""

    error: BaseException

    def __iter__(self) -> Iterator[EncodedEvent]:
        whole = super().__iter__()
        for _ in range(len(self) // 2):
            yield next(whole)
        raise self.error

    def __getitem__(self, _: SupportsIndex | slice) -> EncodedEvent:  # type: ignore[override]
        raise self.error


class FaultyStore(Store):
    """`store`, and the faults that are armed for its next operations.

    Each of `fail`, `reject`, `tear`, `lose` and `delay` waits for the next `times` operations (None: for all, until it
    is cancelled) of a `kind`, and of `key` if one is given, and gives the `Fault` back. An operation meets every delay
    that waits for it, then the first of the other faults. A `transact_all` is one operation, a `transact`. Everything
    may be called from any thread.

    `calls` counts the operations, those that met a fault too: by name, and as `write` or `read`.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.url = store.url
        self.calls: Counter[str] = Counter()
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    # Faults

    def fail(
        self,
        times: int | None = 1,
        *,
        kind: Kind = "write",
        key: ActivationKey | None = None,
        error: BaseException | None = None,
    ) -> Fault:
        """Raise before the store is asked, so that nothing is written: `StoreBusyError`, or `error`."""
        error = error or StoreBusyError("busy on purpose; nothing was written")
        return self._arm(Fault("fail", times, kind, key, error=error))

    def reject(
        self,
        times: int | None = 1,
        *,
        kind: Kind = "write",
        key: ActivationKey | None = None,
        error: RefusedError | None = None,
    ) -> Fault:
        """Refuse as a log does, changing nothing: a `transact` answers with the refusal, the others raise it."""
        error = error or RefusedError("refused on purpose; nothing changed")
        return self._arm(Fault("reject", times, kind, key, error=error))

    def tear(
        self,
        times: int | None = 1,
        *,
        kind: Kind = "transact",
        key: ActivationKey | None = None,
        error: BaseException | None = None,
    ) -> Fault:
        """Break off in the middle of a `transact`: half of its events are handed over, then comes `StoreBusyError`.

        It, or `error`, is raised inside the own transaction of the store, out of the events about to be written. All
        or none holds, so nothing of the operation is written: unlike after `fail`, that is the store's work. A change
        without events breaks off before it is handed over, a `transact_all` in its first step.
        """
        error = error or StoreBusyError("torn on purpose; nothing was written")
        return self._arm(Fault("tear", times, kind, key, error=error))

    def lose(
        self,
        times: int | None = 1,
        *,
        kind: Kind = "write",
        key: ActivationKey | None = None,
        error: BaseException | None = None,
    ) -> Fault:
        """Do it and lose the answer: `OutcomeUnknownError`, or `error`, is raised once it is written."""
        error = error or OutcomeUnknownError("the answer was lost on purpose; it was written")
        return self._arm(Fault("lose", times, kind, key, error=error))

    def delay(
        self,
        until: threading.Event | Callable[[], object],
        times: int | None = 1,
        *,
        kind: Kind = "write",
        key: ActivationKey | None = None,
    ) -> Fault:
        """Hold up before the store is asked, until the event is set or the callable returns."""
        wait = until.wait if isinstance(until, threading.Event) else until
        return self._arm(Fault("delay", times, kind, key, wait=wait))

    def arm(self, faults: str) -> None:
        """Arm what stands after the `#` of a URL: `fail=2&lose=1` is for the next two writes and for the one after.

        Raises:
            StoreUrlError: it does not read so.
        """
        effects = {"fail": self.fail, "reject": self.reject, "tear": self.tear, "lose": self.lose}
        for fault in faults.split("&") if faults else ():
            name, _, times = fault.partition("=")
            if name not in effects or not (times.isascii() and times.isdigit()):
                raise StoreUrlError(
                    f"{fault!r} is no fault of a store", hint="write fail|reject|tear|lose=TIMES after #, joined by &"
                )
            effects[name](int(times))

    def mend(self) -> None:
        """Cancel every fault."""
        with self._lock:
            for fault in self._faults:
                fault.cancel()

    def _arm(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults = [armed for armed in self._faults if armed.left != 0]
            self._faults.append(fault)
        return fault

    def _meet(self, operation: str, key: ActivationKey | None = None, decide: Decide | None = None) -> Fault | None:
        """Count the operation, sit out its delays, and take the fault that it meets."""
        names = {operation, "write" if operation in _WRITES else "read"}
        with self._lock:
            self.calls.update(names)
            looks = any(fault.left != 0 and fault.kind in _CHANGES for fault in self._faults)
        if looks and key is not None and decide is not None:
            with self.store.snapshot(key) as log:
                names |= _changes(decide(log).change)  # deciding is pure; this decision is thrown away
        with self._lock:
            delays = [fault for fault in self._faults if fault.effect == "delay" and fault.fits(names, key)]
            others = [fault for fault in self._faults if fault.effect != "delay" and fault.fits(names, key)][:1]
            for fault in (*delays, *others):
                fault.hit()
        for delay in delays:
            assert delay.wait is not None
            delay.wait()
        return others[0] if others else None

    def _run(self, operation: str, key: ActivationKey | None, run: Callable[[], T]) -> T:
        fault = self._meet(operation, key)
        if fault is not None:
            fault.strike("fail", "reject", "tear")
        result = run()
        if fault is not None:
            fault.strike("lose")
        return result

    def _decide(
        self, key: ActivationKey, decides: Sequence[Decide], run: Callable[[Sequence[Decide]], Decision]
    ) -> Decision:
        fault = self._meet("transact", key, decides[0])
        if fault is None:
            return run(decides)
        fault.strike("fail")
        decision = run(fault.altered(decides))
        fault.strike("lose")
        if fault.effect == "tear":
            raise OutcomeUnknownError(f"{self.url} came back from a torn write: it never looked at what it wrote")
        return decision

    # The store

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        return self._decide(key, [decide], lambda decides: self.store.transact(key, decides[0], now_ms))

    def transact_all(self, key: ActivationKey, decides: Sequence[Decide], now_ms: int) -> Decision:
        return self._decide(key, decides, lambda altered: self.store.transact_all(key, altered, now_ms))

    @contextmanager
    def snapshot(self, key: ActivationKey) -> Generator[Snapshot]:
        with self._run("snapshot", key, lambda: self.store.snapshot(key)) as log:
            yield log

    def head(self, key: ActivationKey) -> Head:
        return self._run("head", key, lambda: self.store.head(key))

    def activations(self) -> Iterator[ActivationInfo]:
        return self._run("activations", None, self.store.activations)

    def keys(self) -> Iterator[ActivationKey]:
        return self._run("activations", None, self.store.keys)

    def fork(self, key: ActivationKey, new_key: ActivationKey, offset: int, now_ms: int) -> Head:
        return self._run("fork", key, lambda: self.store.fork(key, new_key, offset, now_ms))

    def sweep(self, before_ms: int, keys: Collection[ActivationKey] | None = None) -> Swept:
        return self._run("sweep", None, lambda: self.store.sweep(before_ms, keys))

    def vacuum(self) -> None:
        self._run("vacuum", None, self.store.vacuum)

    def version(self) -> int:
        return self._run("version", None, self.store.version)

    def group_sizes(self) -> Sequence[int]:
        return self.store.group_sizes()

    def damage(self) -> Iterator[str]:
        return self.store.damage()

    def close(self) -> None:
        self.store.close()


def _changes(change: Change | None) -> set[str]:
    """The kinds that a change is of."""
    if change is None:
        return set()
    kinds = {
        "append": bool(change.events),
        "rewind": change.cut is not None,
        "checkpoint": change.checkpoint is not None,
        "turn": change.next_turn is not None,
        "fence": change.fence is not None,
        "retire": change.retired,
    }
    return {kind for kind, is_so in kinds.items() if is_so}
