"""A simulation is of one thread: what calls it from another is told so, and hangs nothing."""

import asyncio
import contextlib
import threading

import pytest

from incarnate import ActivationKey, AsyncSessionSystem, SimulationFailedError
from incarnate.simulation import Process, Simulation, explore

KEY = ActivationKey("pik", "task")
TOLD = r"a simulated system was called from another thread.*asyncio.*docs/testing\.md"


def supervise(process: Process) -> None:
    async def main() -> None:
        async with AsyncSessionSystem.over(lambda: process.system) as system:
            await system.claim(KEY)

    asyncio.run(main())


def test_an_asyncio_supervisor_fails_the_run_and_hangs_nothing() -> None:
    with Simulation() as sim:
        sim.process("a", supervise)
        with pytest.raises(SimulationFailedError, match=TOLD):
            sim.run()


def test_an_exploration_tells_it_of_the_first_seed() -> None:
    def two(sim: Simulation) -> None:
        sim.process("a", supervise)
        sim.process("b", supervise)

    with pytest.raises(SimulationFailedError, match=TOLD) as failed:
        explore(two, seeds=3)

    assert (0, "one_thread") == (failed.value.seed, failed.value.kind)


def test_a_thread_that_keeps_the_error_to_itself_fails_the_run_too() -> None:
    def in_a_thread(process: Process) -> None:
        session = process.system.claim(KEY)

        def check() -> None:
            with contextlib.suppress(SimulationFailedError):
                session.checkpoint("4f2a91c")

        thread = threading.Thread(target=check)
        thread.start()
        thread.join()
        process.sleep(1)

    with Simulation() as sim:
        sim.process("a", in_a_thread)
        with pytest.raises(SimulationFailedError, match=TOLD):
            sim.run()
