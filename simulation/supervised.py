"""The scenario in which supervisors keep a scripted harness alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.domain.dialects.codex import Codex
from incarnate.domain.events import Opaque, ToolCall, ToolResult, TurnEnd, TurnStart
from incarnate.domain.keys import ActivationKey
from incarnate.simulation.scripted import ScriptedEdge, ScriptedFiles, ScriptedMachine, ScriptedNeighbours
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.plan import EXIT_DONE, EXIT_FENCED
from incarnate.supervision.reconcile import GUESSED
from incarnate.supervision.supervisor import Supervisor

if TYPE_CHECKING:
    from incarnate.domain.events import SessionEvent
    from incarnate.simulation.kit import Simulation
    from incarnate.simulation.process import Process

__all__ = ["supervised"]

_KEY = ActivationKey("order-7", "implement-task")
_POLICY = Policy(max_restarts=100, backoff=0.01, interrupt=0.1, terminate=0.1, predecessor=0.5)


def supervised(sim: Simulation) -> None:
    """Two supervisors, one harness that dies: each step once, each call answered once, no process and no turn left."""
    machine = ScriptedMachine(sim)
    for name in ("a", "b"):
        sim.process(name, _supervise, machine)
    sim.run()

    events = [one.event for one in sim.system().replay(_KEY)]
    known = [event for event in events if not isinstance(event, Opaque)]
    _expect("processes that live", 0, len(machine.living))
    _expect("ids", len(known), len({event.id for event in known}))
    _expect("answers", _calls(known), _answers(known))
    _expect("ends", _turns(known, TurnStart), _turns(known, TurnEnd))
    _expect("the last outcome", "completed", next(e.outcome for e in reversed(known) if isinstance(e, TurnEnd)))
    _expect("steps", [f"did {number}" for number in range(machine.steps)], _results(known))


def _supervise(process: Process, machine: ScriptedMachine) -> None:
    command = Command.parse(["harness", "do it"])
    supervisor = Supervisor(
        process.system,
        _KEY,
        Harness(Codex(), command, ScriptedFiles(machine, process), env={}),
        edge=ScriptedEdge(machine, process),
        runtime=process.runtime,
        machine=ScriptedNeighbours(machine, process),
        policy=_POLICY,
        every="tool",
        clock=process.clock,
        new_run_id=process.new_id,
    )
    finish = supervisor.run()
    if finish.code not in {EXIT_DONE, EXIT_FENCED}:
        raise AssertionError(f"{process.name} ended with {finish}")


def _expect(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def _calls(events: list[SessionEvent]) -> int:
    return sum(isinstance(event, ToolCall) for event in events)


def _answers(events: list[SessionEvent]) -> int:
    """How many results answer a call that waits: each one must."""
    waiting: dict[str, int] = {}
    answers = 0
    for event in events:
        if isinstance(event, ToolCall):
            waiting[event.call_id] = waiting.get(event.call_id, 0) + 1
        elif isinstance(event, ToolResult):
            left = waiting[event.call_id] = waiting.get(event.call_id, 0) - 1
            if left < 0:
                raise AssertionError(f"{event.id} answers nothing")
            answers += 1
    return answers


def _turns(events: list[SessionEvent], kind: type[TurnStart | TurnEnd]) -> list[int]:
    return [event.turn for event in events if isinstance(event, kind)]


def _results(events: list[SessionEvent]) -> list[object]:
    """Without repeats: a harness that printed a result and died before it saved it does the step again."""
    results = [event.result for event in events if isinstance(event, ToolResult) and not event.id.startswith(GUESSED)]
    return list(dict.fromkeys(results))
