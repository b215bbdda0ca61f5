"""The end of a process that has actors: in order, soon, and without a word."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from incarnate import ActivationKey, SessionSystem
from incarnate.actors.dispatchers import DispatcherName

BEGIN = """
import os, sys, threading, time
from incarnate import ActivationKey, SessionSystem, UserMessage
from incarnate.actors import dispatchers
from incarnate.actors.contained import ContainedActor

url, dispatcher = sys.argv[1:]

class Doing(ContainedActor):
    def handle(self, message):
        return message()

def said(number):
    return UserMessage(id=str(number), parent_id=None, text="x")

runtime = dispatchers.make_runtime(dispatcher)
"""


def run(script: str, url: str, dispatcher: DispatcherName) -> tuple[int, str, str, float]:
    """Exit code, output, errors and the seconds it took."""
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(script), url, dispatcher],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr, time.monotonic() - started


ENDS = {
    "the end of the script": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an interrupt": ("raise KeyboardInterrupt", -2),
    "an interrupt that is caught": (
        """
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            sys.exit(4)
        """,
        4,
    ),
}


@pytest.mark.parametrize("way", ENDS)
def test_what_was_told_before_the_end_is_done(dispatcher: DispatcherName, way: str) -> None:
    statement, code = ENDS[way]
    script = """
        ref = runtime.start(Doing)
        ref.tell(lambda: time.sleep(0.2))
        for number in range(100):
            ref.tell(lambda number=number: print(number, flush=True))
    """
    ended, output, errors, _ = run(textwrap.dedent(script) + textwrap.dedent(statement), "", dispatcher)

    assert code == ended
    assert [str(number) for number in range(100)] == output.split()
    assert (way == "an interrupt") == ("KeyboardInterrupt" in errors)
    assert "thread" not in errors


def test_events_that_were_on_their_way_are_in_the_log(dispatcher: DispatcherName, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    script = """
        system = SessionSystem.open(url, dispatcher=dispatcher)
        session = system.claim(ActivationKey("p", "e"))
        for number in range(300):
            session.emit_soon(said(number))
        sys.exit(5)
    """
    ended, _, errors, _ = run(script, url, dispatcher)

    assert (5, "") == (ended, errors)
    with SessionSystem.open(url) as system:
        assert len(list(system.replay(ActivationKey("p", "e")))) == 300


def test_events_that_nobody_waits_for_are_in_the_log_where_no_thread_can_be_begun_at_the_end(
    dispatcher: DispatcherName, tmp_path: Path
) -> None:
    """As Python 3.12 has it."""
    url = f"sqlite:///{tmp_path}/s.db"
    script = """
        import atexit

        def no_thread(*_):
            raise RuntimeError("can't create new thread at interpreter shutdown")

        system = SessionSystem.open(url, dispatcher=dispatcher)
        session = system.claim(ActivationKey("p", "e"))
        atexit.register(lambda: setattr(threading.Thread, "start", no_thread))
        for number in range(3):
            session.emit_soon(said(number))
    """
    ended, _, errors, _ = run(script, url, dispatcher)

    assert (0, "") == (ended, errors)
    with SessionSystem.open(url) as system:
        assert len(list(system.replay(ActivationKey("p", "e")))) == 3


def test_an_actor_that_never_ends_keeps_no_process_alive(dispatcher: DispatcherName) -> None:
    script = """
        dispatchers._EXIT_SECONDS = 0.3
        stuck = runtime.start(Doing)
        stuck.tell(lambda: threading.Event().wait())
        runtime.submit(lambda: threading.Event().wait())
        asked = runtime.start(Doing).ask(lambda: threading.Event().wait(), block=False)
        threading.Thread(target=lambda: stuck.ask(lambda: None), daemon=True).start()
        time.sleep(0.1)
    """
    ended, _, errors, seconds = run(script, "", dispatcher)

    assert (0, "") == (ended, errors)
    assert seconds < 30


def test_however_much_never_ends_the_end_waits_no_longer_than_it_says(dispatcher: DispatcherName) -> None:
    script = """
        import atexit
        dispatchers._EXIT_SECONDS = 2.0
        busy = threading.Semaphore(0)
        never_ends = lambda: (busy.release(), time.sleep(60))
        runtime.start(Doing).tell(never_ends)
        runtime.submit(never_ends)
        assert busy.acquire(timeout=10) and busy.acquire(timeout=10)
        began = time.monotonic()
        atexit._run_exitfuncs()
        print(time.monotonic() - began)
    """
    ended, output, errors, _ = run(script, "", dispatcher)

    assert (0, "") == (ended, errors)
    assert 1.9 < float(output) < 3.8


def test_callers_on_daemon_threads_make_no_noise_at_the_end(dispatcher: DispatcherName) -> None:
    script = """
        refs = [runtime.start(Doing) for _ in range(3)]

        def ask(number):
            while True:
                try:
                    refs[number % 3].ask(lambda: number)
                except BaseException:  # the actor was stopped, as it must be
                    return

        for number in range(6):
            threading.Thread(target=ask, args=(number,), daemon=True).start()
        time.sleep(0.2)
    """

    assert (0, "", "") == run(script, "", dispatcher)[:3]


def test_a_forked_child_ends_at_once(dispatcher: DispatcherName) -> None:
    """It has none of the threads that its parent's actors run on, so it must not wait for them."""
    script = """
        ref = runtime.start(Doing)
        ref.ask(lambda: None, timeout=10)
        ref.tell(lambda: time.sleep(0.5))
        runtime.submit(lambda: time.sleep(0.5))
        child = os.fork()
        if child == 0:
            started = time.monotonic()
            import atexit
            atexit._run_exitfuncs()
            os._exit(int(time.monotonic() - started > 3))  # it would wait for 5
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

    assert (0, "", "") == run(script, "", dispatcher)[:3]
