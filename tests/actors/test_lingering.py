"""What `emit_soon` sends: whoever waits sends it himself, and what nobody waits for is sent a moment later."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import Any

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    ClosedError,
    FaultyStore,
    ReentrantCallError,
    SessionSystem,
    open_store,
)
from incarnate.actors.lingering import Lingerer, Sent
from tests.support.waiting import soon

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def elsewhere(work: Callable[[], Any]) -> Any:
    """What comes of `work` on a thread that is not the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=20)


class Work:
    """Deferred work that counts."""

    def __init__(self, *errors: Exception) -> None:
        """`hurry` fails while `errors` are left."""
        self.begun = 0
        self.idle = True
        self.told: list[str] = []
        self.errors = list(errors)

    def run(self) -> None:
        self.begun += 1
        self.idle = False

    def hurry(self) -> None:
        self.told.append("hurry")
        if self.errors:
            raise self.errors.pop()
        self.run()

    def awaited(self, future: Future[Any], *, forever: bool) -> None:
        self.told.append("awaited forever" if forever else "awaited")
        future.set_result("done")

    def called_back(self) -> None:
        self.told.append("called back")

    def call(self, callback: Callable[[Future[Any]], object], future: Future[Any]) -> None:
        callback(future)


def test_who_waits_on_a_thread_of_his_own_sends_by_himself(
    system: SessionSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = system.claim(KEY)
    runtime = vars(session)["_runtime"]
    monkeypatch.setattr(runtime, "submit", lambda _work: pytest.fail("no other thread is wanted"))
    monkeypatch.setattr(runtime, "linger", lambda _work: None)

    def emit() -> list[int]:
        futures = [session.emit_soon(said(str(number))) for number in range(40)]
        return [future.result().offset for future in futures]

    assert list(range(40)) == elsewhere(emit)


def test_a_wait_with_a_limit_is_not_held_up_by_a_commit() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    with SessionSystem(store) as system:
        session = system.claim(KEY)
        held = store.delay(go)
        future = session.emit_soon(said("first"))

        with pytest.raises(TimeoutError):
            elsewhere(lambda: future.result(timeout=0.01))
        assert held.reached.wait(10)
        go.set()
        assert 0 == elsewhere(lambda: future.result(timeout=10)).offset


def test_what_nobody_waits_for_is_sent(system: SessionSystem) -> None:
    session = system.claim(KEY)
    futures = [session.emit_soon(said(str(number))) for number in range(3)]

    assert soon(lambda: all(future.done() for future in futures))


def test_what_is_waited_for_together_is_sent(system: SessionSystem) -> None:
    session = system.claim(KEY)
    futures = [session.emit_soon(said(str(number))) for number in range(8)]

    assert set(futures[:4]) == wait(futures[:4], timeout=10).done
    assert set(futures[4:]) == set(as_completed(futures[4:], timeout=10))


def test_a_close_sends_what_nobody_waits_for_and_ends_its_threads() -> None:
    before = set(threading.enumerate())
    with SessionSystem.open("memory://") as system:
        session = system.claim(KEY)
        futures = [session.emit_soon(said(str(number))) for number in range(3)]
        begun = set(threading.enumerate()) - before

    assert [0, 1, 2] == [future.result(timeout=0).offset for future in futures]
    assert begun
    assert not [one for one in begun if one.is_alive()]


def test_threads_that_share_a_session_wait_for_each_other(system: SessionSystem) -> None:
    session = system.claim(KEY)

    def emit(number: int) -> list[int]:
        return [session.emit_soon(said(f"{number}-{one}")).result().offset for one in range(50)]

    with ThreadPoolExecutor(8) as pool:
        offsets = [offset for own in pool.map(emit, range(8)) for offset in own]

    assert list(range(400)) == sorted(offsets)


def test_a_callback_is_never_called_by_who_waits() -> None:
    """He might hold a lock that it takes."""
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    called: list[str] = []
    lock = threading.Lock()

    def note(_future: object) -> None:
        with lock:
            called.append(threading.current_thread().name)

    def emit() -> None:
        first, last = session.emit_soon(said("first")), session.emit_soon(said("last"))
        last.add_done_callback(note)
        go.set()
        with lock:
            first.result()
        assert soon(lambda: len(called) == 1)

    with SessionSystem(store) as system:
        session = system.claim(KEY)
        store.delay(go)
        elsewhere(emit)

    assert called[0].startswith("incarnate-submitted")


def test_a_callback_that_comes_while_somebody_sends_because_he_waits_is_not_called_by_him() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    called: list[str] = []
    lock = threading.Lock()

    def note(future: Future[Any]) -> None:
        with lock:
            called.append(f"{future.result().offset} {threading.current_thread().name.startswith('incarnate')}")

    def wait_with_the_lock() -> None:
        with lock:
            futures[0].result()

    with SessionSystem(store) as system:
        session = system.claim(KEY)
        vars(session)["_runtime"].linger = lambda _work: None
        futures = [session.emit_soon(said(str(number))) for number in range(4)]
        held = store.delay(go)
        waiter = threading.Thread(target=wait_with_the_lock, daemon=True)
        waiter.start()
        assert held.reached.wait(10)
        for future in futures[1:]:
            future.add_done_callback(note)
        go.set()
        waiter.join(10)

        assert not waiter.is_alive()
        session.settle()
        assert ["1 True", "2 True", "3 True"] == called


def test_a_callback_that_waits_for_what_comes_after_it_is_refused() -> None:
    store, go = FaultyStore(open_store("memory://")), threading.Event()
    raised: Future[BaseException] = Future()

    def waits(_future: object) -> None:
        try:
            session.emit_soon(said("later")).result()
        except ReentrantCallError as error:
            raised.set_result(error)

    with SessionSystem(store) as system:
        session = system.claim(KEY)
        store.delay(go)
        session.emit_soon(said("first")).add_done_callback(waits)
        go.set()

        assert isinstance(raised.result(timeout=10), ReentrantCallError)
        session.settle()
        assert 2 == session.next_offset


def test_a_future_tells_its_work_who_wants_it() -> None:
    work = Work()
    waited, limited, called = Sent(work), Sent(work), Sent(work)
    called.add_done_callback(lambda _: None)

    assert ("done", "done") == (waited.result(), limited.result(timeout=1))
    assert ["called back", "awaited forever", "awaited"] == work.told
    assert (False, True) == (called.cancel(), called.running())


@pytest.fixture
def lingerer() -> Iterator[Lingerer]:
    made = Lingerer()
    yield made
    made.close()


def test_work_that_nobody_begins_is_hurried_once(lingerer: Lingerer) -> None:
    work = Work()
    lingerer.add(work)

    assert soon(lambda: work.begun == 1)
    lingerer.close()
    assert ["hurry"] == work.told


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_where_no_thread_is_to_be_had_it_is_done_by_who_looks(lingerer: Lingerer, error: Exception) -> None:
    work, other = Work(error), Work()
    lingerer.add(work)
    lingerer.add(other)

    assert soon(lambda: (work.begun, other.begun) == (1, 1))


def test_whatever_work_raises_the_others_are_looked_after(lingerer: Lingerer) -> None:
    works = [Work(RuntimeError("can't start new thread")) for _ in range(3)]

    def ends() -> None:
        raise SystemExit

    works[0].run = ends  # type: ignore[method-assign]
    for work in works:
        lingerer.add(work)

    assert soon(lambda: [work.begun for work in works] == [0, 1, 1])


def test_work_is_looked_after_again_once_it_was_let_go(lingerer: Lingerer) -> None:
    work = Work()
    for count in (1, 2, 3):
        work.idle = True
        lingerer.add(work)
        assert soon(lambda count=count: work.begun == count)  # type: ignore[misc]


def test_an_interrupt_as_it_is_woken_keeps_nobody_waiting(lingerer: Lingerer) -> None:
    first, second = Work(), Work()
    lingerer.add(first)
    crew: Any = vars(lingerer)["_crew"]
    assert soon(lambda: first.begun == 1 and bool(vars(crew)["_idle"]))
    crew._idle.pop()  # noqa: SLF001 - what is left of a `submit` that was torn: one is to be given work, and is not
    lingerer.add(second)

    assert soon(lambda: second.begun == 1, 4)  # an idle thread would look by itself in 5


def test_what_is_added_as_it_is_closed_is_begun_too(lingerer: Lingerer) -> None:
    work = Work()

    def meanwhile() -> None:
        """Nothing is to do; then somebody adds some, sees that it is looked after, and the close begins."""
        if not work.told:
            work.told.append("closed")
            lingerer.add(work)
            threading.Thread(target=lingerer.close).start()
            soon(lambda: vars(lingerer)["_closed"])
        else:
            work.run()

    work.hurry = meanwhile  # type: ignore[method-assign]
    lingerer.add(work)

    assert soon(lambda: work.begun == 1)


def test_closed_it_has_all_begun_and_takes_no_more(lingerer: Lingerer) -> None:
    works = [Work() for _ in range(5)]
    for work in works:
        lingerer.add(work)
    lingerer.close()

    assert [1] * 5 == [work.begun for work in works]
    with pytest.raises(ClosedError):
        lingerer.add(Work())
