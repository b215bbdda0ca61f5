"""A second supervisor on a store of its own handle, as on another machine: the first one ends its harness."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import TurnEnd
from incarnate.domain.keys import ActivationKey
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Policy
from incarnate.supervision.plan import Finish
from incarnate.supervision.supervisor import Supervisor
from tests.support.postgres_server import postgres_url
from tests.support.replayed import Life, NoFiles, Replayed, ReplayEdge
from tests.support.waiting import soon

KEY = ActivationKey("supervised", "run")
RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings" / "codex"
KILLED = Life((RECORDINGS / "S4" / "stdout.jsonl").read_bytes(), None)
RESUMED = Life((RECORDINGS / "S5" / "stdout.jsonl").read_bytes())
LATE = b'{"type":"item.completed","item":{"id":"item_9","type":"agent_message","text":"from the grave"}}\n'


class Talkative(ReplayEdge):
    """Its harness says something more once somebody wants it to end."""

    def start(self, *arguments: object, **options: object) -> Replayed:
        running = super().start(*arguments, **options)  # type: ignore[arg-type]
        end = running.end

        def last_words(*deadlines: object) -> object:
            running._left += LATE  # noqa: SLF001 - the pipe
            return end(*deadlines)  # type: ignore[arg-type]

        running.end = last_words  # type: ignore[assignment,method-assign]
        return running


def supervisor(system: SessionSystem, edge: ReplayEdge) -> Supervisor:
    command = Command.parse(["codex", "exec", "STUBPROMPT S4: please do the scripted task."])
    return Supervisor(
        system,
        KEY,
        Harness(find_dialect("codex"), command, NoFiles()),
        edge=edge,
        runtime=make_runtime("calling"),
        policy=Policy(backoff=0),
    )


@pytest.mark.parametrize("url", [lambda folder: f"sqlite:///{folder}/s.db", postgres_url], ids=["sqlite", "postgres"])
def test_what_a_zombies_harness_prints_after_a_take_over_is_in_no_log(
    url: Callable[[Path], str], tmp_path: Path
) -> None:
    store, told = url(tmp_path), list[Finish]()
    first_edge = Talkative(KILLED)
    with SessionSystem.open(store) as here, SessionSystem.open(store) as there:
        first = supervisor(here, first_edge)
        thread = threading.Thread(target=lambda: told.append(first.run()), daemon=True)
        thread.start()
        assert soon(lambda: len(list(here.replay(KEY))) == 5, 30)
        second = supervisor(there, ReplayEdge(RESUMED)).run()
        thread.join(30)
        log = list(there.replay(KEY))

    assert [6, 0] == [*[finish.code for finish in told], second.code]
    assert first_edge.started[0].ended
    assert ["interrupted", "completed"] == [one.event.outcome for one in log if isinstance(one.event, TurnEnd)]
    assert [] == [one for one in log if getattr(one.event, "text", "") == "from the grave"]
    assert list(range(len(log))) == [one.offset for one in log]
