"""Simulations over back ends of every kind, each process with an opening of its own."""

import gc
import os

import pytest

from incarnate.simulation import SCENARIOS, explore

URLS = [
    "sqlite:///{folder}/sessions.db?durability=process",
    "jsonl:///{folder}/sessions?durability=process&segment=600",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("name", ["take-over", "checkpoint-restore-rewind", "view"])
def test_a_back_end_keeps_its_promises_to_processes_that_die_and_stop(name: str, url: str) -> None:
    assert 15 == explore(SCENARIOS[name], 15, store=url).seeds


def test_a_run_lets_go_of_every_file() -> None:
    gc.collect()  # what other tests left behind
    before = os.listdir("/dev/fd")  # noqa: PTH208 - numbers, not paths
    explore(SCENARIOS["take-over"], 5, store=URLS[0])

    assert len(before) == len(os.listdir("/dev/fd"))  # noqa: PTH208 - likewise
