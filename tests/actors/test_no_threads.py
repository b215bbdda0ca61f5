"""Where the operating system gives no further thread, whoever waits is answered by those there are."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Never

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    AsyncSessionSystem,
    ClosedError,
    FaultyStore,
    ModelHistory,
    SessionSystem,
    open_store,
)
from tests.support.loops import on_a_loop
from tests.support.waiting import soon

KEY = ActivationKey("pik-1", "implement-task")


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def no_thread(_self: threading.Thread) -> Never:
    raise RuntimeError("can't start new thread")


@contextmanager
def no_threads() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        yield


@on_a_loop
async def test_calls_of_a_loop_are_answered_by_the_threads_there_are() -> None:
    async with AsyncSessionSystem.open("memory://") as system:
        keys = [ActivationKey("pik", str(number)) for number in range(20)]
        with no_threads():
            sessions = await asyncio.wait_for(asyncio.gather(*(system.claim(key) for key in keys)), 20)

    assert [1] * 20 == [session.incarnation for session in sessions]


@on_a_loop
async def test_a_system_of_a_loop_is_closed_all_the_same() -> None:
    store = FaultyStore(open_store("memory://"))
    async with AsyncSessionSystem.over(lambda: SessionSystem(store)) as system:
        with no_threads():
            await asyncio.wait_for(system.close(), 20)

    with pytest.raises(ClosedError):
        store.head(KEY)


def test_who_was_fenced_is_called_as_soon_as_there_is_a_thread(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()
    with SessionSystem.open(f"sqlite:///{tmp_path}/s.db") as system:
        system.claim(KEY).on_fenced(called.set)
        with no_threads():
            system.claim(KEY)
            assert soon(lambda: "can't start new thread" in caplog.text)
            assert not called.is_set()

        assert called.wait(10)


def test_a_view_is_told_again_once_there_is_a_thread_to_tell_it() -> None:
    with SessionSystem.open("memory://") as system:
        session, view = system.claim(KEY), system.view(KEY, ModelHistory())
        view.get()
        with no_threads():
            for number in range(100):  # enough to wake it
                session.emit(said(str(number)))
        changes = view.changes()
        next(changes)
        for text in ("later", "later still"):
            session.emit(said(text))
            assert soon(lambda: changes.next(0) is not None)
