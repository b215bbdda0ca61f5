"""What the tests run in processes of their own: `python agent.py COMMAND ARGUMENT...`.

Each acknowledgement is one line, written past every buffer the moment it is there, so that a kill loses none of them.
`ready` and a line on standard input hold a process back until its test wants it to go on.
"""

import gc
import os
import resource
import select
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from incarnate import (
    ActivationKey,
    Append,
    AssistantMessage,
    Claim,
    HeadMovedError,
    IncarnateError,
    SessionSystem,
    StaleIncarnationError,
)
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.storage.sqlite import SqliteStore

KEY = ActivationKey("pik-1", "implement-task")


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def ready() -> None:
    say("ready")
    go_on()


def go_on() -> None:
    """Wait for a line."""
    while os.read(0, 1) not in (b"\n", b""):
        pass


def told_to_stop() -> bool:
    return bool(select.select([0], [], [], 0)[0])


def event(name: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text=text)


def content(incarnation: int, offset: int) -> str:
    """What `work` writes at an offset: of many sizes, so that some cross a page."""
    return f"{incarnation}:{offset}:" + "x" * (offset * 97 % 6000)


def work(url: str) -> None:
    """Claim, then write for ever, and say what was acknowledged."""
    ready()
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        say("claim", session.incarnation)
        for number in count():
            offset = session.next_offset
            batch = [event(str(at), content(session.incarnation, at)) for at in range(offset, offset + 3)]
            match number % 8:
                case 5:
                    session.emit_many(batch)
                    say("events", session.incarnation, offset, offset + 3)
                case 6:
                    say("checkpoint", session.checkpoint("sha").id, offset)
                case 7:
                    say("turn", session.next_turn())
                case _:
                    session.emit(batch[0])
                    say("events", session.incarnation, offset, offset + 1)


def every_command(url: str) -> None:
    """Each kind of command, said after it was acknowledged."""
    with SessionSystem.open(url) as system:
        say("begin")
        system.lease(KEY, 1)
        say("lease")
        session = system.claim(KEY)
        say("claim")
        for _ in range(20):
            session.emit(event("e", "x" * 100))
            say("emit")
        session.emit_many([event("e")] * 20)
        say("emit_many")
        session.checkpoint("sha")
        say("checkpoint")
        session.emit(event("e"))
        say("emit")
        session.next_turn()
        say("turn")
        system.activation(KEY).ask(Append(9, session.next_offset, event("e")))
        say("fence")


def share(url: str, name: str) -> None:
    """Write with incarnation 1, as another process does at the same time, until told to stop."""
    with SessionSystem.open(url) as system:
        ready()
        session, moved = system.lease(KEY, 1), 0
        for number in count():
            if told_to_stop():
                say("moved", moved)
                return
            while True:
                try:
                    offset = session.emit(event(f"{name}-{number}")).offset
                    break
                except HeadMovedError:
                    moved += 1
                    session = system.lease(KEY, 1)
            say("event", f"{name}-{number}", offset)


def alone(url: str, name: str) -> None:
    """Write to a key of its own until told to stop; say when each event was acknowledged."""
    with SessionSystem.open(url) as system:
        session = system.claim(ActivationKey("pik", name))
        ready()
        while not told_to_stop():
            session.emit(event("e"))
            say("event", time.monotonic_ns())


def until_fenced(url: str) -> None:
    """Claim, write at every line, and say how it ended."""
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        say("claim", session.incarnation)
        while True:
            go_on()
            try:
                session.emit(event("e"))
                say("event")
            except StaleIncarnationError as error:
                say("stale", error.key, error.incarnation, error.current)
                return


def take_over(url: str) -> None:
    with SessionSystem.open(url) as system:
        ready()
        say("claim", system.claim(KEY).incarnation)


def inside(url: str) -> None:
    """Begin to append at 1 and wait for a line in the middle of the transaction; say how it ended, each time anew."""
    with SessionSystem.open(url) as system:
        store: Any = vars(system)["_store"]
        attempts = count()

        def work_out(stored: StoredLog) -> Decision:
            if next(attempts) == 0:
                ready()
            command = Append(1, 1, event("late"))
            return decide(stored, command, encode_command(command), 0)

        decision = store.transact(KEY, work_out, 0)
        say("refused" if decision.error else "event", type(decision.error).__name__, next(attempts))


def create(folder: str) -> None:
    """At every line, open a store that may not be there yet, and claim."""
    ready()
    for number in range(12):
        try:
            with SqliteStore(f"{folder}/{number}.db") as store:
                incarnation = claim(store)
            say("claim", incarnation)
        except IncarnateError as error:
            say("error", error)
        go_on()


def claim(store: SqliteStore) -> int | None:
    def work_out(stored: StoredLog) -> Decision:
        return decide(stored, Claim(), None, 0)

    return store.transact(KEY, work_out, 0).head.fence


def fork(url: str) -> None:
    """Fork in the middle of a transaction; the child tries everything and ends like any program."""
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        session.emit(event("e0"))
        replay = system.replay(KEY)
        store: Any = vars(system)["_store"]

        def fork_inside(stored: StoredLog) -> Decision:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                uses: dict[str, Callable[[], object]] = {
                    "emit": lambda: session.emit(event("child")),
                    "restore": session.restore,
                    "next_turn": session.next_turn,
                    "replay": lambda: list(replay),
                    "activations": lambda: list(system.activations()),
                    "version": store.version,
                    "claim": lambda: system.claim(KEY),
                }
                for name, use in uses.items():
                    say(name, outcome(use))
                system.close()
                gc.collect()
                sys.exit(0)
            os.waitpid(child, 0)
            say("child ended")
            go_on()
            return decide(stored, Claim(), None, 0)

        vars(vars(store)["_writer"])["_logs"].clear()  # else it is decided before BEGIN, on the head as last seen
        say("claim", store.transact(KEY, fork_inside, 0).head.fence)
        system.claim(KEY).emit(event("e1"))
        say("event")
        go_on()


def outcome(use: Callable[[], object]) -> str:
    try:
        return repr(use())
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        return type(error).__name__


def limited(path: str) -> None:
    """Write until no file may grow any more, then with room again; repeat what was left unknown."""
    with SessionSystem.open(f"sqlite:///{path}") as system:
        session = system.claim(KEY)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        number = 0
        try:
            while True:
                session.emit(large(number))
                say("event", number)
                number += 1
        except IncarnateError as error:
            say("error", type(error).__name__, error)
        say("again", outcome(lambda: session.emit(large(number))))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        session.emit(large(number))
        say("event", number)


def large(number: int) -> AssistantMessage:
    return event(str(number), "x" * 10_000)


def read_without_rights(path: str) -> None:
    """Read as somebody who may read the file and write nowhere; then once more when told to."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        with SqliteStore(path, read_only=True) as store:
            say("version", store.version())
            for _ in range(2):
                with store.snapshot(KEY) as log:
                    say("events", log.head.next_offset, os.access(Path(path).parent, os.W_OK))
            with store.snapshot(KEY) as log:
                ready()
            say("unchanged")
    except IncarnateError as error:
        say(type(error).__name__, error)


def lock(path: str) -> None:
    """Whether another process may begin to write."""
    try:
        with SqliteStore(path, busy_seconds=0) as store:
            say("claim", claim(store))
    except IncarnateError as error:
        say(type(error).__name__)


COMMANDS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (
        *(work, every_command, share, alone, until_fenced, take_over, inside),
        *(create, fork, limited, read_without_rights, lock),
    )
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
