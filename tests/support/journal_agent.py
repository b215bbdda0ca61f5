"""What the tests of the JSONL store run in processes of their own: `python journal_agent.py COMMAND FOLDER`."""

import gc
import os
import sys
from collections.abc import Callable

from incarnate import ActivationKey, AssistantMessage, ForkedError, IncarnateError, SessionSystem
from incarnate.domain.commands import Claim
from incarnate.domain.decisions import Decision, StoredLog, decide
from incarnate.storage.jsonl import JsonlStore

KEY = ActivationKey("pik-1", "implement-task")


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def go_on() -> None:
    """Wait for a line."""
    while os.read(0, 1) not in (b"\n", b""):
        pass


def claim(store: JsonlStore) -> int | None:
    return store.transact(KEY, lambda stored: decide(stored, Claim(), None, 0), 0).head.fence


def create(folder: str) -> None:
    """Make twelve stores, each at the same moment as others do, and claim."""
    say("ready")
    for number in range(12):
        go_on()
        with JsonlStore(f"{folder}/{number}") as store:
            say("claim", claim(store))


def lock(folder: str) -> None:
    """Whether another process may begin to write."""
    try:
        with JsonlStore(folder, busy_seconds=0) as store:
            say("claim", claim(store))
    except IncarnateError as error:
        say(type(error).__name__)


def fork(folder: str, leave: str) -> None:
    """Fork while the activation is locked; the child tries everything, then exits or acts as its parent does."""
    parent = os.getpid()
    with SessionSystem.open(f"jsonl:///{folder}") as system, JsonlStore(folder) as store:
        session = system.claim(KEY)
        session.emit(AssistantMessage(id="e0", parent_id=None, text=""))

        def fork_inside(stored: StoredLog) -> Decision:
            child = os.fork()
            if child == 0:
                uses: dict[str, Callable[[], object]] = {
                    "emit": lambda: session.emit(AssistantMessage(id="child", parent_id=None, text="")),
                    "restore": session.restore,
                    "replay": lambda: list(system.replay(KEY)),
                    "activations": lambda: list(store.activations()),
                    "version": store.version,
                    "claim": lambda: claim(store),
                }
                for name, use in uses.items():
                    say(name, outcome(use))
                store.close()
                system.close()
                gc.collect()
                if leave == "exit":
                    sys.exit(0)
                return decide(stored, Claim(), None, 0)
            os.waitpid(child, 0)
            say("child ended")
            go_on()
            return decide(stored, Claim(), None, 0)

        try:
            claimed = store.transact(KEY, fork_inside, 0)
        except ForkedError:
            say("write ForkedError")
            os._exit(0)
        assert os.getpid() == parent
        say("claim", claimed.head.fence)
        system.claim(KEY).emit(AssistantMessage(id="e1", parent_id=None, text=""))
        say("event")
        go_on()


def outcome(use: Callable[[], object]) -> str:
    try:
        return repr(use())
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        return type(error).__name__


COMMANDS: dict[str, Callable[..., None]] = {function.__name__: function for function in (create, lock, fork)}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
