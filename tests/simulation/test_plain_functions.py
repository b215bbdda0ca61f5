"""What a simulation is given must run when it is called: else every promise would hold of nothing."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from incarnate import SimulationFailedError
from incarnate.simulation import Simulation, explore


async def coroutine(_: object) -> None:
    raise AssertionError("never run")


def generator(_: object) -> Iterator[None]:
    yield


async def asynchronous_generator(_: object) -> AsyncIterator[None]:
    yield


FUNCTIONS = [coroutine, generator, asynchronous_generator]
TOLD = " is an? .* function, of which nothing was run"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_supervisor_of_which_nothing_was_run_fails_the_run(function: Callable[[object], object]) -> None:
    with Simulation() as sim:
        sim.process("a", function)
        with pytest.raises(SimulationFailedError, match=function.__name__ + TOLD):
            sim.run()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_so_does_what_is_spawned(function: Callable[[object], object]) -> None:
    with Simulation() as sim:
        sim.spawn(function, 1)
        with pytest.raises(SimulationFailedError, match=function.__name__ + TOLD):
            sim.run()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_scenario_of_which_nothing_was_run_fails_its_first_seed(function: Callable[[object], object]) -> None:
    with pytest.raises(SimulationFailedError, match="seed 0: " + function.__name__ + TOLD):
        explore(function, seeds=3)
