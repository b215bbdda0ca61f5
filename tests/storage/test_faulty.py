"""The faulty store: each fault does what it says, to the operations it waits for, over every back end."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from incarnate import (
    ActivationKey,
    AppendMany,
    Claim,
    FaultyStore,
    OutcomeUnknownError,
    RefusedError,
    RetiredError,
    StoreBusyError,
    StoreUrlError,
    open_store,
)
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.storage.contract import StoreContract
from incarnate.storage.faulty import Kind
from incarnate.storage.memory import MemoryStore
from incarnate.storage.port import Decide, Store
from tests.support.stores import KEY, OTHER, Log, checkpoint, notes


class TestWithoutFaults(StoreContract):
    lacks = ("durable", "shared", "processes", "read-only")

    def open_store(self, folder: Path) -> Store:  # noqa: ARG002 - memory has none
        return FaultyStore(MemoryStore())


@pytest.fixture
def faulty(store: Store) -> FaultyStore:
    return FaultyStore(store)


@pytest.fixture
def log(faulty: FaultyStore) -> Log:
    log = Log(faulty)
    log.append(0, "ab")
    log.put(checkpoint("cp", 2))
    return log


Write = Callable[[Log], object]
WRITES: dict[str, Write] = {
    "append": lambda log: log.append(2, "wxyz"),
    "one event": lambda log: log.append_one(2, "x"),
    "rewind": lambda log: log.append(1, "wxyz"),
    "checkpoint": lambda log: log.put(checkpoint("new", 2)),
    "turn": Log.next_turn,
    "claim": Log.claim,
    "fork": lambda log: log.store.fork(KEY, OTHER, 1, 0),
}
each_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


def seen(log: Log) -> object:
    return log.everything(), Log(log.store, OTHER).everything(), [*log.store.keys()]


@each_write
def test_what_fails_is_not_written_and_the_next_is(faulty: FaultyStore, log: Log, write: Write) -> None:
    before = seen(log)
    faulty.fail()
    with pytest.raises(StoreBusyError, match="on purpose"):
        write(log)

    assert before == seen(log)
    write(log)
    assert before != seen(log)


@each_write
def test_what_is_rejected_changes_nothing(faulty: FaultyStore, log: Log, write: Write) -> None:
    before = seen(log)
    faulty.reject(error=RetiredError(KEY))
    with pytest.raises(RetiredError):
        write(log)

    assert before == seen(log)
    write(log)
    assert before != seen(log)


@each_write
def test_what_is_torn_is_not_written_whatever_the_back_end(faulty: FaultyStore, log: Log, write: Write) -> None:
    before = seen(log)
    fault = faulty.tear(kind="write")
    with pytest.raises(StoreBusyError, match="torn on purpose"):
        write(log)

    assert (1, before) == (fault.hits, seen(log))
    write(log)
    assert before != seen(log)


@each_write
def test_what_loses_its_answer_is_written(faulty: FaultyStore, log: Log, write: Write) -> None:
    before = seen(log)
    faulty.lose()
    with pytest.raises(OutcomeUnknownError, match="on purpose"):
        write(log)

    assert before != seen(log)


def test_what_is_delayed_waits_for_its_event_and_is_written(faulty: FaultyStore, log: Log) -> None:
    go = threading.Event()
    fault = faulty.delay(go)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(log.append, 2, "c")

        assert fault.reached.wait(10)
        assert ("ab", False) == (log.names, writing.done())
        go.set()
        assert 2 == writing.result(10)[0].offset
    assert "abc" == log.names


def test_a_delay_may_be_anything_that_returns_and_comes_before_the_other_faults(faulty: FaultyStore, log: Log) -> None:
    calls: list[str] = []
    faulty.fail()
    faulty.delay(lambda: calls.append("delayed"))
    with pytest.raises(StoreBusyError):
        log.claim()

    assert ["delayed"] == calls


def test_a_fault_meets_as_many_operations_as_it_was_armed_for(faulty: FaultyStore, log: Log) -> None:
    fault = faulty.fail(2)
    for _ in range(2):
        with pytest.raises(StoreBusyError):
            log.claim()

    assert [2, 3] == [log.claim().fence for _ in range(2)]
    assert (2, 0) == (fault.hits, fault.left)


def test_faults_are_met_in_the_order_in_which_they_were_armed(faulty: FaultyStore, log: Log) -> None:
    faulty.arm("fail=1&lose=1&reject=1")
    for error in (StoreBusyError, OutcomeUnknownError, RefusedError):
        with pytest.raises(error):
            log.claim()

    assert 3 == log.claim().fence


@pytest.mark.parametrize("stop", ["cancel", "mend"])
def test_a_fault_for_all_lasts_until_it_is_cancelled(faulty: FaultyStore, log: Log, stop: str) -> None:
    fault = faulty.fail(None)
    for _ in range(3):
        with pytest.raises(StoreBusyError):
            log.claim()
    fault.cancel() if stop == "cancel" else faulty.mend()

    assert 2 == log.claim().fence
    assert "<Fault fail write: 3 hit, 0 left>" == repr(fault)


def test_a_fault_of_one_key_leaves_the_others_alone(faulty: FaultyStore, log: Log) -> None:
    faulty.fail(key=OTHER)
    log.claim()
    with pytest.raises(StoreBusyError):
        Log(faulty, OTHER).claim()


KINDS: dict[Kind, Write] = {
    "append": lambda log: log.append(2, "c"),
    "rewind": lambda log: log.append(1, "x"),
    "checkpoint": lambda log: log.put(checkpoint("new", 1)),
    "turn": Log.next_turn,
    "fence": Log.claim,
    "fork": lambda log: log.store.fork(KEY, OTHER, 1, 0),
    "sweep": lambda log: log.store.sweep(0),
    "vacuum": lambda log: log.store.vacuum(),
    "head": lambda log: log.store.head(KEY),
    "snapshot": lambda log: log.names,
    "activations": lambda log: list(log.store.keys()),
    "version": lambda log: log.store.version(),
}
ALSO: dict[Kind, set[Kind]] = {"append": {"rewind"}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_waits_for_operations_of_its_kind(kind: Kind) -> None:
    faulty = FaultyStore(open_store("memory://"))
    log = Log(faulty)
    log.append(0, "ab")
    for other, operation in KINDS.items():
        fault = faulty.fail(kind=kind)
        if other == kind or other in ALSO.get(kind, ()):
            with pytest.raises(StoreBusyError):
                operation(log)
        else:
            operation(log)
        assert int(other == kind or other in ALSO.get(kind, ())) == fault.hits
        fault.cancel()
        if other in {"append", "rewind", "fork"}:
            faulty = FaultyStore(open_store("memory://"))
            log = Log(faulty)
            log.append(0, "ab")


def test_reads_and_writes_are_told_apart_and_counted(faulty: FaultyStore, log: Log) -> None:
    faulty.calls.clear()
    faulty.fail(kind="read")
    log.claim()
    with pytest.raises(StoreBusyError):
        log.names  # noqa: B018
    list(faulty.activations())
    faulty.sweep(0)

    assert {"write": 2, "transact": 1, "sweep": 1, "read": 2, "snapshot": 1, "activations": 1} == dict(faulty.calls)


def test_many_steps_in_one_go_are_one_operation(faulty: FaultyStore, log: Log) -> None:
    def step(names: str, offset: int) -> Decide:
        command = AppendMany(1, offset, notes(names))
        payload = encode_command(command)

        def work_out(stored: StoredLog) -> Decision:
            return decide(stored, command, payload, 0)

        return work_out

    steps = [step("cd", 2), step("ef", 4)]
    fault = faulty.tear(kind="append")
    faulty.reject()
    with pytest.raises(StoreBusyError):
        faulty.transact_all(KEY, steps, 0)
    refused = faulty.transact_all(KEY, steps, 0)

    assert (1, "ab") == (fault.hits, log.names)
    assert isinstance(refused.error, RefusedError)
    assert faulty.transact_all(KEY, steps, 0).error is None
    assert "abcdef" == log.names


def test_a_store_that_comes_back_from_a_torn_write_is_told_on() -> None:
    class Careless(MemoryStore):
        def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:  # noqa: ARG002 - careless
            with self.snapshot(key) as log:
                return decide(log)

    faulty = FaultyStore(Careless())
    faulty.tear()
    with pytest.raises(OutcomeUnknownError, match="memory:// came back from a torn write"):
        Log(faulty).append(0, "ab")


def test_a_url_may_carry_faults(tmp_path: Path) -> None:
    with open_store(f"faulty+sqlite:///{tmp_path}/a.db?busy=1#fail=1&lose=1") as store:
        for error in (StoreBusyError, OutcomeUnknownError):
            with pytest.raises(error):
                Log(store).do(Claim())

        assert isinstance(store, FaultyStore)
        assert 2 == Log(store).claim().fence
    with open_store("faulty+memory://") as store:
        assert 1 == Log(store).claim().fence


@pytest.mark.parametrize("faults", ["fail", "fail=", "fail=-1", "fail=1&", "burn=1", "delay=1", "fail=\u0661"])
def test_a_url_with_other_faults_is_refused(faults: str) -> None:
    with pytest.raises(StoreUrlError, match="is no fault of a store"):
        open_store(f"faulty+memory://#{faults}")
