"""I7: after any appends, rewinds, take-overs and restarts, every view is the fold of a fresh replay."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from incarnate import (
    ActivationKey,
    AppendMany,
    ClientFrames,
    ModelHistory,
    Opaque,
    ReplayAnalysis,
    Session,
    SessionEvent,
    SessionSystem,
    StudioTranscript,
    UsageTotals,
    apply_change,
)
from incarnate.actors.changes import ChangeStream
from incarnate.actors.dispatchers import DispatcherName
from tests.support.projections import EVENTS

KEY = ActivationKey("pik-1", "implement-task")
PROJECTIONS = (
    StudioTranscript(),
    ModelHistory(),
    ModelHistory("reference"),
    ClientFrames(),
    ReplayAnalysis(),
    UsageTotals(),
)


class Views(RuleBasedStateMachine):
    """Over the calling dispatcher."""

    dispatcher: DispatcherName = "calling"

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name)}/sessions.db?durability=process"
        self.session: Session
        self.open()

    def open(self) -> None:
        self.system = SessionSystem.open(self.url, dispatcher=self.dispatcher)
        self.session = self.system.claim(KEY)
        self.streams: list[tuple[Any, ChangeStream, list[Any]]] = []

    @rule(events=st.lists(EVENTS, min_size=1, max_size=6))
    def append(self, events: list[SessionEvent | Opaque]) -> None:
        self.session.emit_many(events)

    @rule(share=st.floats(0, 1), event=EVENTS)
    def rewind(self, share: float, event: SessionEvent | Opaque) -> None:
        offset = round(share * self.session.next_offset)
        self.system.activation(KEY).ask(AppendMany(self.session.incarnation, offset, (event,)))
        self.session = self.system.lease(KEY, self.session.incarnation)

    @rule()
    def take_over(self) -> None:
        self.session = self.system.claim(KEY)

    @rule(event=EVENTS)
    def write_through_another_system(self, event: SessionEvent | Opaque) -> None:
        with SessionSystem.open(self.url) as other:
            other.lease(KEY, self.session.incarnation).emit(event)
        self.session = self.system.lease(KEY, self.session.incarnation)

    @rule(projection=st.sampled_from(PROJECTIONS))
    def follow(self, projection: Any) -> None:
        self.streams.append((projection, self.system.view(KEY, projection).changes(), []))

    @rule()
    def restart(self) -> None:
        self.system.close()
        self.open()

    @invariant()
    def every_view_is_the_fold_of_a_fresh_replay(self) -> None:
        for projection in PROJECTIONS:
            fresh: Any = projection.fresh()
            for appended in self.system.replay(KEY):
                fresh.apply(appended)

            assert fresh.value == self.system.view(KEY, projection).get()

    @invariant()
    def the_changes_applied_to_a_copy_give_the_view(self) -> None:
        for projection, stream, copy in self.streams:
            value = self.system.view(KEY, projection).get()  # the projector has told its followers by then
            while (change := stream.next(timeout=0)) is not None:
                apply_change(copy, change)

            assert (list(value) if isinstance(value, Sequence) else [value]) == copy

    def teardown(self) -> None:
        self.system.close()
        self.folder.cleanup()


class ThreadViews(Views):
    """Over the thread dispatcher."""

    dispatcher = "thread"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("views", [Views, ThreadViews], ids=["calling", "thread"])
def test_i7_every_view_equals_the_fold_of_a_fresh_replay(views: type[Views]) -> None:
    machine = settings(max_examples=25, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(views, settings=machine)
