"""The process edge: trees of real processes, and their ends."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from incarnate.domain.errors import HarnessNotStartedError
from incarnate.supervision import keeper, process_tree, processes
from incarnate.supervision.edge import RUN_ID_VARIABLE, Deadlines, Identity
from incarnate.supervision.process_table import KernelTable
from incarnate.supervision.processes import HarnessProcess, ProcessEdge
from tests.support.started import AT_ONCE, Started, alive
from tests.support.supervised import kill, until

FORKS_ON = "import os\nos.setsid()\nwhile True:\n    if os.fork():\n        os._exit(0)\n"


def read_all(running: HarnessProcess) -> bytes:
    """What it writes until its own process has ended."""
    parts: list[bytes] = []
    while (chunk := running.read(5)) or running.poll() is None:
        parts.append(chunk or b"")
    return b"".join(parts)


def kill_keepers(running: HarnessProcess) -> list[int]:
    """Both at once: stopped before, so that neither hears of the other's end and begins to end the tree."""
    outer = running.identity.pid
    assert outer is not None
    keepers = [outer, process_tree.descendants(outer)[0]]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in keepers:
            os.kill(pid, number)
    return keepers


def await_tool(running: HarnessProcess) -> None:
    """Until the tool has started a command of its own."""
    until(lambda: len(running.descendants()) > 1, "a command of the tool")


def test_output_and_exit_status_are_those_of_the_harness(start: Started) -> None:
    running = start.shell("printf 'one\\0two\\n'; exit 3")

    assert b"one\0two\n" == read_all(running)
    assert 3 == running.poll()
    assert b"" == running.read(5)


def test_it_has_the_environment_that_was_given_and_the_run_id(start: Started) -> None:
    running = start.shell(f'echo "$GIVEN ${RUN_ID_VARIABLE}"; env | grep -c ^LC_CTYPE', GIVEN="näher")

    told, count = read_all(running).splitlines()
    assert f"näher {running.identity.run_id}".encode() == told
    assert str(int("LC_CTYPE" in os.environ)).encode() == count


def test_it_has_no_signal_ignored_or_blocked_whatever_its_supervisor_has(start: Started) -> None:
    children = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT, signal.SIGCHLD])
    try:
        running = start.shell("grep -E 'SigBlk|SigIgn' /proc/self/status; exit 3")
        told = [int(line.split()[1], 16) & 0x7FFFFFFF for line in read_all(running).splitlines()]
        ended = running.end(AT_ONCE)
    finally:
        signal.signal(signal.SIGCHLD, children)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    assert ([0, 0], 3, ()) == (told, running.poll(), ended.unkillable)


def test_it_ignores_no_signal_and_reads_nothing(start: Started) -> None:
    running = start.shell("grep SigIgn /proc/self/status; wc -c")
    ignored, standard_input = read_all(running).splitlines()
    of_glibc = 0b11 << 31  # signals 32 and 33, which no program can set; some ancestor may have them ignored

    assert 0 == int(ignored.split()[1], 16) & ~of_glibc
    assert b"0" == standard_input


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(HarnessNotStartedError, match="No such file") as caught:
        ProcessEdge().start(["/nowhere/harness"], env={}, cwd=None, run_id="x")

    assert "/nowhere/harness" == caught.value.program


def test_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(HarnessNotStartedError, match="its working directory: No such file"):
        ProcessEdge().start(["true"], env=os.environ, cwd="/nowhere", run_id="x")


def test_a_tool_in_its_own_session_is_seen_after_the_harness_and_ended_with_it(start: Started) -> None:
    running = start.shell("env -i setsid sleep 100 >/dev/null & sleep 0.1")
    read_all(running)

    assert 1 == len(running.descendants())
    ended = running.end(Deadlines())
    assert (1, ()) == (ended.orphans, ended.unkillable)
    assert [] == alive(running)


def test_output_that_a_tool_holds_open_is_not_waited_for_and_then_read_to_its_end(
    start: Started, tmp_path: Path
) -> None:
    tool = "(trap 'echo late' TERM; : > ready; sleep 100 & wait)"
    running = start.shell(f"cd {tmp_path}; {tool} & until [ -e ready ]; do sleep 0.01; done; echo early")

    assert b"early\n" == read_all(running)
    assert running.read(60) is None
    running.end(Deadlines())
    assert b"late\n" == running.read(5)
    assert b"" == running.read(5)


def test_what_ignores_sigterm_is_killed_when_its_time_is_over(start: Started) -> None:
    running = start.shell("trap '' TERM; echo up; sleep 100; sleep 100")
    running.read(5)
    began = time.monotonic()

    running.end(Deadlines(terminate=0.3))

    assert -signal.SIGKILL == running.poll()
    assert 0.3 <= time.monotonic() - began


def test_an_ending_begins_with_sigint_where_it_has_time(start: Started) -> None:
    running = start.shell("trap 'echo int; exit 5' INT; echo up; while :; do sleep 0.01; done")
    running.read(5)

    running.end(Deadlines(interrupt=20, terminate=20))

    assert b"int\n" == running.read(5)
    assert 5 == running.poll()


def test_what_is_stopped_is_ended(start: Started) -> None:
    running = start.shell("kill -STOP $$")

    began = time.monotonic()
    running.end(Deadlines(terminate=20))

    assert time.monotonic() - began < 10
    assert -signal.SIGTERM == running.poll()


@pytest.mark.parametrize("script", ["f() { f & }; f; sleep 100", f"{sys.executable} -S -c '{FORKS_ON}'; sleep 100"])
def test_what_forks_on_is_ended(start: Started, script: str) -> None:
    running = start.shell(script)
    until(running.descendants, "it to fork")

    assert () == running.end(AT_ONCE).unkillable
    assert [] == alive(running)


def test_a_signal_goes_to_the_harness_alone(start: Started) -> None:
    running = start.shell("trap 'echo got; exit 0' INT; setsid sleep 100 & echo up; wait")
    running.read(5)

    running.signal("interrupt")

    assert b"got\n" == read_all(running)
    assert 1 == len(running.descendants())


def test_a_second_end_and_a_signal_after_it_do_nothing(start: Started) -> None:
    running = start.shell("sleep 100")

    first = running.end(AT_ONCE)
    running.signal("terminate")

    assert first == running.end(AT_ONCE)


def test_two_may_end_it_at_once_and_the_shorter_time_counts(start: Started) -> None:
    running = start.shell("trap '' TERM; echo up; sleep 100; sleep 100")
    running.read(5)
    patient = threading.Thread(target=running.end, args=(Deadlines(terminate=60),))
    patient.start()

    running.end(Deadlines(terminate=0.1))
    patient.join(20)

    assert not patient.is_alive()


@pytest.mark.parametrize("both", [False, True])
def test_a_keeper_that_is_killed_takes_the_tree_with_it(start: Started, both: bool) -> None:  # noqa: FBT001
    running = start.shell("setsid sleep 100 & echo up; wait")
    running.read(5)
    outer = running.identity.pid
    assert outer is not None
    inner = process_tree.descendants(outer)[0]

    kill(outer)
    if both:
        kill(inner)

    until(lambda: running.poll() is not None, "its end")
    running.end(Deadlines())
    assert [] == alive(running)


def test_a_keeper_that_is_killed_before_it_starts_anything_is_a_death_of_the_harness(
    start: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_keeper = processes._start_keeper  # noqa: SLF001 - whose child is killed

    def start_and_kill(*arguments: Any) -> "subprocess.Popen[bytes]":
        child = start_keeper(*arguments)
        child.kill()
        return child

    monkeypatch.setattr(processes, "_start_keeper", start_and_kill)
    running = start.shell("sleep 100")

    assert -signal.SIGKILL == running.poll()
    assert b"" == running.read(5)
    assert () == running.end(Deadlines()).unkillable
    assert [] == alive(running)


SHORT_OF_PROCESSES = """
import errno, os, sys
from incarnate.supervision import keeper

fork, left = os.fork, int(sys.argv.pop(1))

def scarce():
    global left
    left -= 1
    if left < 0:
        raise OSError(errno.EAGAIN, "none is left")
    return fork()

os.fork = scarce
sys.exit(keeper.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("left", [0, 1])
def test_a_keeper_for_which_the_system_has_no_process_is_no_program_that_cannot_be_run(
    start: Started, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    real: Any = subprocess.Popen

    def scarce(command: list[str], **about: Any) -> Any:
        about["env"] = dict(os.environ)
        return real([command[0], "-c", SHORT_OF_PROCESSES, str(left), *command[4:]], **about)

    monkeypatch.setattr(subprocess, "Popen", scarce)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208

    with pytest.raises(BlockingIOError, match="temporarily unavailable"):
        start.shell("true")
    assert before == os.listdir("/proc/self/fd")  # noqa: PTH208


def test_a_keeper_that_cannot_be_started_leaves_nothing_open(start: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = os.listdir("/proc/self/fd")  # noqa: PTH208

    with pytest.raises(FileNotFoundError):
        start.shell("true")
    assert before == os.listdir("/proc/self/fd")  # noqa: PTH208


def test_an_inner_keeper_that_is_killed_takes_the_tree_with_it(start: Started) -> None:
    running = start.shell("env -i setsid sleep 100 & echo up; wait")
    running.read(5)
    assert running.identity.pid is not None
    below = process_tree.descendants(running.identity.pid)

    kill(below[0])

    until(lambda: running.poll() is not None, "its end")
    running.end(Deadlines())
    assert [] == [pid for pid in below if KernelTable().find(pid)]


def test_what_outlives_the_harness_is_ended_though_nobody_asks() -> None:
    edge = ProcessEdge(orphaned=0.1, linger=0.1)
    running = edge.start(["sh", "-c", "setsid sleep 100 &"], env=os.environ, cwd=None, run_id=uuid.uuid4().hex)

    until(lambda: not alive(running), "nobody to live")

    running.close()


def test_leftovers_are_found_by_the_run_id_once_both_keepers_are_gone(start: Started) -> None:
    running = start.shell("setsid sleep 100 & echo up; wait")
    running.read(5)
    keepers = kill_keepers(running)
    until(lambda: not set(keepers) & {process.pid for process in alive(running)}, "the keepers' end")
    assert 0 < len(alive(running))

    ended = start.edge.leftovers(running.identity, Deadlines())

    assert 0 < ended.orphans
    assert [] == alive(running)


@pytest.mark.parametrize("is_held", [True, False])
def test_a_shell_does_not_go_on_when_its_command_is_ended(start: Started, tmp_path: Path, is_held: bool) -> None:  # noqa: FBT001
    script = f"setsid sh -c 'sleep 100; echo end >> {tmp_path}/side-effects' & echo up; wait"
    for _ in range(5):
        running = start.shell(script)
        running.read(5)
        await_tool(running)
        if not is_held:
            kill_keepers(running)
        running.end(Deadlines())

    assert [] == list(tmp_path.iterdir())


def test_a_tool_without_an_environment_is_a_leftover_too(start: Started) -> None:
    running = start.shell("env -i setsid env -i sleep 100 & echo up; wait")
    running.read(5)
    outer = running.identity.pid
    assert outer is not None
    below = process_tree.descendants(outer)
    kill_keepers(running)

    start.edge.leftovers(running.identity, AT_ONCE)

    assert [] == [pid for pid in below if KernelTable().find(pid)]


@pytest.mark.parametrize("stopped", [("outer",), ("inner",), ("outer", "inner")], ids="-".join)
def test_a_keeper_that_is_stopped_ends_the_tree_all_the_same(start: Started, stopped: tuple[str, ...]) -> None:
    running = start.shell("env -i setsid sleep 100 & echo up; wait")
    running.read(5)
    outer = running.identity.pid
    assert outer is not None
    keepers = {"outer": outer, "inner": process_tree.descendants(outer)[0]}
    for one in stopped:
        os.kill(keepers[one], signal.SIGSTOP)

    assert () == running.end(AT_ONCE).unkillable
    assert [] == alive(running)


def test_a_keeper_that_hangs_is_killed_and_the_tree_ended(start: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_STUCK_SECONDS", 0.1 - 20)  # not so long as what is killed may take to be gone
    monkeypatch.setattr(signal, "SIGCONT", 0)
    running = start.shell("env -i setsid sleep 100 & echo up; wait")
    running.read(5)
    outer = running.identity.pid
    assert outer is not None
    below = process_tree.descendants(outer)
    os.kill(below[0], signal.SIGSTOP)

    assert () == running.end(Deadlines(terminate=0, give_up=20)).unkillable
    assert [] == [pid for pid in below if KernelTable().find(pid)]


def test_leftovers_of_another_boot_are_none(start: Started) -> None:
    running = start.shell("sleep 100")
    other = Identity(running.identity.run_id, "another", running.identity.pid, running.identity.started)

    assert 0 == start.edge.leftovers(other, AT_ONCE).orphans
    assert running.poll() is None


def test_a_pid_that_somebody_else_has_by_now_is_left_alone(start: Started) -> None:
    running = start.shell("sleep 100")
    recorded = running.identity
    assert recorded.started is not None
    before = Identity("of another run", recorded.boot_id, recorded.pid, recorded.started - 1)

    assert 0 == start.edge.leftovers(before, AT_ONCE).orphans
    assert running.poll() is None


def test_a_supervisor_never_ends_itself(start: Started) -> None:
    """A run inside a run carries the id of the outer one, and may be told to end what that one left."""
    us = KernelTable().find(os.getpid())
    assert us is not None

    ours = Identity(uuid.uuid4().hex, KernelTable().boot_id(), us.pid, us.started)
    with subprocess.Popen(["sleep", "100"]) as child:
        try:
            assert 0 == start.edge.leftovers(ours, AT_ONCE).orphans
            assert child.poll() is None
        finally:
            child.kill()


def test_nothing_stays_open_behind_a_harness() -> None:
    edge = ProcessEdge()
    before = os.listdir("/proc/self/fd")  # noqa: PTH208

    for _ in range(3):
        edge.start(["sh", "-c", "echo x"], env=os.environ, cwd=None, run_id=uuid.uuid4().hex).close()
        with pytest.raises(HarnessNotStartedError):
            edge.start(["/nowhere"], env=os.environ, cwd=None, run_id="x")

    assert before == os.listdir("/proc/self/fd")  # noqa: PTH208


MANY_OPEN = """
import os, resource, sys
from incarnate.supervision.edge import Deadlines
from incarnate.supervision.processes import ProcessEdge
resource.setrlimit(resource.RLIMIT_NOFILE, (1200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
running = ProcessEdge().start(["sh", "-c", "echo x; exit 3"], env=os.environ, cwd=None, run_id="many")
while (chunk := running.read(5)) or running.poll() is None:
    print(chunk)
print(running.poll(), running.end(Deadlines()).unkillable)
running.close()
"""


def test_a_program_with_a_thousand_descriptors_keeps_a_harness_too() -> None:
    told = subprocess.run([sys.executable, "-c", MANY_OPEN], capture_output=True, text=True, check=False, timeout=50)

    assert ("b'x\\n'", ["3", "()"], "") == (told.stdout.split("\n")[0], told.stdout.split()[-2:], told.stderr)


def test_the_keeper_needs_nothing_but_the_standard_library() -> None:
    """It is started without site-packages, so that it is up in some 20 ms."""
    command = [sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({keeper.__file__!r})"]
    told = subprocess.run([*command, "-X", "importtime"], capture_output=True, text=True, check=False)

    assert (0, "") == (told.returncode, told.stderr)
