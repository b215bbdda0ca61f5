"""Scenarios that come with the library: what its own runtime must survive, and examples of what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from incarnate.domain.checkpoints import EffectEntry
from incarnate.domain.commands import GetHead, LatestCheckpoint, Replay
from incarnate.domain.errors import OutcomeUnknownError, RefusedError, StaleIncarnationError, StoreBusyError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.domain.projections.log import LogEvents
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.simulation.supervised import supervised

if TYPE_CHECKING:
    from collections.abc import Iterable

    from incarnate.actors.session import Session
    from incarnate.actors.view import View
    from incarnate.domain.events import AppendedEvent
    from incarnate.domain.projections.base import Projection
    from incarnate.simulation.kit import Simulation
    from incarnate.simulation.process import Process

__all__ = ["SCENARIOS", "persist"]

T = TypeVar("T")

_STEPS = 6
_KEY = ActivationKey("order-7", "implement-task")


def persist(process: Process, call: Callable[..., T], *args: Any) -> T:
    """`call(*args)`, again while the store is busy or lost the answer: what a supervisor should do (I6)."""
    __tracebackhide__ = True
    while True:
        try:
            return call(*args)
        except (StoreBusyError, OutcomeUnknownError):
            process.sleep(0.01)


def _event(name: str) -> AssistantMessage:
    return AssistantMessage(id=name, parent_id=None, text=f"{name} is done")


def _ids(events: Iterable[AppendedEvent]) -> list[str]:
    return [one.event.id for one in events]


def _steps(key: ActivationKey, count: int = _STEPS) -> list[str]:
    return [f"{key.element_id}-{number}" for number in range(count)]


# take-over


def take_over(sim: Simulation) -> None:
    """Three supervisors want one activation; each goes on where the log ends. Every step is there, once, in order."""
    for name in ("a", "b", "c"):
        sim.process(name, _work_through, _KEY)
    sim.run()

    _expect(_steps(_KEY), _ids(sim.system().replay(_KEY)))


def _work_through(process: Process, key: ActivationKey) -> None:
    """Do the steps that the log does not hold yet."""
    system = process.system
    session = persist(process, system.claim, key)
    done = persist(process, lambda: list(system.replay(key)))
    for step in _steps(key)[len(done) :]:
        process.sleep(0.002)  # the agent thinks
        persist(process, session.emit, _event(step))


def _expect(expected: object, found: object) -> None:
    if expected != found:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


# checkpoint-restore-rewind


def checkpoint_restore_rewind(sim: Simulation) -> None:
    """Supervisors go back to the newest checkpoint or to an older one. No mind ever parts from its world."""
    world = World({}, [])
    for name in ("a", "b"):
        sim.process(name, _restore_and_go_on, world)
    sim.run()

    events = sim.system().replay(_KEY)
    _expect(list(range(_STEPS)), [int(one.event.id.split("-")[0]) for one in events])


class World(NamedTuple):
    """What is outside: how many steps each commit holds, and the ids of the checkpoints that were acknowledged."""

    steps: dict[str, int]
    checkpoints: list[str]


def _restore_and_go_on(process: Process, world: World) -> None:
    """Restore, and do what is left; each second step is a commit to the world and a checkpoint."""
    session = persist(process, process.system.claim, _KEY)
    seed = persist(process, lambda: session.restore(process.choose([None, *world.checkpoints]), rewind=True))
    if seed.checkpoint is not None:
        _expect(world.steps[seed.checkpoint.commit_sha], seed.next_offset)
    _expect(list(range(seed.next_offset)), [int(one.event.id.split("-")[0]) for one in seed.events])
    for step in range(seed.next_offset, _STEPS):
        persist(process, session.emit, _event(f"{step}-{session.incarnation}"))
        if step % 2:
            sha = f"sha-{step}-{session.incarnation}"
            world.steps[sha] = step + 1
            effects = [EffectEntry(id=sha, kind="git-push")]
            world.checkpoints.append(persist(process, session.checkpoint, sha, effects).id)


# retry-after-unknown


def retry_after_unknown(sim: Simulation) -> None:
    """One supervisor writes in every way there is, and repeats what was not answered. Nothing is there twice."""
    sim.process("a", _write_in_every_way)
    sim.run()

    _expect(_steps(_KEY, 12), _ids(sim.system().replay(_KEY)))


def _write_in_every_way(process: Process) -> None:
    system = process.system
    session = persist(process, system.claim, _KEY)
    left = _steps(_KEY, 12)[len(persist(process, lambda: list(system.replay(_KEY)))) :]
    while left:
        many = [_event(name) for name in left[: 1 + len(left) % 3]]
        if len(left) % 2:
            persist(process, session.emit, many[0])
            del left[0]
        elif len(left) % 4:
            persist(process, session.emit_many, many)
            del left[: len(many)]
        else:
            session = _emit_soon(process, session, many)
            there = persist(process, lambda: list(system.replay(_KEY)))
            left = _steps(_KEY, 12)[len(there) :]


def _emit_soon(process: Process, session: Session, events: list[AssistantMessage]) -> Session:
    """Send without waiting. Where that fails, nobody knows how far it came: the same incarnation leases again."""
    try:
        for future in [session.emit_soon(event) for event in events]:
            future.result()
    except (StoreBusyError, OutcomeUnknownError):
        return persist(process, process.system.lease, session.key, session.incarnation)
    return session


# view


def view(sim: Simulation) -> None:
    """Views of what two supervisors write and rewind, beside the writers and in a process of their own."""
    world = World({}, [])
    for name in ("a", "b"):
        sim.process(name, _write_and_look, world)
    sim.process("reader", _follow_and_look)
    sim.run()


def _write_and_look(process: Process, world: World) -> None:
    process.spawn(_look_often, process)
    _restore_and_go_on(process, world)


def _follow_and_look(process: Process) -> None:
    process.spawn(_look_often, process)
    _follow(process)


def _follow(process: Process) -> None:
    """Follow the log until it holds the last step."""
    followed: list[AppendedEvent] = []
    view = persist(process, process.system.view, _KEY, LogEvents())
    with view.changes() as changes:
        while len(followed) < _STEPS:
            change = persist(process, changes.next)
            if change is None:
                return
            del followed[change.keep :]
            for index, item in change.replaced:
                followed[index] = item
            followed.extend(change.items)
            _expect(list(range(len(followed))), [one.offset for one in followed])


def _look_often(process: Process) -> None:
    """Ask views for their values while others write; each is held against the fold of the log."""
    for _ in range(5):
        for projection in (ModelHistory(), LogEvents()):
            view: View[Any] = persist(process, process.system.view, _KEY, projection)
            persist(process, view.get)
        process.sleep(0.002)


# many-sessions


def many_sessions(sim: Simulation) -> None:
    """Three processes, three activations: each works through all of them, with room for all in memory or for one."""
    sim.options["max_live"] = sim.choose([3, 1, 2])
    keys = [ActivationKey("order-7", f"task-{number}") for number in range(3)]
    for turn, name in enumerate(("a", "b", "c")):
        sim.process(name, _work_through_all, [*keys[turn:], *keys[:turn]])
    sim.run()

    for key in keys:
        _expect(_steps(key), _ids(sim.system().replay(key)))


def _work_through_all(process: Process, keys: list[ActivationKey]) -> None:
    for key in keys:
        process.spawn(_until_fenced, process, key)


def _until_fenced(process: Process, key: ActivationKey) -> None:
    try:
        _work_through(process, key)
    except StaleIncarnationError:
        return


# fenced


def fenced(sim: Simulation) -> None:
    """A writer that asked to be told of a take-over is told, once, whoever takes over and however late."""
    told: list[int] = []
    over: list[int] = []
    inside = sim.choose([True, False])
    sim.process("a", _wait_for_take_over, told, over, inside)
    if not inside:
        sim.process("b", _take_over_until, over)
    sim.run()

    _expect(sorted(set(told)), sorted(told))


def _wait_for_take_over(process: Process, told: list[int], over: list[int], inside: bool) -> None:  # noqa: FBT001 - `process` hands it on
    session = persist(process, process.system.claim, _KEY)
    persist(process, session.on_fenced, lambda: told.append(session.incarnation))
    if inside:
        process.spawn(_take_over_late, process)
    deadline = process.now + 60
    while session.incarnation not in told and process.now < deadline:
        process.sleep(0.5)
    _expect([session.incarnation], [one for one in told if one == session.incarnation])
    over.append(session.incarnation)


def _take_over_late(process: Process) -> None:
    process.sleep(0.1)
    persist(process, process.system.claim, _KEY)


def _take_over_until(process: Process, over: list[int]) -> None:
    while not over:
        _take_over_late(process)


# anything


def anything(sim: Simulation) -> None:
    """Two processes do whatever comes to their minds, each with two tasks on one handle. The checks alone judge it."""
    made: list[str] = []
    for name in ("a", "b"):
        sim.process(name, _do_anything, made)


def _do_anything(process: Process, made: list[str]) -> None:
    session = persist(process, process.system.claim, _KEY)
    process.spawn(_do_some, process, session, made)
    _do_some(process, session, made)


def _do_some(process: Process, session: Session, made: list[str]) -> None:
    for _ in range(6):
        work = process.choose(_ANYTHING)
        try:
            work(process, session, made)
        except (RefusedError, StoreBusyError, OutcomeUnknownError):
            process.sleep(0.001)


def _emit_one(process: Process, session: Session, _made: list[str]) -> None:
    session.emit(_event(process.new_id()))


def _emit_two(process: Process, session: Session, _made: list[str]) -> None:
    session.emit_many([_event(process.new_id()), _event(process.new_id())])


def _emit_and_go_on(process: Process, session: Session, _made: list[str]) -> None:
    session.emit_soon(_event(process.new_id()))


def _put_checkpoint(process: Process, session: Session, made: list[str]) -> None:
    made.append(session.checkpoint(process.new_id()).id)


def _go_back(process: Process, session: Session, made: list[str]) -> None:
    session.restore(process.choose([None, *made]), rewind=True)


def _take_a_turn(process: Process, session: Session, _made: list[str]) -> None:
    session.next_turn()
    persist(process, process.system.lease, _KEY, session.incarnation)


def _look(process: Process, _session: Session, _made: list[str]) -> None:
    projection: Projection[Any] = process.choose([LogEvents(), ModelHistory()])
    process.system.view(_KEY, projection).get()
    process.system.activation(_KEY).ask(process.choose([GetHead(), LatestCheckpoint(), Replay()]))


_ANYTHING = (_emit_one, _emit_two, _emit_and_go_on, _put_checkpoint, _go_back, _take_a_turn, _look)


SCENARIOS: dict[str, Callable[[Simulation], None]] = {
    "take-over": take_over,
    "checkpoint-restore-rewind": checkpoint_restore_rewind,
    "retry-after-unknown": retry_after_unknown,
    "view": view,
    "many-sessions": many_sessions,
    "fenced": fenced,
    "supervised": supervised,
    "anything": anything,
}
"""By the names that `incarnate simulate --scenario` takes."""
