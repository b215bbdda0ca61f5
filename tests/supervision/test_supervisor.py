"""The supervisor with real threads and stores, over an edge that replays."""

import errno
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from incarnate.actors.dispatchers import make_runtime
from incarnate.actors.session import Session
from incarnate.actors.system import SessionSystem
from incarnate.actors.turn_checkpoints import named_session
from incarnate.domain.checkpoints import Checkpoint, EffectEntry
from incarnate.domain.commands import GetHead, LatestCheckpoint
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import HarnessNotStartedError, IncarnateError, StoreBusyError, StoreFileError
from incarnate.domain.events import (
    AssistantMessage,
    Compaction,
    SessionEvent,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from incarnate.domain.heads import EMPTY_HEAD
from incarnate.domain.keys import ActivationKey
from incarnate.supervision import supervised_log
from incarnate.supervision.boundaries import Every, named_command
from incarnate.supervision.commands import Command
from incarnate.supervision.harness import Harness
from incarnate.supervision.knowledge import Known, Policy
from incarnate.supervision.machine import LoneMachine
from incarnate.supervision.plan import Finish
from incarnate.supervision.supervisor import Supervisor
from incarnate.supervision.tap import PassOn
from incarnate.supervision.world import Look, World
from tests.support.replayed import Life, NoFiles, Replayed, ReplayEdge
from tests.support.supervised import check_events

KEY = ActivationKey("supervised", "run")
POLICY = Policy(max_restarts=3, backoff=0, interrupt=0.05, terminate=0.05)


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}).encode() + b"\n"


def said(text: str) -> bytes:
    return line("item.completed", item={"id": f"said-{text}", "type": "agent_message", "text": text})


def ran(number: int, *, whole: bool = True) -> bytes:
    item = {"id": f"item_{number}", "type": "command_execution", "command": f"do {number}"}
    done = item | {"status": "completed", "exit_code": 0, "aggregated_output": f"did {number}"}
    return line("item.started", item=item) + (line("item.completed", item=done) if whole else b"")


BEGUN = line("thread.started", thread_id="thread-1") + line("turn.started")
ENDED = line("turn.completed", usage={"input_tokens": 1, "output_tokens": 1})
DONE = Life(BEGUN + ran(0) + said("done") + ENDED)
KILLED = Life(BEGUN + ran(0, whole=False), -9)


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


class Elsewhere(NoFiles):
    """The machine that had them is gone."""

    def is_here(self, session: str) -> bool:
        return session == "here"


def supervisor(
    system: SessionSystem,
    edge: ReplayEdge,
    *,
    key: ActivationKey = KEY,
    prompt: str = "do it",
    files: NoFiles | None = None,
    policy: Policy = POLICY,
    every: Every = "turn",
    world: World | None = None,
    machine: LoneMachine | None = None,
    pass_on: PassOn = len,
    on_change: Callable[[Known, int], object] | None = None,
) -> Supervisor:
    return Supervisor(
        system,
        key,
        Harness(find_dialect("codex"), Command.parse(["codex", "exec", prompt]), files or NoFiles(), go_on="go on"),
        edge=edge,
        runtime=make_runtime("calling"),
        policy=policy,
        every=every,
        world=world,
        machine=machine,
        pass_on=pass_on,
        on_change=on_change,
    )


def events(system: SessionSystem) -> list[Any]:
    return [one.event for one in system.replay(KEY)]


def texts(system: SessionSystem, kind: type[UserMessage | AssistantMessage]) -> list[str]:
    return [event.text for event in events(system) if isinstance(event, kind)]


def newest(system: SessionSystem) -> Checkpoint:
    checkpoint: Checkpoint = system.activation(KEY).ask(LatestCheckpoint())
    return checkpoint


def test_what_a_harness_prints_is_passed_on_byte_for_byte(system: SessionSystem) -> None:
    passed: list[bytes | memoryview] = []
    life = Life(b"\xff\x00 no JSON\r\n" + DONE.stdout + b"no line feed")
    supervisor(system, ReplayEdge(life, chunk=7), pass_on=passed.append).run()

    assert life.stdout == b"".join(passed)


def test_a_reader_that_goes_away_does_not_end_the_session(system: SessionSystem) -> None:
    def gone(_chunk: bytes | memoryview) -> None:
        raise BrokenPipeError

    assert Finish(0, "done") == supervisor(system, ReplayEdge(DONE, chunk=9), pass_on=gone).run()
    assert ["done"] == texts(system, AssistantMessage)


def test_each_life_is_an_incarnation_and_resumes_by_its_own_id(system: SessionSystem) -> None:
    edge = ReplayEdge(KILLED, KILLED, DONE)
    finish = supervisor(system, edge).run()
    starts = [one.incarnation for one in system.replay(KEY) if isinstance(one.event, UserMessage)]

    assert Finish(0, "done") == finish
    assert [1, 2, 3] == starts
    assert [
        ("codex", "exec", "do it"),
        ("codex", "exec", "resume", "thread-1", "go on (incarnation 2)"),
        ("codex", "exec", "resume", "thread-1", "go on (incarnation 3)"),
    ] == [running.argv for running in edge.started]
    assert ["do it", "go on (incarnation 2)", "go on (incarnation 3)"] == texts(system, UserMessage)


def test_what_is_learned_is_logged_in_words(system: SessionSystem, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "incarnate")
    supervisor(system, ReplayEdge(KILLED, DONE)).run()
    told = [record.getMessage() for record in caplog.records if getattr(record, "event", "") == "learned"]

    assert "the harness was killed by SIGKILL" in told
    assert "claimed as incarnation 2" in told
    assert [] == [line for line in told if "(" in line]


def test_it_gives_up_after_its_restarts(system: SessionSystem) -> None:
    finish = supervisor(system, ReplayEdge(*[KILLED] * 9), policy=Policy(max_restarts=2, backoff=0)).run()

    assert Finish(7, "gave up after 2 restarts: it was killed by SIGKILL") == finish
    assert ["interrupted"] * 3 == [event.outcome for event in events(system) if isinstance(event, TurnEnd)]


def test_a_turn_that_the_harness_failed_is_tried_again(system: SessionSystem) -> None:
    failed = Life(BEGUN + line("turn.failed", error={"message": "overloaded"}), 1)

    assert Finish(0, "done") == supervisor(system, ReplayEdge(failed, DONE)).run()
    assert 7 == supervisor(system, ReplayEdge(*[failed] * 9), prompt="more").run().code


def test_a_program_that_is_not_there_is_told(system: SessionSystem) -> None:
    finish = supervisor(system, ReplayEdge()).run()

    assert (127, "codex could not be started: the recording has no more lives") == (finish.code, finish.reason)


def test_a_program_that_is_not_there_takes_nothing_over(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge()).run()

    assert EMPTY_HEAD == system.activation(KEY).ask(GetHead())


def test_the_same_command_again_does_not_do_it_again(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()
    edge = ReplayEdge(DONE)

    assert 0 == supervisor(system, edge).run().code
    assert [] == edge.started


def test_a_run_with_nothing_to_do_takes_the_activation_from_nobody(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()
    before = system.activation(KEY).ask(GetHead())
    again = supervisor(system, ReplayEdge())  # what is not started need not be there

    assert Finish(0, "done before: the log holds the turn to its end") == again.run()
    assert before == system.activation(KEY).ask(GetHead())
    assert (0, None) == (again.known.lives, again.known.incarnation)


class Knows(NoFiles):
    """The harness went on by itself."""

    def last_turn(self, session: str) -> list[SessionEvent]:  # noqa: ARG002 - the port's
        start = TurnStart(id="t", parent_id=None, turn=0)
        return [start, UserMessage(id="u", parent_id="t", text="by hand"), TurnEnd(id="e", parent_id="u", turn=0)]


def test_a_log_that_lacks_what_the_files_know_is_claimed_and_levelled(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()
    supervisor(system, ReplayEdge(DONE), files=Knows()).run()

    assert "by hand" in texts(system, UserMessage)
    assert 2 <= system.activation(KEY).ask(GetHead()).fence


def test_a_done_log_without_its_checkpoint_is_claimed_and_given_one(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()
    log = [one.event for one in system.replay(KEY)]
    other = ActivationKey("supervised", "ingested")
    system.claim(other).emit_many(log)
    finish = supervisor(system, ReplayEdge(DONE), key=other).run()

    assert 0 == finish.code
    assert 2 == system.activation(other).ask(GetHead()).fence
    assert len(log) == system.activation(other).ask(LatestCheckpoint()).offset


def test_a_done_log_whose_checkpoint_is_of_an_earlier_turn_is_claimed_and_given_one(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()
    start = TurnStart(id="t", parent_id=events(system)[-1].id, turn=1)
    asked = UserMessage(id="u", parent_id="t", text="more")
    system.claim(KEY).emit_many([start, asked, TurnEnd(id="e", parent_id="u", turn=1)])
    finish = supervisor(system, ReplayEdge(DONE), prompt="more").run()

    assert Finish(0, "done before: the log holds the turn to its end") == finish
    assert 3 == system.activation(KEY).ask(GetHead()).fence
    assert len(events(system)) == newest(system).offset


def test_a_task_that_was_done_after_a_death_is_not_done_again(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(KILLED, DONE)).run()
    edge = ReplayEdge(DONE)

    assert 0 == supervisor(system, edge).run().code
    assert [] == edge.started


def test_a_task_that_was_done_by_a_session_carried_on_is_not_done_again(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(KILLED, DONE), files=Elsewhere()).run()
    edge = ReplayEdge(DONE)

    assert 0 == supervisor(system, edge, files=Elsewhere()).run().code
    assert [] == edge.started


def test_another_prompt_is_a_turn_of_the_same_session(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()
    edge = ReplayEdge(Life(BEGUN + said("more") + ENDED))

    assert 0 == supervisor(system, edge, prompt="and more").run().code
    assert ("codex", "exec", "resume", "thread-1", "and more") == edge.started[0].argv
    assert ["do it", "and more"] == texts(system, UserMessage)


def test_what_a_dead_supervisor_left_open_is_closed_by_the_next(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(KILLED), policy=Policy(max_restarts=0, backoff=0)).run()
    edge = ReplayEdge(DONE)

    assert 0 == supervisor(system, edge).run().code
    assert ("codex", "exec", "resume", "thread-1", "go on (incarnation 2)") == edge.started[0].argv


def test_a_host_that_has_nothing_but_the_store_carries_the_session_on(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(KILLED), policy=Policy(max_restarts=0, backoff=0)).run()
    fresh = Life(DONE.stdout.replace(b"thread-1", b"here"))
    edge = ReplayEdge(fresh)
    finish = supervisor(system, edge, files=Elsewhere()).run()
    [carried] = [event for event in events(system) if isinstance(event, Compaction)]

    assert Finish(0, "done") == finish
    assert ("codex", "exec") == edge.started[0].argv[:2]
    assert 'You: [you called command_execution with {"command":"do 0"}]' in edge.started[0].argv[2]
    assert isinstance(carried.summary, str)
    assert carried.summary in edge.started[0].argv[2]
    assert ["do it", "go on (incarnation 2)"] == texts(system, UserMessage)
    assert ("codex", "here") == named_session(newest(system))


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_session_that_is_not_resumed_by_its_id_is_told_with_the_reason(
    system: SessionSystem, caplog: pytest.LogCaptureFixture
) -> None:
    nameless = Life(BEGUN.partition(b"\n")[2] + said("hm"), -9)
    supervisor(system, ReplayEdge(nameless, KILLED, Life(b"", 1), DONE)).run()
    supervisor(system, ReplayEdge(DONE), prompt="more", files=Elsewhere()).run()

    assert [
        f"supervised/run: {why}: a new session gets the log as text"
        for why in (
            "nothing tells its id",
            "the harness did not go on with thread-1",
            "its session files (thread-1) are not in nowhere",
        )
    ] == warned(caplog)


def test_a_session_that_is_resumed_by_its_id_is_not_warned_of(
    system: SessionSystem, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor(system, ReplayEdge(KILLED, DONE)).run()

    assert [] == warned(caplog)


def test_a_big_session_is_carried_within_one_argument_and_the_log_says_what_was(system: SessionSystem) -> None:
    died = Life(BEGUN + said("漢" * 60_000) + ran(0, whole=False), -9)
    supervisor(system, ReplayEdge(died), policy=Policy(max_restarts=0, backoff=0)).run()
    edge = ReplayEdge(DONE)
    supervisor(system, edge, files=Elsewhere()).run()
    [carried] = [event for event in events(system) if isinstance(event, Compaction)]

    assert len(edge.started[0].argv[2].encode()) < 128 * 1024
    assert isinstance(carried.summary, str)
    assert f"\n{carried.summary}\n" in edge.started[0].argv[2]


def test_what_is_carried_twice_is_not_named_twice(system: SessionSystem) -> None:
    for _ in range(3):
        supervisor(system, ReplayEdge(KILLED), files=Elsewhere(), policy=Policy(max_restarts=0, backoff=0)).run()
    summaries = [event.summary for event in events(system) if isinstance(event, Compaction)]

    assert 2 == len(summaries)
    assert str(summaries[1]).startswith(str(summaries[0]))


def test_a_session_that_the_harness_does_not_know_is_carried_on(system: SessionSystem) -> None:
    edge = ReplayEdge(KILLED, Life(b"", 1), DONE)

    assert Finish(0, "done") == supervisor(system, edge).run()
    assert ["exec", "resume", "exec"] == [
        running.argv[-3] if "resume" in running.argv else "exec" for running in edge.started
    ]


def test_a_stop_ends_the_harness_and_closes_what_is_open(system: SessionSystem) -> None:
    edge = ReplayEdge(Life(KILLED.stdout, None))
    stopped = supervisor(system, edge)
    told: list[Finish] = []
    thread = threading.Thread(target=lambda: told.append(stopped.run()))
    thread.start()
    assert edge.begun.wait(10)
    stopped.stop(143)
    thread.join(10)

    assert [Finish(143, "stopped")] == told
    assert ["interrupt", "terminate"] == edge.started[0].signals
    assert edge.started[0].ended
    assert [ToolResult, TurnEnd] == [type(event) for event in events(system)][-2:]


def test_a_take_over_ends_the_harness_and_nothing_more_of_it_enters_the_log(system: SessionSystem) -> None:
    edge = ReplayEdge(Life(KILLED.stdout, None))
    zombie = supervisor(system, edge)
    told: list[Finish] = []
    thread = threading.Thread(target=lambda: told.append(zombie.run()))
    thread.start()
    assert edge.begun.wait(10)
    successor: Session = system.claim(KEY)
    thread.join(10)
    held = [one.incarnation for one in system.replay(KEY)]

    assert [6] == [finish.code for finish in told]
    assert edge.started[0].ended
    assert -15 == zombie.known.status
    assert set(held) <= {1}
    assert 2 == successor.incarnation


class Builds:
    """A world in which each look finds another commit."""

    def __init__(self) -> None:
        self.looks = 0

    def look(self) -> Look:
        self.looks += 1
        sha = f"sha-{self.looks}"
        return Look(sha, (EffectEntry(id=sha, kind="git-commit"),))


def test_each_tool_is_a_boundary_if_that_is_asked(system: SessionSystem) -> None:
    offsets: list[tuple[int, str]] = []

    def note(_known: Known, _offset: int) -> None:
        checkpoint: Checkpoint | None = system.activation(KEY).ask(LatestCheckpoint())
        offsets.extend([] if checkpoint is None else [(checkpoint.offset, checkpoint.commit_sha)])

    supervisor(system, ReplayEdge(DONE, chunk=60), every="tool", world=Builds(), on_change=note).run()
    with system._store.snapshot(KEY) as log:  # noqa: SLF001 - a system gives the newest alone
        made = log.checkpoint("run:1:4")
    assert made is not None

    assert 4 == made.offset
    assert ["tool", "git-commit"] == [
        effect.kind for effect in made.effect_ledger if effect.kind in {"tool", "git-commit"}
    ]
    assert 7 == newest(system).offset


def test_checkpoints_tell_the_session_and_the_command_line(system: SessionSystem) -> None:
    supervisor(system, ReplayEdge(DONE)).run()

    assert ("codex", "thread-1") == named_session(newest(system))
    assert ("codex", ("codex", "exec", "{prompt}")) == named_command(newest(system))


@pytest.mark.parametrize("error", [StoreBusyError("busy"), StoreFileError("/x", "the disk is full", is_full=True)])
def test_a_store_that_fails_for_a_while_is_waited_for_and_told_ever_less_often(
    system: SessionSystem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: IncarnateError
) -> None:
    monkeypatch.setattr(supervised_log, "_PATIENCE_SECONDS", (0.001,))
    left = [9]
    emit_many = Session.emit_many

    def failing(self: Session, batch: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return emit_many(self, batch)

    monkeypatch.setattr(Session, "emit_many", failing)

    assert Finish(0, "done") == supervisor(system, ReplayEdge(DONE)).run()
    assert 0 == left[0]
    assert [
        f"the store failed {times}: {error}" for times in ("once", *[f"{n} times in a row" for n in (2, 4, 8)])
    ] == warned(caplog)
    assert len(events(system)) == len({event.id for event in events(system)})


def test_a_store_that_is_no_more_is_not_waited_for(system: SessionSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_session: Session, _batch: Any) -> Any:
        raise StoreFileError("/x", "was removed while it was open")

    monkeypatch.setattr(Session, "emit_many", failing)

    assert 9 == supervisor(system, ReplayEdge(DONE)).run().code


def test_calls_that_a_model_gives_one_id_in_one_life_are_events_of_their_own(system: SessionSystem) -> None:
    life = Life(BEGUN + ran(0) + said("once more") + ran(0) + ENDED)
    supervisor(system, ReplayEdge(life)).run()
    appended = list(system.replay(KEY))

    assert 2 == len([one for one in appended if isinstance(one.event, ToolResult)])
    check_events(appended)


class FullDisk(LoneMachine):
    """One on which nothing can be recorded."""

    def note(self, **_about: Any) -> None:
        raise OSError("No space left on device")


def test_a_record_that_cannot_be_written_ends_nothing_and_is_told_once(
    system: SessionSystem, caplog: pytest.LogCaptureFixture
) -> None:
    edge = ReplayEdge(KILLED, DONE)

    assert Finish(0, "done") == supervisor(system, edge, machine=FullDisk()).run()
    assert ["the state of this supervisor cannot be recorded: No space left on device"] == warned(caplog)


class ReadOnly(LoneMachine):
    """As a file system that was mounted anew after an error."""

    def close(self) -> None:
        raise OSError(errno.EROFS, "Read-only file system")


def test_a_record_that_cannot_be_removed_takes_nothing_from_how_it_ended(
    system: SessionSystem, caplog: pytest.LogCaptureFixture
) -> None:
    edge = ReplayEdge(Life(BEGUN + ENDED))

    assert Finish(0, "done") == supervisor(system, edge, machine=ReadOnly()).run()
    assert ["the record of this supervisor cannot be removed: [Errno 30] Read-only file system"] == warned(caplog)


class Upgraded(ReplayEdge):
    """Its program is away when it is first looked for after a life."""

    is_away = True

    def check(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        if self.started and self.is_away:
            self.is_away = False
            raise HarnessNotStartedError(argv[0], "No such file or directory")
        super().check(argv, env=env, cwd=cwd)


def test_a_program_that_is_away_for_a_while_is_told_and_started_once_it_is_back(
    system: SessionSystem, caplog: pytest.LogCaptureFixture
) -> None:
    assert Finish(0, "done") == supervisor(system, Upgraded(KILLED, DONE)).run()
    away = "codex could not be started: No such file or directory; it may be away for a while"
    assert [f"{KEY}: {away}"] == warned(caplog)
    check_events(list(system.replay(KEY)))


class Scarce(ReplayEdge):
    """On a machine that has no more processes after the first one."""

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, run_id: str) -> Replayed:
        if self.started:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return super().start(argv, env=env, cwd=cwd, run_id=run_id)


def test_a_system_that_is_short_of_something_is_no_slip_in_the_command_line(system: SessionSystem) -> None:
    finish = supervisor(system, Scarce(KILLED, DONE)).run()

    assert Finish(7, "codex could not be started: Resource temporarily unavailable") == finish
    check_events(list(system.replay(KEY)))
