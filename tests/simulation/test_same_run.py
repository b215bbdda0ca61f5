"""The same seed is the same run: twice, from its own choices, under other hash seeds and other Pythons."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from incarnate.simulation import SCENARIOS, Process, Simulation

PYTHONS = [sys.executable, *filter(None, os.environ.get("INCARNATE_PYTHONS", "").split(os.pathsep))]
"""This one, and others that have incarnate installed."""

DIGEST = "af8df0e32def325147adfc4341222ae137478d937f1a6be059cf18619d30efb9"
"""Of `toss_about` under ten seeds. It depends on the scheduler alone, and is the same wherever it runs."""


def ran(name: str, seed: int, **options: object) -> Simulation:
    with Simulation(seed, **options) as sim:  # type: ignore[arg-type]
        SCENARIOS[name](sim)
        sim.run()
        sim.check()
    return sim


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_seed_is_the_same_run_twice_and_so_are_its_choices_alone(name: str) -> None:
    for seed in range(15):
        first = ran(name, seed)

        assert first.trace == ran(name, seed).trace
        assert first.trace == ran(name, seed, plan=first.choices).trace


@pytest.mark.parametrize("python", PYTHONS)
def test_neither_the_hash_seed_nor_the_version_of_python_changes_a_run(python: str) -> None:
    command = ["-m", "incarnate", "simulate", "--seeds", "5", "--json"]
    outputs = [
        subprocess.check_output([each, *command], env={**os.environ, "PYTHONHASHSEED": seed})
        for each, seed in ((sys.executable, "0"), (python, "1"), (python, "12345"))
    ]

    assert [] == [output for output in outputs if output != outputs[0]]
    assert len(SCENARIOS) == len(json.loads(outputs[0])["scenarios"])


def toss_about(sim: Simulation) -> None:
    """Tasks that only sleep and choose: what comes of it hangs on nothing but the scheduler."""
    for name in "abc":
        sim.process(name, toss)


def toss(process: Process) -> None:
    process.spawn(process.sleep, 0.01)
    for _ in range(process.choose([3, 5, 8])):
        process.sleep(process.choose([0.001, 0.01, 0.1]))


def test_a_run_is_what_it_was_when_this_was_written() -> None:
    traces = hashlib.sha256()
    for seed in range(10):
        with Simulation(seed) as sim:
            toss_about(sim)
            sim.run()
            traces.update(sim.trace.encode())

    assert traces.hexdigest() == DIGEST
