"""A stop ends a supervisor whatever it waits for: a reader that reads nothing, a store that is away."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.session import Session
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import StoreBusyError
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.edge import Deadlines, Ended
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.plan import STOPS_AT_ONCE, Finish
from incarnate.supervision.supervisor import Supervisor
from incarnate.supervision.tap import PassOn
from tests.support.replayed import Life, NoFiles, Replayed, ReplayEdge

KEY = ActivationKey("supervised", "run")
POLICY = Policy(max_restarts=0, backoff=0, interrupt=0.01, terminate=0.01)
BEGUN = b'{"type":"thread.started","thread_id":"t"}\n{"type":"turn.started"}\n'
SAID = b'{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"half"}}\n'
ENDED = b'{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'
DONE = Life(BEGUN + SAID + ENDED)
TALKS_ON = Life(BEGUN + SAID, None)


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def supervisor(
    system: SessionSystem, edge: ReplayEdge, *, pass_on: PassOn = len, policy: Policy = POLICY
) -> Supervisor:
    command = Command.parse(["codex", "exec", "do it"])
    harness = Harness(find_dialect("codex"), command, NoFiles())
    runtime = make_runtime("calling")
    return Supervisor(system, KEY, harness, edge=edge, runtime=runtime, policy=policy, pass_on=pass_on)


def said(system: SessionSystem) -> list[str]:
    return [one.event.text for one in system.replay(KEY) if isinstance(one.event, AssistantMessage)]


def finish_of(supervisor: Supervisor) -> Callable[[], Finish]:
    """Run it beside the test; what is given waits for its end."""
    found: list[Finish] = []
    thread = threading.Thread(target=lambda: found.append(supervisor.run()), daemon=True)
    thread.start()

    def finish() -> Finish:
        thread.join(20)
        assert not thread.is_alive(), "it does not end"
        return found[0]

    return finish


def test_what_a_reader_does_not_take_is_recorded_all_the_same(system: SessionSystem) -> None:
    """The reader takes the first byte once the log holds the turn to its end."""

    def reader(chunk: bytes | memoryview) -> int:
        return len(chunk) if said(system) else 0

    assert Finish(0, "done") == supervisor(system, ReplayEdge(DONE), pass_on=reader).run()


def test_a_slow_reader_is_given_every_byte_once(system: SessionSystem) -> None:
    passed = bytearray()

    def reader(chunk: bytes | memoryview) -> int:
        passed.extend(chunk[:7])
        return min(7, len(chunk))

    supervisor(system, ReplayEdge(DONE, chunk=50), pass_on=reader).run()

    assert DONE.stdout == passed


def test_a_reader_that_takes_nothing_holds_up_no_second_stop(system: SessionSystem) -> None:
    reading = threading.Event()

    def reader(_chunk: bytes | memoryview) -> int:
        reading.set()
        return 0

    supervised = supervisor(system, ReplayEdge(TALKS_ON), pass_on=reader)
    finish = finish_of(supervised)
    assert reading.wait(20)
    supervised.stop(130)
    supervised.stop(130)

    assert Finish(130, "stopped") == finish()
    assert ["half"] == said(system)


def test_a_reader_that_takes_nothing_holds_up_no_take_over(system: SessionSystem) -> None:
    reading = threading.Event()

    def reader(_chunk: bytes | memoryview) -> int:
        reading.set()
        return 0

    finish = finish_of(supervisor(system, ReplayEdge(TALKS_ON), pass_on=reader))
    assert reading.wait(20)
    system.claim(KEY)

    assert 6 == finish().code


class Stubborn(ReplayEdge):
    """Its harness ends for nobody who gives it time."""

    def __init__(self) -> None:
        super().__init__(TALKS_ON)
        self.ending, self.hastened = threading.Event(), threading.Event()

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, run_id: str) -> Replayed:
        running = super().start(argv, env=env, cwd=cwd, run_id=run_id)
        end = running.end

        def end_in_haste(deadlines: Deadlines) -> Ended:
            if deadlines.terminate:
                self.ending.set()
                self.hastened.wait(50)
            else:
                self.hastened.set()
            return end(deadlines)

        running.end = end_in_haste  # type: ignore[method-assign]
        return running


def test_a_second_stop_hastens_an_end_that_has_begun(system: SessionSystem) -> None:
    edge = Stubborn()
    supervised = supervisor(system, edge)
    finish = finish_of(supervised)
    assert edge.begun.wait(20)
    supervised.stop()
    assert edge.ending.wait(20)
    supervised.stop()

    assert Finish(143, "stopped") == finish()


class Away:
    """A store that refuses one kind of call, and tells when it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.asked = threading.Event()
        monkeypatch.setattr(owner, name, self._refuse)

    def _refuse(self, *_arguments: Any) -> Any:
        self.asked.set()
        raise StoreBusyError("busy")


@pytest.mark.parametrize(("owner", "name"), [(SessionSystem, "claim"), (Session, "emit_many")])
def test_a_third_stop_waits_for_no_store(
    system: SessionSystem, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    away = Away(monkeypatch, owner, name)
    supervised = supervisor(system, ReplayEdge(TALKS_ON))
    finish = finish_of(supervised)
    assert away.asked.wait(20)
    for _ in range(STOPS_AT_ONCE):
        supervised.stop()

    assert 9 == finish().code


@pytest.mark.parametrize(("owner", "name"), [(SessionSystem, "claim"), (Session, "emit_many")])
def test_a_stop_waits_for_a_store_that_is_away_as_long_as_the_policy_has_it(
    system: SessionSystem, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    away = Away(monkeypatch, owner, name)
    policy = Policy(max_restarts=0, interrupt=0.01, terminate=0.01, flush=0.1)
    supervised = supervisor(system, ReplayEdge(TALKS_ON), policy=policy)
    finish = finish_of(supervised)
    assert away.asked.wait(20)
    supervised.stop()

    assert 9 == finish().code
