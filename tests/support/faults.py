"""What the fault tests share: all that a store shows, to compare, and the processes that faults happen to."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from incarnate.domain.keys import ActivationKey
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from tests.support.processes import Child
from tests.support.stores import Log

LONG = os.environ.get("INCARNATE_LONG") == "1"
"""Whether the long versions of the tests run; see docs/reliability.md."""

AGENT = Path(__file__).with_name("faults_agent.py")


def agent(command: str, *arguments: object, under: Sequence[str] = ()) -> Child:
    """A process that runs one command of `faults_agent.py`."""
    return Child(command, *arguments, under=under, program=AGENT)


def chance() -> random.Random:
    """A source of chance whose seed stands in the output of a test that fails; INCARNATE_SEED repeats it."""
    seed = int(os.environ.get("INCARNATE_SEED") or random.randrange(2**32))
    print(f"INCARNATE_SEED={seed}")  # noqa: T201 - pytest shows it where the test fails
    return random.Random(seed)


class State(NamedTuple):
    """All that a reader can see of one activation."""

    head: object
    events: object
    checkpoints: object
    rewinds: object
    superseded: object


def state_of(store: Store, key: ActivationKey) -> State:
    with store.snapshot(key) as log:
        rewinds = tuple(log.rewinds())
        return State(
            log.head,
            tuple(log.appended(0, log.head.next_offset)),
            (log.latest_checkpoint(), *(log.checkpoint(name) for name in log.checkpoint_ids())),
            rewinds,
            tuple(tuple(log.superseded(one.generation, 0, 2**53, 2**40)) for one in rewinds),
        )


def states_of(store: Store) -> dict[ActivationKey, State]:
    """All that a reader can see of a store."""
    return {info.key: state_of(store, info.key) for info in store.activations()}


def goes_on(url: str, key: ActivationKey) -> None:
    """See that the next incarnation takes over and writes, and that it is read back by another opening."""
    with open_store(url) as store:
        log = Log(store, key)
        before = log.head
        fence = log.claim().fence
        assert fence is not None
        assert (before.fence or 0) + 1 == fence
        log.append_one(before.next_offset, "after", fence)
    with open_store(url) as store:
        log = Log(store, key)
        assert list(range(before.next_offset + 1)) == log.offsets
        assert "after" == log.events[-1].event.id
