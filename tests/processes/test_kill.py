"""A writing process is killed at random moments; nothing that it said was acknowledged is lost."""

import os
import random
import time
from pathlib import Path

import pytest

from incarnate.domain.events import AssistantMessage
from incarnate.storage.locate import open_store
from incarnate.storage.port import Store
from tests.support.agent import KEY, content
from tests.support.processes import Child
from tests.support.stores import Log, jsonl_url, sqlite_url

KILLS = 50
URLS = {"sqlite": sqlite_url, "jsonl": jsonl_url}
OPTIONS = ("", "?durability=process")


def kill_at_a_random_moment(child: Child, chance: random.Random) -> list[str]:
    """What it had said until then."""
    child.go_on()
    said = [child.read() for _ in range(chance.choice([0, 0, 1, 5, 20, 60]))]
    until = time.perf_counter() + chance.random() * (0.003 if said else 0.03)
    while time.perf_counter() < until:  # a spin, no sleep: those last as long as the scheduler likes
        pass
    child.kill()
    return said + child.read_all()


class Acknowledged:
    """All that any of the killed processes was told to be done."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.checkpoints: dict[str, int] = {}
        self.incarnations: list[int] = []
        self.turns: list[int] = []

    def hear(self, line: str) -> None:
        match line.split():
            case ["claim", incarnation]:
                self.incarnations.append(int(incarnation))
            case ["turn", number]:
                self.turns.append(int(number))
            case ["checkpoint", name, offset]:
                self.checkpoints[name] = int(offset)
            case ["events", incarnation, start, stop]:
                texts = {offset: content(int(incarnation), offset) for offset in range(int(start), int(stop))}
                self.texts.update(texts)
            case unknown:
                raise AssertionError(unknown)

    def check(self, store: Store) -> None:
        log = Log(store, KEY)
        events = log.events
        texts = {appended.offset: text(appended.event) for appended in events}
        assert list(range(log.head.next_offset)) == [appended.offset for appended in events]
        assert self.texts == {offset: texts.get(offset) for offset in self.texts}
        assert all(content(appended.incarnation, appended.offset) == text(appended.event) for appended in events)
        kept = {name: found.offset for name in self.checkpoints if (found := log.checkpoint(name)) is not None}
        assert self.checkpoints == kept
        assert log.head.next_turn > max(self.turns, default=-1)
        assert len(set(self.turns)) == len(self.turns)

    def claim(self, store: Store) -> None:
        fence = Log(store, KEY).claim().fence
        assert fence is not None
        assert fence > max(self.incarnations, default=0)
        self.incarnations.append(fence)


def text(event: object) -> str:
    assert isinstance(event, AssistantMessage)
    return event.text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", URLS)
def test_i6_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path, backend: str) -> None:
    seed = int(os.environ.get("INCARNATE_SEED") or random.randrange(2**32))
    print(f"INCARNATE_SEED={seed}")  # noqa: T201 - pytest shows it where the test fails
    chance = random.Random(seed)
    acknowledged = Acknowledged()
    for kill in range(KILLS):
        url = URLS[backend](tmp_path, OPTIONS[kill % 2])
        with Child("work", url) as child:
            child.expect("ready")
            for line in kill_at_a_random_moment(child, chance):
                acknowledged.hear(line)
        with open_store(url) as store:
            acknowledged.check(store)
            acknowledged.claim(store)

    assert len(acknowledged.texts) > 100
    assert len(acknowledged.incarnations) > KILLS
