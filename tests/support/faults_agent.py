"""What the fault tests run in processes of their own: `python faults_agent.py COMMAND ARGUMENT...`.

Acknowledgements go out by `writev`, which no back end uses: so they never count as a write call of the store.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from incarnate import (
    ActivationKey,
    Append,
    AppendMany,
    AssistantMessage,
    Checkpoint,
    Claim,
    EffectEntry,
    IncarnateError,
    Lease,
    NextTurn,
    PutCheckpoint,
    Retire,
    open_store,
)
from incarnate.domain.commands import WriteCommand
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.storage.port import Store

KEY = ActivationKey("pik-1", "implement-task")
FORKED = ActivationKey("pik-1", "fork")
RETIRED = ActivationKey("pik-0", "retired")


def say(*words: object, to: int = 1) -> None:
    os.writev(to, [(" ".join(map(str, words)) + "\n").encode()])


def hear() -> str:
    """The next line on standard input; empty at the end."""
    line = b""
    while (some := os.read(0, 1)) not in (b"\n", b""):
        line += some
    return line.decode()


def note(name: str, size: int = 0) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text="x" * size)


def decided(store: Store, key: ActivationKey, command: WriteCommand, now_ms: int) -> Decision:
    payload = encode_command(command)

    def work_out(stored: StoredLog) -> Decision:
        return decide(stored, command, payload, now_ms)

    return store.transact(key, work_out, now_ms)


# The script that is killed


Step = Callable[[Store], Any]


def _do(now_ms: int, command: WriteCommand, key: ActivationKey = KEY) -> Step:
    return lambda store: decided(store, key, command, now_ms)


def _checkpoint(name: str, offset: int, incarnation: int) -> PutCheckpoint:
    ledger = (EffectEntry(id="effect", kind="git-push", detail={"to": "main"}),)
    at = "1970-01-01T00:00:00.000Z"
    kept = Checkpoint(id=name, offset=offset, commit_sha="sha", effect_ledger=ledger, incarnation=incarnation, at=at)
    return PutCheckpoint(incarnation, kept)


def script() -> list[Step]:
    """Every kind of write, refusals among them; the same each time. Between two steps there is one state of the store.

    More than 32 commits: a SQLite store then lengthens its write-ahead log.
    """
    batch = tuple(note(f"b{number}", number * 700) for number in range(5))
    last = AppendMany(7, 12, (note("again"), note("and-again")), (2, 12))
    return [
        _do(100, Lease(1), RETIRED),
        _do(200, AppendMany(1, 0, batch[:3]), RETIRED),
        _do(1000, Retire(), RETIRED),
        _do(5000, Claim()),
        _do(5001, Append(1, 0, note("a"))),
        _do(5002, AppendMany(1, 1, batch)),
        _do(5003, _checkpoint("kept", 6, 1)),
        _do(5004, NextTurn(1)),
        *(_do(5005 + at, Append(1, at, note(f"c{at}", 100))) for at in range(6, 9)),
        _do(5020, Claim()),
        _do(5021, Append(1, 9, note("refused"))),
        _do(5022, Append(2, 6, note("rewound"))),
        _do(5023, Append(2, 99, note("refused"))),
        _do(5024, AppendMany(7, 99, (note("refused"),))),  # it takes the fence all the same
        _do(5025, Append(7, 7, note("d"))),
        _do(5026, _checkpoint("pruned", 8, 7)),
        _do(5027, AppendMany(7, 7, (note("e"), note("f")))),
        lambda store: store.fork(KEY, FORKED, 4, 6000),
        lambda store: store.sweep(2000),
        lambda store: store.vacuum(),
        _do(6001, Append(7, 4, note("g")), FORKED),
        *(_do(6002 + at, Append(7, at, note(f"h{at}", 700))) for at in range(9, 12)),
        _do(6020, last),
        _do(6021, last),  # the repeat is answered from the log
        *(_do(6022 + at, Append(7, at, note(f"i{at}"))) for at in range(14, 26)),
        _do(6060, Retire()),
        _do(6061, Append(7, 26, note("refused"))),
        lambda store: store.close(),
    ]


def run(url: str, acknowledgements: str) -> None:
    """The script, from the first file on; one line for each step that was answered."""
    log = os.open(acknowledgements, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open_store(url) as store:
        for number, step in enumerate(script()):
            step(store)
            say(number, to=log)


_CLOSED = 2**20  # no descriptor of ours
_NOWHERE = "/nowhere/at/all"

CALLS: dict[str, Callable[[], object]] = {
    "pwrite64": lambda: os.pwrite(_CLOSED, b"", 0),
    "write": lambda: os.write(_CLOSED, b""),
    "fsync": lambda: os.fsync(_CLOSED),
    "fdatasync": lambda: os.fdatasync(_CLOSED),
    "ftruncate": lambda: os.ftruncate(_CLOSED, 0),
    "rename": lambda: Path(_NOWHERE).rename(_NOWHERE),
    "link": lambda: os.link(_NOWHERE, _NOWHERE),
    "unlink": lambda: Path(_NOWHERE).unlink(),
    "mkdir": lambda: Path(_NOWHERE).mkdir(),
}
"""The calls by which a store changes the disk, each in a form that fails."""


def nursery() -> None:
    """At each line `URL ACKNOWLEDGEMENTS CALL COUNT`, run the script in a child of ours; say how it ended.

    The child first makes COUNT such calls that fail: strace kills at a call of a fixed number. CALL may also be `tear`:
    then the COUNT-th write of the child is its last, and only a part of it is written.
    """
    while line := hear():
        url, acknowledgements, call, count, part = line.split()
        child = os.fork()
        if child == 0:
            if call == "tear":
                tear(int(count), float(part))
            else:
                for _ in range(int(count)):
                    with suppress(OSError):
                        CALLS[call]()
            run(url, acknowledgements)
            os._exit(0)
        say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def tear(last: int, part: float) -> None:
    """Let the write of that number be torn: a part of it is written, and then nothing more is done."""
    write, done = os.write, 0

    def torn(descriptor: int, data: bytes) -> int:
        nonlocal done
        done += 1
        if done == last:
            write(descriptor, bytes(data)[: max(1, min(int(len(data) * part), len(data) - 1))])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(descriptor, data)

    os.write = torn  # type: ignore[assignment]


# Paused processes


def pause() -> None:
    """Say so, and stop until somebody sends SIGCONT."""
    say("pauses", os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)


def paused(url: str, where: str) -> None:
    """Append at 1 with incarnation 1, and again; say how each ended. The first time stop somewhere.

    `before` the store is asked, while `deciding` on the head as it was last seen, or `inside` the transaction, which is
    where a process decides that has not seen the head before.
    """
    with open_store(url) as store:
        if where == "deciding":
            say(outcome(store, Append(1, 1, note("b"))))
        offset = 2 if where == "deciding" else 1
        if where == "before":
            pause()
        say(outcome(store, Append(1, offset, note("late")), pauses=where != "before"))
        say(outcome(store, Append(1, offset + 1, note("later"))))


def outcome(store: Store, command: WriteCommand, *, pauses: bool = False) -> str:
    payload = encode_command(command)
    calls = 0

    def work_out(stored: StoredLog) -> Decision:
        nonlocal calls
        calls += 1
        if pauses and calls == 1:
            pause()
        return decide(stored, command, payload, 0)

    try:
        decision = store.transact(KEY, work_out, 0)
    except IncarnateError as error:
        return type(error).__name__
    return "written" if decision.error is None else type(decision.error).__name__


COMMANDS: dict[str, Callable[..., None]] = {function.__name__: function for function in (nursery, paused)}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
