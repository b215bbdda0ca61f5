"""SIGKILL among emits of many sessions that are done together, on a loop and by `emit_soon`."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from incarnate import ActivationKey, AssistantMessage, SessionSystem, UnencodableEventError
from incarnate.actors.together import Emit, emit_together

SESSIONS = 16

ON_A_LOOP = """
import asyncio, os, sys
from incarnate import ActivationKey, AssistantMessage, AsyncSessionSystem

async def speak(session, name):
    number = session.next_offset
    while True:
        await session.emit(AssistantMessage(id=f"{name}-{number}", parent_id=None, text=""))
        os.write(1, f"{name} {number}\\n".encode())
        number += 1

async def main():
    async with AsyncSessionSystem.open(sys.argv[1]) as system:
        names = [str(number) for number in range(int(sys.argv[2]))]
        sessions = [await system.claim(ActivationKey("pik", name)) for name in names]
        await asyncio.gather(*[speak(session, name) for session, name in zip(sessions, names)])

asyncio.run(main())
"""

IN_THREADS = """
import os, sys, threading
from collections import deque
from incarnate import ActivationKey, AssistantMessage, SessionSystem

def speak(session, name):
    number, waiting = session.next_offset, deque()
    while True:
        if len(waiting) == 8:
            at, future = waiting.popleft()
            future.result()
            os.write(1, f"{name} {at}\\n".encode())
        waiting.append((number, session.emit_soon(AssistantMessage(id=f"{name}-{number}", parent_id=None, text=""))))
        number += 1

with SessionSystem.open(sys.argv[1]) as system:
    names = [str(number) for number in range(int(sys.argv[2]))]
    sessions = [system.claim(ActivationKey("pik", name)) for name in names]
    threads = [threading.Thread(target=speak, args=pair) for pair in zip(sessions, names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def acknowledged(program: str, url: str, lines: int) -> dict[str, int]:
    """The highest offset that each session was told of, by a process that is killed after `lines` of them."""
    told: dict[str, int] = {}
    command = [sys.executable, "-c", program, url, str(SESSIONS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for count, line in enumerate(child.stdout):
            name, number = line.decode().removesuffix("\n").split(" ")
            told[name] = int(number)
            if count == lines:
                child.kill()
    return told


@pytest.mark.parametrize("scheme", ["sqlite", "jsonl"])
@pytest.mark.parametrize("program", [ON_A_LOOP, IN_THREADS], ids=["on a loop", "in threads"])
def test_what_was_acknowledged_is_there_once_and_in_order(program: str, scheme: str, tmp_path: Path) -> None:
    url, rng = f"{scheme}:///{tmp_path}/store", random.Random(program + scheme)
    for _ in range(4):
        told = acknowledged(program, url, rng.randrange(1, 800))
        with SessionSystem.open(url) as system:
            logs = {
                name: [one.event.id for one in system.replay(ActivationKey("pik", name))]
                for name in map(str, range(SESSIONS))
            }

        assert {name: [f"{name}-{at}" for at in range(len(log))] for name, log in logs.items()} == logs
        assert {} == {name: at for name, at in told.items() if at >= len(logs[name])}


def test_one_that_is_far_too_big_is_refused_alone() -> None:
    with SessionSystem.open("memory://") as system:
        sessions = [system.claim(ActivationKey("pik", str(number))) for number in range(3)]
        texts = ["a", "x" * (65 * 1024 * 1024), "c"]
        emits = [
            Emit(session, AssistantMessage(id="e", parent_id=None, text=text))
            for session, text in zip(sessions, texts, strict=True)
        ]
        with ThreadPoolExecutor(1) as pool:  # not on the main thread
            pool.submit(emit_together, emits).result(timeout=30)

        assert [0, None, 0] == [one.appended and one.appended.offset for one in emits]
        assert isinstance(emits[1].error, UnencodableEventError)
        assert [1, 0, 1] == [session.next_offset for session in sessions]
