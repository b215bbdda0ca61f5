"""Our standard input, which no harness is given, and our terminal, which any may leave in another mode."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from incarnate.cli.run_input import has_input

RAW = """
import fcntl, os, signal, sys, termios, tty
from incarnate.cli.run_input import terminal_kept

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if sys.argv[1] == "another":
    child = os.fork()
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.setpgid(0, 0)
before = termios.tcgetattr(0)
with terminal_kept(0):
    tty.setraw(0)
print(termios.tcgetattr(0) == before)
"""


def test_a_pipe_and_a_socket_have_input_while_they_hold_some() -> None:
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with ours, theirs, os.fdopen(reading), os.fdopen(writing, "wb", buffering=0) as pipe:
        before = [has_input(reading), has_input(ours.fileno())]
        pipe.write(b"x")
        theirs.send(b"x")

        assert ([False, False], [True, True]) == (before, [has_input(reading), has_input(ours.fileno())])


def test_a_file_has_input_until_its_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with (tmp_path / "file").open("rb", buffering=0) as file:
        assert has_input(file.fileno())
        file.read()
        assert not has_input(file.fileno())


def test_no_device_and_nothing_that_is_closed_has_input() -> None:
    with Path("/dev/null").open("rb") as null, Path("/dev/zero").open("rb") as zero:
        assert [False] * 3 == [has_input(one) for one in (null.fileno(), zero.fileno(), -1)]


@pytest.mark.parametrize(("data", "log", "told"), [(b"x", "text", True), (b"", "text", False), (b"x", "none", False)])
def test_what_standard_input_holds_is_said_to_be_left(tmp_path: Path, data: bytes, log: str, *, told: bool) -> None:
    script = "import sys; print(len(sys.stdin.read()))"
    line = [sys.executable, "-m", "incarnate", "run", "--harness", "codex", "--prompt", "x", "--log", log, "--"]
    env = {**os.environ, "INCARNATE_STATE_DIR": f"{tmp_path}/runs", "INCARNATE_STORE": f"sqlite:///{tmp_path}/s.db"}
    command = [*line, sys.executable, "-c", script]
    ran = subprocess.run(command, input=data, env=env, cwd=tmp_path, capture_output=True, check=False)

    assert b"0\n" == ran.stdout
    assert told == (b"what standard input holds is not passed on" in ran.stderr)


@pytest.mark.parametrize(("job", "kept"), [("ours", b"True\n"), ("another", b"False\n")])
def test_a_terminal_is_given_its_mode_again_unless_another_job_has_it(job: str, kept: bytes) -> None:
    leader, terminal = os.openpty()
    with os.fdopen(leader), os.fdopen(terminal) as stdin:
        command = [sys.executable, "-c", RAW, job]
        ran = subprocess.run(command, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True, check=True)

        assert kept == ran.stdout
