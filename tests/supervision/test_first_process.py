"""`incarnate run` as the first process of a namespace of pids, as in a container."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from incarnate.domain.events import ToolResult
from tests.support.supervised import Place, check, until

NAMESPACE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]


def _has_namespaces() -> bool:
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _has_namespaces(), reason="this user may make no namespace of pids")


def zombies(first: int) -> list[int]:
    """Those that have ended and that the first process has not reaped."""
    children = Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii").split()
    states = {int(pid): Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2] for pid in children}
    return [pid for pid, stat in states.items() if stat.split()[0] == "Z"]


def first_process(place: Place) -> int:
    """The pid outside of the namespace."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return min(pid for pid in pids if is_in(place, pid))


def is_in(place: Place, pid: int) -> bool:
    """Whether it is the first process of a namespace below ours."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    [numbers] = [line.split()[1:] for line in lines if line.startswith("NSpid:")]
    return numbers[1:] == ["1"] and str(place.home).encode() in environ


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_first_process_hears_a_stop(place: Place, number: int) -> None:
    run = place.run("steps", "2", "--tool", "60000", below=NAMESPACE)
    until(place.tools, "a tool")

    os.kill(first_process(place), number)

    assert 128 + number == run.wait()


def test_a_first_process_ends_and_reaps_what_is_given_to_it(place: Place) -> None:
    harness = ("steps", "4", "--tool", "300", "--until", "enough")
    run = place.run(*harness, below=NAMESPACE, options=("--max-restarts", "9"))
    until(lambda: [one for one in place.events() if isinstance(one.event, ToolResult)], "a first result")
    until(place.tools, "a tool")
    first = first_process(place)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in place.keepers():
            os.kill(pid, number)
    until(lambda: len(place.lives()) > 1, "another life")

    until(lambda: not zombies(first), "all that ended to be reaped")
    (place.home / "enough").touch()
    assert 0 == run.wait()
    check(place)
