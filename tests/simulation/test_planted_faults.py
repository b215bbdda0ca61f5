"""Mutation tests of the kit: faults that are planted on purpose are found within 200 seeds."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from incarnate.actors.activation import ActivationActor
from incarnate.actors.projector import GetView, ProjectorActor, ViewState
from incarnate.actors.taps import Tap
from incarnate.domain.commands import Append
from incarnate.domain.decisions import Decision, StoredLog
from incarnate.domain.errors import HeadMovedError, OutcomeUnknownError, SimulationFailedError, StaleIncarnationError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.heads import Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.notices import Appended
from incarnate.simulation import (
    CHECKS,
    SCENARIOS,
    Check,
    Process,
    Simulation,
    explore,
    linearizable,
    no_stale_write,
    persist,
)
from incarnate.storage.faulty import FaultyStore
from incarnate.storage.memory import MemoryStore
from incarnate.storage.port import Decide, Snapshot, Store

SEEDS = 200


def found(
    scenario: str,
    *,
    store: Callable[[], Store] = MemoryStore,
    wrap: Callable[[Store], Store] | None = None,
) -> SimulationFailedError:
    """What a planted fault is found by; the test fails if it is not."""
    with pytest.raises(SimulationFailedError) as failed:
        explore(SCENARIOS[scenario], SEEDS, store=store, wrap=wrap)
    return failed.value


# A fence that is checked before the transaction


class OlderFence:
    """A log as it is, with the fence that was seen before."""

    def __init__(self, log: StoredLog, fence: int | None) -> None:
        self._log = log
        self.key = log.key
        self.head = msgspec.structs.replace(log.head, fence=fence)
        self.events = log.events
        self.appended = log.appended
        self.checkpoint = log.checkpoint
        self.lowest_cut = log.lowest_cut


class ChecksFenceBefore(FaultyStore):
    """Reads the fence, and only then begins the transaction."""

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        fence = self.store.head(key).fence
        return self.store.transact(key, lambda stored: decide(OlderFence(stored, fence)), now_ms)


def test_a_fence_that_is_checked_before_the_transaction_is_found() -> None:
    found("take-over", wrap=ChecksFenceBefore)


def broken(checks: tuple[Check, ...] = CHECKS, wrap: Callable[[Store], Store] | None = None) -> str:
    """The check by which a planted fault is found under supervisors that do not look at what came of their work."""
    with pytest.raises(SimulationFailedError) as failed:
        explore(take_over_and_say_nothing, SEEDS, wrap=wrap, checks=checks)
    return failed.value.kind


def test_it_is_a_stale_write() -> None:
    assert "no_stale_write" == broken(checks=(no_stale_write,), wrap=ChecksFenceBefore)


def test_no_order_of_the_calls_explains_it_either() -> None:
    assert "linearizable" == broken(checks=(linearizable,), wrap=ChecksFenceBefore)


def take_over_and_say_nothing(sim: Simulation) -> None:
    """As `take-over`, without looking at what came of it."""
    for name in ("a", "b"):
        sim.process(name, claim_and_emit, may_end_with=(StaleIncarnationError, HeadMovedError))


def claim_and_emit(process: Process) -> None:
    key = ActivationKey("p", "e")
    session = persist(process, process.system.claim, key)
    for number in range(4):
        event = AssistantMessage(id=f"{process.name}-{process.starts}-{number}", parent_id=None, text="")
        persist(process, session.emit, event)


# A rewind that leaves a checkpoint


class KeepsCheckpoints(MemoryStore):
    """Supersedes the tail, and not the checkpoints above the cut."""

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        logs = self._open_logs()
        before = dict(logs[key].checkpoints) if key in logs else {}
        decision = super().transact(key, decide, now_ms)
        if decision.change is not None and decision.change.cut is not None:
            kept = {**before, **logs[key].checkpoints}
            logs[key] = msgspec.structs.replace(logs[key], checkpoints=kept)
        return decision


def test_a_rewind_that_leaves_a_checkpoint_is_found() -> None:
    assert "checkpoints_follow_rewinds" == found("checkpoint-restore-rewind", store=KeepsCheckpoints).kind


# A projector that misses one notice


def test_a_projector_that_misses_one_notice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It trusts that notices come, and one does not."""

    def get(self: ProjectorActor, _message: GetView) -> ViewState:
        self._catch_up(read=self._projection.next_offset == 0)
        return ViewState(self._projection.generation, self._projection.next_offset, self._projection.value)

    def tell(self: Tap, message: object) -> None:
        if not (isinstance(message, Appended) and message.head.next_offset == 4):
            told(self, message)

    told = Tap.tell
    monkeypatch.setattr(ProjectorActor, "_get", get)
    monkeypatch.setattr(Tap, "tell", tell)

    assert "views_equal_folds" == found("view").kind


def test_a_projector_that_counts_a_notice_and_forgets_to_apply_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def took(self: ProjectorActor, notice: Appended, changes: list[object]) -> bool:
        projection = self._projection
        if notice.head.next_offset == 3 and projection.next_offset == 2 and notice.cut is None:
            projection.next_offset = 3
            return True
        return takes(self, notice, changes)  # type: ignore[arg-type]

    takes = ProjectorActor._took  # noqa: SLF001 - it is what is broken
    monkeypatch.setattr(ProjectorActor, "_took", took)

    found("view")


# A retry that appends twice


def test_a_retry_that_appends_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The actor repeats what it has no answer to, at the head as it is by then."""

    def write(self: ActivationActor, command: Any) -> object:
        try:
            return writes(self, command)
        except OutcomeUnknownError:
            if not isinstance(command, Append):
                raise
            head: Head = self._store.head(self._key)
            return writes(self, msgspec.structs.replace(command, offset=head.next_offset, expected_head=None))

    writes = ActivationActor._write  # noqa: SLF001 - it is what is broken
    monkeypatch.setattr(ActivationActor, "_write", write)

    found("retry-after-unknown")
    assert "no_event_twice" == broken()
    assert "linearizable" == broken(checks=(linearizable,))


# A head that is cached across a take-over


class CachesHeads(FaultyStore):
    """Decides on the log as this process last saw it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._seen: dict[ActivationKey, Snapshot] = {}

    def transact(self, key: ActivationKey, decide: Decide, now_ms: int) -> Decision:
        decision = self.store.transact(key, lambda stored: decide(self._seen.get(key, stored)), now_ms)
        with self.store.snapshot(key) as log:
            own = self._seen.get(key)
            if own is None or decision.change is not None:
                self._seen[key] = log
        return decision


def test_a_head_that_is_cached_across_a_take_over_is_found() -> None:
    found("take-over", wrap=CachesHeads)
    assert "no_stale_write" == broken(checks=(no_stale_write,), wrap=CachesHeads)
    assert "linearizable" == broken(checks=(linearizable,), wrap=CachesHeads)


# What is found is told so that it can be repeated


def test_what_is_found_is_small_and_says_how_to_repeat_it() -> None:
    error = found("take-over", wrap=ChecksFenceBefore)

    assert len(error.choices) <= 8
    assert f"explore(take_over, seeds=[{error.seed}], ...)" == error.command
    assert error.trace
