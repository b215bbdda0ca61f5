"""A fork of an activation, or one that was rewound, goes its own way with another session of the harness."""

from collections.abc import Iterator

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.system import SessionSystem
from incarnate.domain.commands import LatestCheckpoint
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import AssistantMessage, Compaction, SessionEvent, TurnEnd, TurnStart, UserMessage
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.supervisor import Supervisor
from tests.support.replayed import Life, NoFiles, ReplayEdge

KEY, FORK = ActivationKey("supervised", "run"), ActivationKey("supervised", "fork")
LIFE = b"""{"type":"thread.started","thread_id":"thread-1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
"""


class KnowsMore(NoFiles):
    """The session went on with another turn, which the files hold to its end."""

    def last_turn(self, session: str) -> list[SessionEvent]:
        if session != "thread-1":
            return []
        return [
            TurnStart(id="s", parent_id=None, turn=1),
            UserMessage(id="u", parent_id=None, text="and more"),
            AssistantMessage(id="a", parent_id=None, text="did more"),
            TurnEnd(id="e", parent_id=None, turn=1),
        ]


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def run(
    system: SessionSystem, key: ActivationKey, prompt: str, files: NoFiles, thread: bytes = b"thread-1"
) -> tuple[str, ...]:
    """The command line that was started, of a harness that says that its session is `thread`."""
    edge = ReplayEdge(Life(LIFE.replace(b"thread-1", thread)))
    harness = Harness(find_dialect("codex"), Command.parse(["codex", "exec", prompt]), files)
    runtime = make_runtime("calling")
    supervised = Supervisor(system, key, harness, edge=edge, runtime=runtime, policy=Policy(max_restarts=0))
    assert 0 == supervised.run().code
    return edge.started[0].argv


def asked(system: SessionSystem, key: ActivationKey) -> list[str]:
    return [one.event.text for one in system.replay(key) if isinstance(one.event, UserMessage)]


def test_a_fork_hears_nothing_of_what_its_origins_session_went_on_with(system: SessionSystem) -> None:
    run(system, KEY, "do it", NoFiles())
    system.fork(KEY, FORK)
    run(system, KEY, "and more", NoFiles())

    argv = run(system, FORK, "go another way", KnowsMore(), b"thread-2")

    assert ("codex", "exec") == argv[:2]
    assert "<earlier-session>" in argv[2]
    assert ["do it", "go another way"] == asked(system, FORK)
    assert ["do it", "and more"] == asked(system, KEY)


def test_a_fork_of_all_that_a_retired_activation_held_goes_on_with_its_session(system: SessionSystem) -> None:
    run(system, KEY, "do it", NoFiles())
    system.retire(KEY)
    system.fork(KEY, FORK)

    assert ("codex", "exec", "resume", "thread-1", "and more") == run(system, FORK, "and more", NoFiles())
    assert ("codex", "exec", "resume", "thread-1", "and on") == run(system, FORK, "and on", NoFiles())


def test_an_activation_that_was_rewound_hears_nothing_of_what_was_taken_back(system: SessionSystem) -> None:
    run(system, KEY, "do it", NoFiles())
    before = system.activation(KEY).ask(LatestCheckpoint()).id
    run(system, KEY, "and more", NoFiles())
    session = system.claim(KEY)
    session.restore(before)
    session.emit(Compaction(id="c", parent_id=None, reason="taken back", replaces_from=0, replaces_to=0))

    argv = run(system, KEY, "go another way", KnowsMore(), b"thread-2")

    assert "<earlier-session>" in argv[2]
    assert ["do it", "go another way"] == asked(system, KEY)
    assert ("codex", "exec", "resume", "thread-2", "and on") == run(system, KEY, "and on", NoFiles())
