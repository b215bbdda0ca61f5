"""A system with many activations: only some live at once, and what is not used costs nothing."""

import contextlib
import gc
import logging
import threading
import weakref
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AskTimeoutError,
    BackingOffError,
    Change,
    Claim,
    ClosedError,
    FaultyStore,
    GetHead,
    MailboxFullError,
    ModelHistory,
    RefusedError,
    Session,
    SessionSystem,
    StaleIncarnationError,
    StoreBusyError,
    Subscribe,
    ToolCall,
    Unsubscribe,
    UserMessage,
    ViewFailedError,
    open_store,
)
from incarnate.actors.dispatchers import DispatcherName
from incarnate.domain.projections.base import ListProjection, Reducer
from tests.support.counters import often_switched, together
from tests.support.waiting import soon


def key(number: int) -> ActivationKey:
    return ActivationKey("fleet", str(number))


def said(text: str) -> UserMessage:
    return UserMessage(id=text, parent_id=None, text=text)


def texts(messages: Any) -> list[str]:
    return [message.content[0].content for message in messages]


class Heard:
    """A subscriber that keeps what it is told."""

    def __init__(self) -> None:
        self.notices: list[Any] = []

    def tell(self, message: Any) -> None:
        self.notices.append(message)


@pytest.fixture
def few(url: str, dispatcher: DispatcherName) -> Generator[SessionSystem]:
    """A system of at most three live activations."""
    with SessionSystem.open(url, dispatcher=dispatcher, max_live=3) as opened:
        yield opened


def live(system: SessionSystem) -> int:
    return system.metrics().live_activations


def test_what_an_activation_is_told_while_it_is_put_to_rest_is_handled_all_the_same(dispatcher: DispatcherName) -> None:
    store, go_on = FaultyStore(open_store("memory://")), threading.Event()
    with SessionSystem(store, dispatcher=dispatcher, max_live=1) as system:
        held = store.delay(go_on, key=key(0))
        ref = system.activation(key(0))
        ref.tell(Claim())
        assert held.reached.wait(10)
        system.claim(key(1))  # puts the other one to rest, once it has handled what it was told before
        ref.tell(Claim())
        go_on.set()

        assert soon(lambda: store.head(key(0)).fence == 2)


def test_no_more_than_max_live_activations_live_and_all_of_them_work(few: SessionSystem) -> None:
    sessions = [few.claim(key(number)) for number in range(10)]
    for text in ("one", "two"):
        for session in sessions:
            session.emit(said(text))

    assert live(few) == 3
    assert few.metrics().started == 30
    assert few.metrics().passivated == 27
    assert [2] * 10 == [info.head.next_offset for info in few.activations()]


def test_the_least_recently_used_is_put_to_rest(few: SessionSystem) -> None:
    refs = [few.activation(key(number)) for number in range(4)]
    for ref in (refs[0], refs[1], refs[2], refs[0], refs[3]):
        ref.ask(GetHead())

    assert [refs[2], refs[0], refs[3]] == vars(few)["_directory"].live()


def test_what_was_used_once_and_let_go_of_is_forgotten(few: SessionSystem) -> None:
    ref = few.activation(key(0))
    ref.ask(GetHead())
    gone = weakref.ref(ref)
    del ref
    for number in range(1, 5):
        few.activation(key(number)).ask(GetHead())

    def is_forgotten() -> bool:
        gc.collect()
        return gone() is None

    assert soon(is_forgotten)  # a thread that is put to rest lets go of it in its own time


def test_a_subscriber_hears_of_an_activation_that_was_put_to_rest_in_between(few: SessionSystem) -> None:
    heard = Heard()
    few.activation(key(0)).ask(Subscribe(heard))
    for number in range(1, 6):
        few.claim(key(number))
    gc.collect()
    few.claim(key(0)).emit(said("hello"))

    assert len(heard.notices) == 2
    few.activation(key(0)).ask(Unsubscribe(heard))


def test_a_take_over_is_told_although_the_activation_was_put_to_rest(few: SessionSystem) -> None:
    fenced = threading.Event()
    few.claim(key(0)).on_fenced(fenced.set)
    for number in range(1, 6):
        few.claim(key(number))
    gc.collect()
    few.claim(key(0))

    assert fenced.wait(10)


def test_a_view_of_an_activation_at_rest_is_let_go_of_and_built_again(few: SessionSystem) -> None:
    few.claim(key(0)).emit(said("hello"))
    view = few.view(key(0), ModelHistory())
    before = view.get()
    for number in range(1, 6):
        few.claim(key(number))
    few.activation(key(5)).ask(GetHead())

    assert soon(lambda: not view.is_live)
    assert before == view.get()
    assert few.metrics().live_views == 1
    assert view is few.view(key(0), ModelHistory())


def test_a_view_is_kept_where_that_was_asked_for(url: str) -> None:
    with SessionSystem.open(url, max_live=3, keep_views=True) as system:
        system.claim(key(0)).emit(said("hello"))
        system.view(key(0), ModelHistory()).get()
        for number in range(1, 6):
            system.claim(key(number))
        gc.collect()

        assert system.metrics().live_views == 1


def test_a_followed_view_stays_level_although_its_activation_was_put_to_rest(few: SessionSystem) -> None:
    session = few.claim(key(0))
    with few.view(key(0), ModelHistory()).changes() as changes:
        next(changes)
        for number in range(1, 6):
            few.claim(key(number))
        gc.collect()
        session.emit(said("hello"))

        change = changes.next(timeout=10)
        assert change is not None
        assert ["hello"] == texts(change.items)


def test_views_that_nobody_holds_cost_nothing_once_their_activation_is_at_rest(few: SessionSystem) -> None:
    for number in range(20):
        few.claim(key(number)).emit(said("hello"))
        few.view(key(number), ModelHistory()).get()
    few.activation(key(19)).ask(GetHead())
    gc.collect()

    assert soon(lambda: few.metrics().live_views <= 3)


def test_metrics_count_what_was_written_and_refused(system: SessionSystem) -> None:
    old = system.claim(key(0))
    old.emit_many([said("one"), said("two")])
    old.checkpoint("sha")
    old.emit(said("three"))
    old.restore()
    old.emit(said("again"))
    system.claim(key(0))
    with pytest.raises(StaleIncarnationError):
        old.emit(said("late"))

    metrics = system.metrics()
    assert (metrics.events, metrics.rewinds, metrics.refused, metrics.fenced) == (4, 1, 1, 1)
    assert metrics.commits == 6  # two claims, three appends and a checkpoint
    assert metrics.write_seconds.count == 7
    assert 0 < metrics.write_seconds.quantile(0.5) <= metrics.write_seconds.quantile(1)
    assert metrics.queued == 0


def test_what_threads_counted_stays_when_they_are_gone(system: SessionSystem) -> None:
    sessions = [system.claim(key(number)) for number in range(100)]
    for session in sessions:
        thread = threading.Thread(target=session.emit, args=(said("hello"),))
        thread.start()
        thread.join()

    assert system.metrics().events == 100


def test_a_busy_store_is_counted_and_is_no_failure_of_the_actor() -> None:
    store = FaultyStore(open_store("memory://"))
    with SessionSystem(store) as system:
        session = system.claim(key(0))
        store.fail(5)
        for _ in range(5):
            with pytest.raises(StoreBusyError):
                session.emit(said("hello"))

        assert system.metrics().busy == 5
        assert {} == system.metrics().failures
        assert session.emit(said("hello")).offset == 0


def test_what_fails_again_and_again_is_refused_for_a_while_and_then_comes_back(
    dispatcher: DispatcherName, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore(open_store("memory://"))
    with caplog.at_level(logging.ERROR, "incarnate"), SessionSystem(store, dispatcher=dispatcher) as system:
        ref, other = system.activation(key(0)), system.activation(key(1))
        fault = store.fail(None, kind="head", key=key(0), error=MemoryError("on purpose"))
        kinds = [type(failure(ref)).__name__ for _ in range(4)]

        assert ["OutcomeUnknownError"] * 3 + ["BackingOffError"] == kinds
        assert other.ask(GetHead()).next_offset == 0
        assert system.metrics().backing_off == 1
        assert {"ActivationRef": 3} == system.metrics().failures
        assert ["actor_failed"] * 3 == [vars(record)["event"] for record in caplog.records]
        fault.cancel()
        assert until_it_answers(ref).next_offset == 0
        assert system.metrics().backing_off == 0


def failure(ref: Any) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is, is what is asked
        ref.ask(GetHead())
    return caught.value


def until_it_answers(ref: Any) -> Any:
    pause = threading.Event()
    while True:
        try:
            return ref.ask(GetHead())
        except BackingOffError as error:
            pause.wait(error.retry_after)


class Refusing(Reducer):
    """A view that fails at every event."""

    @property
    def value(self) -> int:
        return 0

    def apply(self, appended: Any) -> None:  # noqa: ARG002 - the projection's signature
        raise RuntimeError("on purpose")

    def rewind(self, offset: int) -> None:
        raise NotImplementedError


def test_a_projection_that_always_fails_backs_off_and_hinders_nobody(system: SessionSystem) -> None:
    session = system.claim(key(0))
    session.emit(said("hello"))
    view = system.view(key(0), Refusing())
    for _ in range(3):
        with pytest.raises(ViewFailedError):
            view.get()
    with pytest.raises(BackingOffError, match=r"in a row, with RuntimeError"):
        view.get()

    assert session.emit(said("more")).offset == 1
    assert ["hello", "more"] == texts(system.view(key(0), ModelHistory()).get())


def test_an_ask_without_an_answer_in_time_names_actor_message_and_queue(dispatcher: DispatcherName) -> None:
    store = FaultyStore(open_store("memory://"))
    go_on = threading.Event()
    with SessionSystem(store, dispatcher=dispatcher, ask_timeout=0.05) as system:
        ref = system.activation(key(0))
        held = store.delay(go_on, kind="head")
        first = ref.ask(GetHead(), block=False)
        assert held.reached.wait(10)
        with pytest.raises(AskTimeoutError, match=r"fleet/0.* did not answer GetHead in 0.05 seconds; 1 message waits"):
            ref.ask(GetHead())
        go_on.set()

        assert first.get(timeout=10).next_offset == 0


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_limit_of_time_that_no_call_can_keep_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="ask_timeout must be above 0"):
        SessionSystem.open("memory://", ask_timeout=seconds)


def test_max_live_must_leave_room_for_one() -> None:
    with pytest.raises(ValueError, match="max_live"):
        SessionSystem.open("memory://", max_live=0)


def test_metrics_tell_how_many_writes_shared_a_commit(tmp_path: Path) -> None:
    with SessionSystem.open(f"sqlite:///{tmp_path}/sessions.db") as system:
        sessions = [system.claim(key(number)) for number in range(8)]
        gate = threading.Barrier(len(sessions))

        def write(session: Session) -> None:
            gate.wait()
            for number in range(20):
                session.emit(said(str(number)))

        threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sizes = system.metrics().group_sizes

        assert system.metrics().commits == 8 + 160
        assert sizes.count < 8 + 160, "some of them shared one"
        assert sizes.quantile(1) >= 2


def test_a_full_mailbox_refuses_or_is_waited_for_and_is_counted(dispatcher: DispatcherName) -> None:
    store = FaultyStore(open_store("memory://"))
    go_on = threading.Event()
    with SessionSystem(store, dispatcher=dispatcher, max_mailbox=2) as system:
        ref = system.activation(key(0))
        held = store.delay(go_on, kind="head")
        answers = [ref.ask(GetHead(), block=False)]
        assert held.reached.wait(10)
        answers += [ref.ask(GetHead(), block=False) for _ in range(2)]
        for send in (ref.ask, ref.tell):
            with pytest.raises(MailboxFullError):
                send(GetHead())
        waiting = threading.Thread(target=lambda: answers.append(ref.ask(GetHead(), block=False, wait=10)))
        waiting.start()
        go_on.set()
        waiting.join(10)

        assert system.metrics().turned_away == 2
        assert [0] * 4 == [answer.get(timeout=10).next_offset for answer in answers]


def test_with_the_least_room_that_can_be_had_whoever_asks_one_thing_at_a_time_is_not_refused(
    dispatcher: DispatcherName,
) -> None:
    with SessionSystem.open("memory://", dispatcher=dispatcher, max_live=1, max_mailbox=1) as system:
        sessions = [system.claim(key(number)) for number in range(3)]
        views = [system.view(session.key, ModelHistory()) for session in sessions]
        with often_switched():
            for _ in range(50):
                for session, view in zip(sessions, views, strict=True):
                    session.emit(said("text"))
                    view.get()

        assert [50] * 3 == [len(view.get()) for view in views]
        assert 0 == system.metrics().turned_away


def test_whoever_asks_for_a_view_waits_behind_what_the_system_told_its_projector(dispatcher: DispatcherName) -> None:
    store, go_on = FaultyStore(open_store("memory://")), threading.Event()
    with SessionSystem(store, dispatcher=dispatcher, max_mailbox=1) as system, ThreadPoolExecutor(2) as pool:
        session = system.claim(key(0))
        session.emit(said("text"))
        view = system.view(session.key, ModelHistory())
        held = store.delay(go_on, kind="snapshot")
        asked = [pool.submit(view.get)]
        assert held.reached.wait(10)
        view.catch_up(store=False)
        asked.append(pool.submit(view.get))
        try:
            assert not soon(asked[1].done, 0.1)
        finally:
            go_on.set()

        assert [1, 1] == [len(one.result(timeout=10)) for one in asked]


def test_metrics_are_told_while_views_come_and_go(url: str) -> None:
    with SessionSystem.open(url) as system:
        threads = [threading.Thread(target=look_at_many, args=(system, name)) for name in "ab"]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            system.metrics()
        for thread in threads:
            thread.join()

        assert system.metrics().live_views == 200


def look_at_many(system: SessionSystem, name: str) -> None:
    for number in range(100):
        system.view(ActivationKey(name, str(number)), ModelHistory()).get()


def test_many_threads_share_one_place_to_live(url: str, dispatcher: DispatcherName) -> None:
    with SessionSystem.open(url, dispatcher=dispatcher, max_live=1) as system:

        def work(number: int) -> None:
            session = system.claim(key(number))
            for text in ("one", "two", "three"):
                session.emit(said(text))
                assert text in texts(system.view(key(number), ModelHistory()).get())

        assert [] == together(8, work)
        assert [3] * 8 == [info.head.next_offset for info in system.activations()]


class Stumbling(ListProjection[str]):
    """A view that fails at the first event that it ever sees."""

    stumbled = False

    def _reduce(self, appended: Any) -> Change:
        if not Stumbling.stumbled:
            Stumbling.stumbled = True
            raise RuntimeError("on purpose")
        return self._added(appended.event.id)


def test_who_follows_a_view_that_failed_hears_of_it_without_a_further_event(system: SessionSystem) -> None:
    Stumbling.stumbled = False
    session = system.claim(key(0))
    with system.view(key(0), Stumbling()).changes() as changes:
        next(changes)
        session.emit(said("hello"))
        heard = changes.next(timeout=10)

        assert heard is not None
        assert ("hello",) == heard.items


class Trap(dict[str, int]):
    """An argument that raises when it is looked at."""

    def items(self) -> Any:
        raise RuntimeError("on purpose")

    def __iter__(self) -> Any:
        raise RuntimeError("on purpose")


def test_what_a_sender_s_value_raises_is_a_refusal_and_no_failure_of_the_actor(system: SessionSystem) -> None:
    session = system.claim(key(0))
    for _ in range(5):
        with pytest.raises(RefusedError):
            session.emit(ToolCall(id="c", parent_id=None, call_id="c", name="n", args=Trap(a=1)))

    assert {} == system.metrics().failures
    assert session.emit(said("hello")).offset == 0


def test_a_system_closes_whole_while_views_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FaultyStore(open_store("memory://"))
    system = SessionSystem(store)
    views: Any = vars(system)["_views"]
    kept = [system.view(key(number), ModelHistory()) for number in range(2)]
    late: list[threading.Thread] = []
    values = type(views).values

    def look() -> None:
        with contextlib.suppress(ClosedError):
            kept.append(system.view(key(9), ModelHistory()))

    def slowly(known: Any) -> Any:
        for view in values(known):
            if not late:  # another thread makes a view in the middle of the iteration, if it can
                late.append(threading.Thread(target=look))
                late[0].start()
                late[0].join(0.2)
            yield view

    monkeypatch.setattr(type(views), "values", slowly)
    system.close()
    late[0].join(10)

    with pytest.raises(ClosedError):
        system.claim(key(0))
    assert not late[0].is_alive()


def test_an_event_that_is_far_too_big_is_refused_in_its_place_among_those_in_flight(system: SessionSystem) -> None:
    session = system.claim(key(0))
    before = session.emit_soon(said("before"))
    huge = session.emit_soon(UserMessage(id="huge", parent_id=None, text="x" * (65 * 1024 * 1024)))
    after = session.emit_soon(said("after"))

    assert before.result(timeout=30).offset == 0
    assert [RefusedError] * 2 == [
        RefusedError for future in (huge, after) if isinstance(future.exception(30), RefusedError)
    ]
    with pytest.raises(RefusedError):
        session.emit(said("told"))
    assert session.emit(said("next")).offset == 1
