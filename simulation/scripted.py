"""A machine with a scripted harness on it: what supervisors start, and what outlives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from incarnate.domain.dialects.base import UNNUMBERED
from incarnate.domain.dialects.drafts import message, tool_call, tool_result
from incarnate.domain.events import SessionEvent, ToolResult, TurnEnd, TurnStart, UserMessage
from incarnate.supervision.commands import carried_tail
from incarnate.supervision.edge import Ended, Identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from incarnate.simulation.kit import Simulation
    from incarnate.simulation.process import Process
    from incarnate.supervision.edge import Deadlines, Edge, SignalKind

__all__ = ["ScriptedEdge", "ScriptedFiles", "ScriptedHarness", "ScriptedMachine", "ScriptedNeighbours"]

_encode = msgspec.json.Encoder().encode

_STEP_SECONDS = 0.02
_LOOK_SECONDS = 0.004


class _Saved:
    """A session as the harness keeps it: its turns, each with what it had saved of it."""

    def __init__(self) -> None:
        self.turns: list[list[SessionEvent]] = []
        self.told: set[object] = set()
        self.calls = 0
        self.written = 0.0

    @property
    def done(self) -> int:
        """How many steps it knows to be done: those whose results it saved, or was told of."""
        saved = {event.result for turn in self.turns for event in turn if isinstance(event, ToolResult)}
        return len(saved | self.told)


class ScriptedMachine:
    """Processes and files of one machine. They are no part of any simulated process, so they outlive all of them.

    The harness works through `steps` calls, an answer after each, and goes on behind the last result that it saved. The
    seed says when it dies, what of a step it prints and saves before the other, whether it heeds signals, and whether
    what holds its tree together dies with the supervisor.
    """

    def __init__(self, sim: Simulation, steps: int = 3, deaths: int = 4) -> None:
        self.sim = sim
        self.steps = steps
        self.deaths = deaths
        self.saved: dict[str, _Saved] = {}
        self.trees: list[ScriptedHarness] = []
        self.records: dict[int, Identity | None] = {}
        self.owners: dict[int, tuple[Process, int]] = {}
        self.effects: list[str] = []
        self.runs = 0

    @property
    def living(self) -> list[ScriptedHarness]:
        """What runs, or has something that runs."""
        return [tree for tree in self.trees if tree.lives]

    def is_alive(self, record: int) -> bool:
        """Whether the supervisor of this record runs: it holds a lock that dies with it."""
        process, start = self.owners[record]
        return process.alive and process.starts == start


class ScriptedHarness:
    """One process of the harness, and a tool of it that lives on in a session of its own."""

    def __init__(self, machine: ScriptedMachine, owner: Process, argv: Sequence[str], identity: Identity) -> None:
        self.identity = identity
        self.status: int | None = None
        self.has_tool = False
        self._machine = machine
        self._owner, self._start = owner, owner.starts
        self._pipe = b""
        self._wants_end = False
        choose = machine.sim.choose
        self._heeds = choose([True, False])
        # With its supervisor, a keeper dies that was killed too: what it held lives on until somebody finds it.
        self._is_kept = choose([True, True, False])
        self._session, self._prompt = argv[-2] if "resume" in argv else "", argv[-1]
        machine.trees.append(self)
        machine.sim.spawn(self._live)

    @property
    def lives(self) -> bool:
        """Whether anything of it runs."""
        return self.status is None or self.has_tool

    def read(self, timeout: float) -> bytes | None:
        """As the edge."""
        until = self._owner.now + timeout
        while not self._pipe:
            if not self.lives:
                return b""
            if self._owner.now >= until or (self.status is not None and self.has_tool):
                return None
            self._owner.sleep(_LOOK_SECONDS)
        data, self._pipe = self._pipe, b""
        return data

    def signal(self, kind: SignalKind) -> None:
        """As the edge."""
        self._wants_end = self._wants_end or self._heeds or kind == "kill"

    def poll(self) -> int | None:
        """As the edge."""
        return self.status

    def descendants(self) -> tuple[int, ...]:
        """As the edge."""
        return (1,) if self.has_tool else ()

    def end(self, deadlines: Deadlines) -> Ended:
        """As the edge: in time, whatever it heeds."""
        orphans = len(self.descendants())
        if self.lives:
            self._owner.sleep(deadlines.terminate if not self._heeds else _LOOK_SECONDS)
        self.die(-9)
        return Ended(orphans)

    def die(self, status: int, *, tool: bool = True) -> None:
        """End its own process, and what it started unless that lives on."""
        self.status = status if self.status is None else self.status
        self.has_tool = self.has_tool and not tool

    def close(self) -> None:
        """As the edge."""
        self.die(-9)

    # what it does

    def _live(self) -> None:
        script = self._script()
        while self.lives:
            self._machine.sim.sleep(_STEP_SECONDS)
            if self._is_kept and not (self._owner.alive and self._owner.starts == self._start):
                self.die(-9)
            if self.status is not None:
                continue
            if self._wants_end or self._is_killed():
                self.die(-2 if self._wants_end else -9, tool=False)
            elif next(script, None) is None:
                self.die(0)

    def _is_killed(self) -> bool:
        machine = self._machine
        if machine.deaths and machine.sim.choose([False, False, False, True]):
            machine.deaths -= 1
            return True
        return False

    def _script(self) -> Iterator[bool]:
        """Work; true after each thing that it does."""
        machine = self._machine
        name = self._session or f"s{machine.runs}"
        machine.runs += 1
        saved = machine.saved.setdefault(name, _Saved())
        # A new session that is told of an old one takes its word for what is done.
        results = [f"did {number}" for number in range(machine.steps)]
        saved.told |= {result for result in results if f'"{result}"' in self._prompt}
        turn: list[SessionEvent] = []
        saved.turns.append(turn)
        saved.written = machine.sim.now
        self._print("thread.started", thread_id=name)
        turn += [
            TurnStart(id="", parent_id=None, turn=UNNUMBERED),
            UserMessage(id="", parent_id=None, text=carried_tail(self._prompt)),
        ]
        yield True
        self._print("turn.started")
        yield True
        while saved.done < machine.steps:
            yield from self._step(saved, turn)
        done = message("assistant", "all of it is done")
        assert done is not None, "it has a text"
        yield from self._both(turn, done, "item.completed", id="last", type="agent_message", text="all of it is done")
        turn.append(TurnEnd(id="", parent_id=None, turn=UNNUMBERED, outcome="completed"))
        yield True
        self._print("turn.completed", usage={"input_tokens": 1, "output_tokens": 1})

    def _step(self, saved: _Saved, turn: list[SessionEvent]) -> Iterator[bool]:
        machine = self._machine
        saved.calls += 1
        call, number = f"item_{saved.calls}", saved.done
        tool = {"id": call, "type": "command_execution", "command": f"do {number}"}
        told = tool_call(call, "command_execution", {"command": f"do {number}"})
        yield from self._both(turn, told, "item.started", status="in_progress", **tool)
        self.has_tool = True
        yield True
        machine.effects.append(f"{self.identity.run_id}:{number}")
        self.has_tool = machine.sim.choose([False, False, True])  # one that was put into the background
        answer = tool_result(call, f"did {number}", ok=True)
        yield from self._both(
            turn, answer, "item.completed", status="completed", exit_code=0, aggregated_output=f"did {number}", **tool
        )

    def _both(self, turn: list[SessionEvent], draft: SessionEvent, kind: str, **item: object) -> Iterator[bool]:
        """Print and save, one before the other: a death between the two leaves one of them."""
        saves_first = self._machine.sim.choose([False, True])
        if saves_first:
            turn.append(draft)
            yield True
        self._print(kind, item=item)
        yield True
        if not saves_first:
            turn.append(draft)

    def _print(self, kind: str, **fields: object) -> None:
        self._pipe += _encode({"type": kind, **fields}) + b"\n"


class ScriptedEdge:
    """The edge of one simulated process: it starts harnesses on the machine."""

    def __init__(self, machine: ScriptedMachine, process: Process) -> None:
        self._machine = machine
        self._process = process

    def check(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        """As the port: every program is there."""

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, run_id: str) -> ScriptedHarness:  # noqa: ARG002 - the port's
        """As the port."""
        self._process.sleep(_LOOK_SECONDS)
        return ScriptedHarness(self._machine, self._process, argv, self.identity(run_id))

    def identity(self, run_id: str) -> Identity:
        """As the port."""
        return Identity(run_id)

    def leftovers(self, identity: Identity, deadlines: Deadlines) -> Ended:
        """As the port."""
        found = [tree for tree in self._machine.living if tree.identity.run_id == identity.run_id]
        for tree in found:
            self._process.sleep(deadlines.terminate)
            tree.die(-9)
        return Ended(len(found))


class ScriptedNeighbours:
    """What the machine has recorded of its supervisors, as one of them sees it."""

    def __init__(self, machine: ScriptedMachine, process: Process) -> None:
        self._machine = machine
        self._mine = len(machine.owners)
        machine.owners[self._mine] = (process, process.starts)
        machine.records[self._mine] = None

    def end_leftovers(self, edge: Edge, deadlines: Deadlines) -> None:
        """As the port."""
        for record in [record for record in self._machine.records if not self._machine.is_alive(record)]:
            self._end(edge, record, deadlines)
            self._machine.records.pop(record, None)

    def has_predecessor(self) -> bool:
        """As the port."""
        return bool(self._others())

    def end_predecessor(self, edge: Edge, deadlines: Deadlines) -> None:
        """As the port."""
        for record in self._others():
            self._end(edge, record, deadlines)

    def sessions(self) -> frozenset[str]:
        """As the port: all that run here are of one activation."""
        return frozenset()

    def note(self, *, identity: Identity | None, **_others: object) -> None:
        """As the port."""
        self._machine.records[self._mine] = identity

    def close(self) -> None:
        """As the port."""
        self._machine.records.pop(self._mine, None)

    def _others(self) -> list[int]:
        machine = self._machine
        return [record for record in machine.records if record < self._mine and machine.is_alive(record)]

    def _end(self, edge: Edge, record: int, deadlines: Deadlines) -> None:
        identity = self._machine.records.get(record)
        if identity is not None:
            edge.leftovers(identity, deadlines)


class ScriptedFiles(NamedTuple):
    """The harness's own sessions on the machine, by the clock of one process."""

    machine: ScriptedMachine
    process: Process

    def place(self) -> str:
        """As the port."""
        return "the simulated machine"

    def is_here(self, session: str) -> bool:
        """As the port."""
        return session in self.machine.saved

    def newest(self, since: float, theirs: frozenset[str] = frozenset()) -> str | None:
        """As the port."""
        ours = [one for one in self.machine.saved.items() if one[0] not in theirs]
        found = max(ours, key=lambda one: one[1].written, default=None)
        age = 0.0 if found is None else self.process.now - found[1].written
        return None if found is None or self.process.clock() / 1000 - age < since else found[0]

    def last_turn(self, session: str) -> list[SessionEvent]:
        """As the port."""
        saved = self.machine.saved.get(session)
        return list(saved.turns[-1]) if saved is not None and saved.turns else []
