"""Calls from where nobody expects them: signal handlers, callbacks, subscribers, forked children, bad clocks."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    EffectEntry,
    ModelHistory,
    OutOfRangeError,
    ReentrantCallError,
    SessionSystem,
    Subscribe,
    ToolCall,
)

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def refused(call: Callable[[], object]) -> str:
    try:
        call()
    except ReentrantCallError:
        return "refused"
    return "done"


@pytest.fixture
def interrupted() -> Iterator[list[Callable[[], object]]]:
    """Whatever is in the list is called by a signal handler, every millisecond."""
    calls: list[Callable[[], object]] = []

    def handle(_signal: int, _frame: FrameType | None) -> None:
        for call in calls:
            call()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    yield calls
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_handler_that_emits_in_the_middle_of_an_emit_is_refused_and_nothing_hangs(
    tmp_path: Path, interrupted: list[Callable[[], object]]
) -> None:
    with SessionSystem.open(f"sqlite:///{tmp_path}/s.db") as system:
        session, other = system.claim(KEY), system.claim(ActivationKey("pik-1", "other"))
        outcomes: set[str] = set()
        interrupted.append(lambda: outcomes.add(refused(lambda: session.emit(said("last words")))))
        interrupted.append(lambda: outcomes.add(refused(lambda: other.emit(said("last words")))))
        deadline = time.monotonic() + 20
        while outcomes != {"refused", "done"} and time.monotonic() < deadline:
            session.emit(said("work"))
        interrupted.clear()

        assert "refused" in outcomes
        assert session.emit(said("after")).offset == session.next_offset - 1


def test_what_a_checkpoint_is_given_may_itself_emit(system: SessionSystem) -> None:
    session = system.claim(KEY)

    def ledger() -> Iterator[EffectEntry]:
        session.emit(said("pushed"))
        yield EffectEntry(id="x", kind="git-push")

    assert session.checkpoint("sha", ledger()).offset == 1


def test_a_subscriber_that_writes_with_the_same_handle_is_refused() -> None:
    with SessionSystem.open("memory://") as system:
        session = system.claim(KEY)
        outcomes: list[str] = []

        class Eager:
            def tell(self, _message: Any) -> None:
                outcomes.append(refused(lambda: session.emit(said("again"))))

        system.activation(KEY).ask(Subscribe(Eager()))
        session.emit(said("a"))

        assert ["refused"] == outcomes
        assert session.next_offset == 1


def test_a_future_s_callback_that_blocks_on_its_own_pipeline_is_refused(system: SessionSystem) -> None:
    session = system.claim(KEY)
    outcomes: list[str] = []
    for number in range(20):
        session.emit_soon(said(str(number))).add_done_callback(
            lambda _: outcomes.append(refused(lambda: session.emit(said("callback"))))
        )
    session.emit(said("end"))

    assert len(outcomes) == 20
    assert session.emit(said("after")).offset >= 21


def test_an_interrupt_while_a_sender_is_started_wedges_nothing(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_soon(said("first")).result(timeout=10)

    def interrupted(_work: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vars(session)["_runtime"], "linger", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.emit_soon(said("second"))

    assert session.emit(said("third")).offset == 2


def test_an_interrupt_of_a_wait_for_what_is_in_flight_wedges_nothing(system: SessionSystem) -> None:
    session = system.claim(KEY)

    def interrupted(_work: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vars(session)["_runtime"], "submit", interrupted)
        future = session.emit_soon(said("first"))
        with pytest.raises(KeyboardInterrupt):
            future.result()

    assert 0 == future.result(timeout=10).offset
    assert 1 == session.emit(said("second")).offset


def test_a_forked_child_is_told_at_every_call_of_a_handle(system: SessionSystem) -> None:
    session = system.claim(KEY)
    session.emit_soon(said("parent")).result(timeout=10)
    changes = system.view(KEY, ModelHistory()).changes()
    changes.next(timeout=10)
    calls: list[Callable[[], object]] = [
        lambda: session.emit(said("child")),
        lambda: session.emit_soon(said("child")),
        lambda: session.emit_many([said("child")]),
        lambda: session.checkpoint("sha"),
        session.restore,
        session.next_turn,
        lambda: next(changes),
    ]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            for call in calls:
                try:
                    call()
                except BaseException as error:  # noqa: BLE001 - told to the parent
                    os.write(writer, f"{type(error).__name__} ".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    told = os.read(reader, 1000).decode().split()
    os.close(reader)

    assert ["ForkedError"] * len(calls) == told


@pytest.mark.parametrize("moment", [time.time() * 1000, True, -1, 10**16, "now", None])
def test_a_clock_that_a_log_could_not_show_again_is_refused_before_anything_is_written(url: str, moment: Any) -> None:
    with SessionSystem.open(url, clock=lambda: moment) as system:
        with pytest.raises(OutOfRangeError, match="clock"):
            system.claim(KEY)

        assert [] == list(system.activations())


def test_a_callback_that_ends_its_thread_or_blocks_silences_nobody(system: SessionSystem) -> None:
    sessions = [system.claim(ActivationKey("pik", str(number))) for number in range(3)]
    release, called = threading.Event(), threading.Event()

    def end() -> None:
        raise SystemExit

    for session, callback in zip(sessions, (end, lambda: release.wait(10), called.set), strict=True):
        session.on_fenced(callback)
        system.claim(session.key)

    assert called.wait(5)
    release.set()


def test_what_a_caller_does_to_a_reply_changes_no_view(system: SessionSystem) -> None:
    session = system.claim(KEY)
    view = system.view(KEY, ModelHistory())
    view.get()
    event = session.emit(ToolCall(id="e", parent_id=None, call_id="c", name="sh", args={"cmd": "ls"})).event
    assert isinstance(event, ToolCall)
    event.args["cmd"] = "rm"

    assert {"cmd": "ls"} == view.get()[0].calls[0].args
