"""What the fault tests run in processes of their own: `python faults_agent.py COMMAND ARGUMENT...`.

Acknowledgements go out by `writev`, which no back end uses: so they never count as a write call of the store.
"""

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from incarnate import (
    ActivationKey,
    Append,
    AppendMany,
    AssistantMessage,
    Checkpoint,
    CheckpointError,
    Claim,
    EffectEntry,
    IncarnateError,
    Lease,
    NextTurn,
    OutcomeUnknownError,
    PutCheckpoint,
    RefusedError,
    Retire,
    Session,
    SessionSystem,
    StaleIncarnationError,
    StoreBusyError,
    open_store,
)
from incarnate.domain.commands import WriteCommand
from incarnate.domain.decisions import Decision, StoredLog, decide, encode_command
from incarnate.storage import jsonl, sqlite
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
    write, pwrite, done = os.write, os.pwrite, 0

    def torn(descriptor: int, data: bytes, *byte: int) -> int:
        nonlocal done
        done += 1
        whole: Callable[..., int] = pwrite if byte else write
        if done == last:
            length = len(bytes(data).rstrip(b" "))  # a journal's line may have spaces behind it
            whole(descriptor, bytes(data)[: max(1, min(int(length * part), length - 1))], *byte)
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(descriptor, data, *byte)

    os.write = os.pwrite = torn  # type: ignore[assignment]


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


def as_nobody(url: str) -> None:
    """Write, and read, as somebody who owns nothing."""
    assert jsonl.__file__ != sqlite.__file__  # imported while our own files can still be read
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        with open_store(url) as store:
            say(outcome(store, Append(1, 3, note("d"))))
    except IncarnateError as error:
        say(type(error).__name__)
    with open_store(url, read_only=True) as store, store.snapshot(KEY) as log:
        say("read", len(log.appended(0, log.head.next_offset)))


# Many sessions in many processes


SESSIONS = 4
KEYS = [ActivationKey("pik", f"task-{number}") for number in range(4)]


def crowd(url: str, folder: str, name: str, seed: str) -> None:
    """Sessions that append, rewind and take over until they are told; each says in a file of its own what was
    acknowledged.
    """
    over = threading.Event()
    with SessionSystem.open(url) as system, ThreadPoolExecutor(SESSIONS) as pool:
        say("ready")
        hear()
        workers = [
            Worker(system, f"{name}-{number}", Path(folder), random.Random(f"{seed} {name} {number}"))
            for number in range(SESSIONS)
        ]
        working = [pool.submit(worker.work, over) for worker in workers]
        hear()
        over.set()
        for done in working:
            done.result()
    say("done", sum(worker.count for worker in workers))


class Worker:
    """One thread: it claims an activation, writes until it is fenced, and claims one again."""

    def __init__(self, system: SessionSystem, name: str, folder: Path, chance: random.Random) -> None:
        self.count = 0
        self._system = system
        self._name = name
        self._chance = chance
        self._file = os.open(folder / f"{name}.said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._patience = threading.Event()

    def work(self, over: threading.Event) -> None:
        while not over.is_set():
            key = self._chance.choice(KEYS)
            with suppress(StoreBusyError):
                session = self._system.claim(key)
                self._say(session, "claim", number=session.incarnation)
                while not over.is_set() and self._step(session):
                    pass
                self._patience.wait(self._chance.random() / 4)  # as a supervisor would: else nobody gets to write

    def _step(self, session: Session) -> bool:
        """Do something; whether the session is still the newest one."""
        kind = self._chance.random()
        if kind < 0.05:
            return self._put(session)
        if kind < 0.1:
            with suppress(StoreBusyError):
                try:
                    self._say(session, "turn", number=session.next_turn())
                except StaleIncarnationError:
                    return False
            return True
        if kind < 0.2:
            with suppress(StoreBusyError):
                session.restore(rewind=self._chance.random() < 0.1)
        if kind < 0.3:
            return self._emit_soon(session)
        return self._emit(session, self._events(1 if kind < 0.8 else 4))

    def _events(self, count: int) -> list[AssistantMessage]:
        self.count += count
        return [
            note(f"{self._name}-{number}", self._chance.choice([0, 50, 500, 5000]))
            for number in range(self.count - count, self.count)
        ]

    def _emit(self, session: Session, events: list[AssistantMessage]) -> bool:
        offset = session.next_offset
        names = [event.id for event in events]
        try:
            if len(events) == 1:
                session.emit(events[0])
            else:
                session.emit_many(events)
        except (RefusedError, StoreBusyError, OutcomeUnknownError) as error:
            self._say(session, "unknown" if isinstance(error, OutcomeUnknownError) else "refused", ids=names)
            return not isinstance(error, StaleIncarnationError | OutcomeUnknownError)
        self._say_written(session, offset, names)
        return True

    def _emit_soon(self, session: Session) -> bool:
        offset, events = session.next_offset, self._events(8)
        futures = [session.emit_soon(event) for event in events]
        errors = [future.exception() for future in futures]
        written = next((at for at, error in enumerate(errors) if error is not None), len(errors))
        names = [event.id for event in events]
        self._say_written(session, offset, names[:written])
        if written == len(errors):
            return True
        refused = all(isinstance(error, RefusedError | StoreBusyError) for error in errors[written:])
        self._say(session, "refused" if refused else "unknown", ids=names[written:])
        with suppress(RefusedError, StoreBusyError):
            session.restore()  # a new beginning for the pipeline
        return not any(isinstance(error, StaleIncarnationError | OutcomeUnknownError) for error in errors)

    def _put(self, session: Session) -> bool:
        try:
            checkpoint = session.checkpoint("sha")
        except CheckpointError:  # a take-over has rewound it before it was compared
            return False
        except (RefusedError, StoreBusyError) as error:
            return not isinstance(error, StaleIncarnationError)
        self._say(session, "checkpoint", id=checkpoint.id, offset=checkpoint.offset, generation=generation(session))
        return True

    def _say_written(self, session: Session, offset: int, names: list[str]) -> None:
        if names:
            where = {"offset": offset, "generation": generation(session), "incarnation": session.incarnation}
            self._say(session, "events", ids=names, **where)

    def _say(self, session: Session, what: str, **fields: Any) -> None:
        say(json.dumps({"said": what, "key": str(session.key), **fields}), to=self._file)


def generation(session: Session) -> int:
    """The generation that the session has last written in."""
    found: int = vars(session)["_cursor"].seen[0]
    return found


COMMANDS: dict[str, Callable[..., None]] = {
    function.__name__: function for function in (nursery, paused, as_nobody, crowd)
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
