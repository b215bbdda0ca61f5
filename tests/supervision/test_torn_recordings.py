"""What real harnesses printed, in pieces that no harness prints: cut, doubled, dropped, in another order, damaged."""

import random
from functools import cache
from itertools import chain

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.supervisor import Supervisor
from tests.recordings.recorded import FIXTURES
from tests.recordings.table import BY_FOLDER
from tests.support.replayed import Life, NoFiles, ReplayEdge
from tests.support.supervised import check_events

KEY = ActivationKey("supervised", "run")


@cache
def recordings(folder: str) -> tuple[tuple[bytes, ...], ...]:
    """The lines of each scenario."""
    files = sorted((FIXTURES / folder).glob("*/stdout.jsonl"))
    return tuple(tuple(file.read_bytes().splitlines(keepends=True)) for file in files)


def damaged(chance: random.Random, line: bytes) -> bytes:
    at = chance.randrange(len(line))
    ways = [line[:at], line + line, line.rstrip(b"\n"), b"\0\xff" + line, line[:at] + b"\x80" + line[at + 1 :]]
    return chance.choice(ways)


def some_life(chance: random.Random, folder: str) -> Life:
    """The begin of one recording, or a part of it, and then perhaps the begin of another, which counts from 0 too."""
    lines = list(chance.choice(recordings(folder)))
    begin, end = sorted(chance.randrange(len(lines) + 1) for _ in range(2))
    lines = lines[begin if chance.random() < 0.5 else 0 : end]
    lines += chance.choice(recordings(folder))[: chance.randrange(20)] if chance.random() < 0.3 else ()
    lines = [line for line in lines if chance.random() < chance.choice([0.8, 1.0])]
    lines = list(chain.from_iterable([line] * chance.choice([1] * 9 + [2]) for line in lines))
    if chance.random() < 0.15:
        chance.shuffle(lines)
    lines = [damaged(chance, line) if chance.random() < 0.05 else line for line in lines]
    return Life(b"".join(lines), chance.choice([0, 1, -9]), tool=chance.random() < 0.3)


@pytest.mark.parametrize("folder", [name for name in sorted(BY_FOLDER) if recordings(name)])
def test_whatever_of_a_recording_is_printed_the_log_is_whole(folder: str) -> None:
    dialect = find_dialect(BY_FOLDER[folder].dialect)
    for seed in range(12):
        chance = random.Random(f"{folder} {seed}")
        edge = ReplayEdge(*[some_life(chance, folder) for _ in range(4)])
        with SessionSystem.open("memory://") as system:
            for prompt in ("do it", "and more"):
                harness = Harness(dialect, Command(("x", "{prompt}"), prompt), NoFiles())
                runtime, policy = make_runtime("calling"), Policy(max_restarts=1, backoff=0)
                Supervisor(system, KEY, harness, edge=edge, runtime=runtime, policy=policy, every="tool").run()
            check_events(list(system.replay(KEY)))
