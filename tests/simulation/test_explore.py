"""`explore`: what fails is made small, and told so that it can be repeated."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from incarnate.domain.errors import OutcomeUnknownError, SimulationFailedError, StoreBusyError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.simulation import Chosen, Plan, Process, Simulation, explore, persist
from incarnate.simulation.shrinking import shrunk

KEY = ActivationKey("order-7", "implement-task")


def careless(sim: Simulation) -> None:
    """After a lost answer the supervisor takes a fresh handle, and emits again."""
    sim.process("a", take_a_fresh_handle)


def take_a_fresh_handle(process: Process) -> None:
    session = persist(process, process.system.claim, KEY)
    for number in range(4):
        event = AssistantMessage(id=f"{number}-{process.starts}", parent_id=None, text="")
        while True:
            try:
                session.emit(event)
                break
            except (StoreBusyError, OutcomeUnknownError):
                session = persist(process, process.system.lease, KEY, session.incarnation)


def failure() -> SimulationFailedError:
    with pytest.raises(SimulationFailedError) as failed:
        explore(careless)
    return failed.value


def test_a_supervisor_that_emits_again_on_a_fresh_handle_is_found_by_one_lost_answer() -> None:
    error = failure()

    assert "no_event_twice" == error.kind
    assert 1 == len(error.choices)
    assert error.choices[0].endswith(": lose")
    assert str(error).startswith(f"seed {error.seed}: no_event_twice: {KEY}: event ")


def test_the_command_repeats_it() -> None:
    error = failure()
    assert f"incarnate simulate --scenario {__name__}:careless --seed {error.seed}" == error.command

    with pytest.raises(SimulationFailedError) as again:
        explore(careless, [error.seed or 0])
    assert (error.choices, error.trace) == (again.value.choices, again.value.trace)


def test_a_scenario_without_a_name_is_repeated_in_python() -> None:
    def nameless(sim: Simulation) -> None:
        careless(sim)

    with pytest.raises(SimulationFailedError) as failed:
        explore(nameless)

    assert f"explore(nameless, seeds=[{failed.value.seed}], ...)" == failed.value.command


def test_what_a_scenario_raises_is_the_cause() -> None:
    def scenario(sim: Simulation) -> None:
        raise LookupError(str(sim.seed))

    with pytest.raises(SimulationFailedError, match="seed 3: LookupError: 3") as failed:
        explore(scenario, [3])

    assert isinstance(failed.value.__cause__, LookupError)


def test_what_the_kit_found_by_itself_is_told_once() -> None:
    def checked_in_the_scenario(sim: Simulation) -> None:
        careless(sim)
        sim.run()
        sim.check()

    with pytest.raises(SimulationFailedError) as failed:
        explore(checked_in_the_scenario)

    assert isinstance(failed.value.__cause__, SimulationFailedError)
    assert failure().__cause__ is None


def test_shrinking_leaves_what_is_needed_and_nothing_else() -> None:
    plan: Plan = {("a", number): Chosen("lose") for number in range(100)}
    needed = {("a", 17), ("a", 64)}

    assert needed == shrunk(plan, lambda part: part if needed <= part.keys() else None).keys()


def test_shrinking_ends_where_nothing_can_be_left_out() -> None:
    plan: Plan = {("a", number): Chosen("lose") for number in range(500)}
    runs: list[int] = []

    def fails(part: Plan) -> Plan | None:
        runs.append(len(part))
        return part if len(part) == len(plan) else None

    assert plan == shrunk(plan, fails)
    assert len(runs) <= 400


def test_the_store_may_be_a_url_in_a_new_folder_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def scenario(sim: Simulation) -> None:
        sim.process("a", lambda process: persist(process, process.system.claim, KEY))

    explored = explore(scenario, 3, store="jsonl:///{folder}/sessions?durability=process")

    assert explored.commits >= 3
    assert [] == list(tmp_path.iterdir())


def test_a_seed_that_ends_otherwise_when_it_is_run_again_is_told_so() -> None:
    runs: list[int] = []

    def from_an_earlier_run(sim: Simulation) -> None:
        runs.append(sim.seed)
        assert 3 != len(runs)

    with pytest.raises(SimulationFailedError, match="run again, this seed ended otherwise") as failed:
        explore(from_an_earlier_run)

    assert 2 == failed.value.seed


def test_one_that_ends_so_again_is_not() -> None:
    assert "run again" not in failure().reason


@pytest.mark.parametrize("seeds", [0, -5, [], range(9, 3), iter(())])
def test_without_a_seed_nothing_is_told_to_be_clean(seeds: int | Iterable[int]) -> None:
    with pytest.raises(ValueError, match="seeds are none: nothing was run"):
        explore(careless, seeds)


@pytest.mark.parametrize("url", ["sqlite:///sessions.db", "JSONL:///sessions", "postgresql://me:secret@host/db"])
def test_a_store_that_keeps_what_an_earlier_run_wrote_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"would hold what an earlier run wrote; put \{folder\}") as refused:
        explore(careless, store=url)

    assert "secret" not in str(refused.value)
