"""The supervisor through kills, late output, zombies and a store that fails."""

import pytest

from incarnate.domain.errors import SimulationFailedError
from incarnate.simulation import Simulation, explore
from incarnate.simulation.scripted import ScriptedEdge
from incarnate.simulation.supervised import supervised
from incarnate.supervision.edge import Deadlines, Ended


@pytest.mark.timeout(240)
def test_two_supervisors_keep_a_harness_alive_whatever_dies() -> None:
    explored = explore(supervised, seeds=200)

    assert 200 == explored.seeds


def test_harnesses_die_and_supervisors_are_killed_in_it() -> None:
    lives = 0
    for seed in range(20):
        with Simulation(seed) as sim:
            supervised(sim)
            lives += sim.trace.count("/record")

    assert lives > 20


@pytest.mark.timeout(240)
def test_a_supervisor_that_leaves_the_tree_alive_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedEdge, "leftovers", _leave)

    with pytest.raises(SimulationFailedError):
        explore(supervised, seeds=200)


def _leave(_self: ScriptedEdge, _identity: object, _deadlines: Deadlines) -> Ended:
    return Ended()
