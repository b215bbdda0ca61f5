"""The records of supervisors: who lives is told by a lock, never by a pid."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from incarnate.cli.options import default_store_file
from incarnate.supervision.edge import Identity
from incarnate.supervision.harness_files import default_root
from incarnate.supervision.registry import Registry, RunRecord, state_folder

OPENS_AND_DIES = """
import os, sys
from pathlib import Path
from incarnate.supervision.registry import Registry, RunRecord
Registry(Path(sys.argv[1])).open(RunRecord("k/e", "s", "codex", os.getpid(), "2026-01-01T00:00:00.000Z"))
print("up", flush=True)
if sys.argv[2:]:
    sys.stdin.read()
os._exit(1)
"""


def record(key: str = "k/e", started_at: str = "2026-01-01T00:00:00.000Z") -> RunRecord:
    return RunRecord(key, "sqlite:////x", "codex", os.getpid(), started_at)


def test_a_record_lives_until_it_is_closed(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "new")
    entry = registry.open(record())

    assert ["k/e"] == [found.record.key for found in registry.live()]
    assert [] == registry.dead()
    entry.close()
    entry.close()
    assert [] == registry.live() + registry.dead()
    assert [] == list((tmp_path / "new").iterdir())


def test_the_oldest_stands_first_and_several_may_have_a_key(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    entries = [registry.open(record(started_at=f"2026-01-0{day}T00:00:00.000Z")) for day in (3, 1, 2)]

    assert ["1", "2", "3"] == [found.record.started_at[9] for found in registry.live()]
    for entry in entries:
        entry.close()


def test_an_update_is_read_whole_and_keeps_whose_it_is(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    entry = registry.open(record())
    identity = Identity("run", "boot", 7, 8)

    entry.update(RunRecord("k/e", "s", "codex", os.getpid(), "t", phase="alive", identity=identity))

    [found] = registry.live()
    assert ("alive", identity) == (found.record.phase, found.record.identity)
    assert registry.is_here(found.record)
    assert 0 < found.record.pid_started
    entry.close()


def test_what_died_is_found_once_and_forgotten(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", OPENS_AND_DIES, str(tmp_path)], check=False, stdout=subprocess.DEVNULL)
    registry = Registry(tmp_path)

    assert [] == registry.live()
    [found] = registry.dead()
    assert [] == Registry(tmp_path).dead(), "somebody is at it"
    found.forget()
    assert [] == registry.dead()
    assert [] == list(tmp_path.iterdir())


def test_what_died_elsewhere_is_left_to_those_there(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", OPENS_AND_DIES, str(tmp_path)], check=False, stdout=subprocess.DEVNULL)

    assert [] == Registry(tmp_path, host="another").dead()


def test_a_file_that_is_no_record_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")

    assert [] == Registry(tmp_path).live() + Registry(tmp_path).dead()


@contextmanager
def staying(folder: Path) -> "Generator[subprocess.Popen[bytes]]":
    """A process that has a record in `folder`, until its input is closed."""
    command = [sys.executable, "-c", OPENS_AND_DIES, str(folder), "stay"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_a_supervisor_is_asked_to_end_by_its_own_pid_and_start(tmp_path: Path) -> None:
    with staying(tmp_path) as process:
        registry = Registry(tmp_path)
        [found] = registry.live()

        assert not Registry(tmp_path, host="another").stop(found.record)
        assert registry.stop(found.record)
        assert -signal.SIGTERM == process.wait(20)
        assert not registry.stop(found.record)


def test_a_supervisor_that_was_suspended_hears_that_it_is_to_end(tmp_path: Path) -> None:
    with staying(tmp_path) as process:
        registry = Registry(tmp_path)
        [found] = registry.live()
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)

        assert registry.stop(found.record)
        try:
            assert -signal.SIGTERM == process.wait(20)
        finally:
            process.kill()


def test_records_of_another_user_in_a_shared_folder_are_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lives and one has died; a third is shown to nobody."""
    subprocess.run([sys.executable, "-c", OPENS_AND_DIES, str(tmp_path)], check=False, stdout=subprocess.DEVNULL)
    registry, open_file, read_bytes = Registry(tmp_path), os.open, Path.read_bytes
    lives, hidden = registry.open(record()), registry.open(record("k/hidden"))
    [secret] = [path for path in tmp_path.glob("*.json") if b"k/hidden" in path.read_bytes()]

    def refuse(path: Path, *about: int) -> int:
        if Path(path).suffix == ".lock":
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(path, *about)

    def read(path: Path) -> bytes:
        if path == secret:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_bytes(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        patched.setattr(Path, "read_bytes", read)
        assert [os.getpid()] == [found.record.pid for found in registry.live()]
        assert [] == registry.dead()
    for one in (lives, hidden):
        one.close()


def test_a_user_whom_the_system_does_not_know_has_a_home_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is started under a bare number."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54321)

    assert Path("/.local/state/incarnate/runs") == state_folder({})
    assert (Path("/.codex/sessions"),) == default_root("codex", {})
    assert default_store_file().is_absolute()


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"INCARNATE_STATE_DIR": "/a", "XDG_STATE_HOME": "/b", "HOME": "/h"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/h"}, "/b/incarnate/runs"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/incarnate/runs"),
        ({"HOME": "/h"}, "/h/.local/state/incarnate/runs"),
    ],
)
def test_records_are_in_a_folder_of_the_user(env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")

    assert Path(folder) == state_folder(env)


def test_who_only_looks_hides_no_dead_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-c", OPENS_AND_DIES, str(tmp_path)], check=False, stdout=subprocess.DEVNULL)
    looking = os.open(next(tmp_path.glob("*.lock")), os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    registry = Registry(tmp_path)
    looked = registry.live()
    monkeypatch.setattr(time, "sleep", lambda _seconds: os.close(looking))

    [found] = registry.dead()

    assert [] == looked
    found.forget()


@pytest.mark.parametrize("cleaned", ["folder", "lock", "everything in it"])
def test_a_record_that_somebody_cleaned_away_is_there_again_at_its_next_update(tmp_path: Path, cleaned: str) -> None:
    folder = tmp_path / "runs"
    registry = Registry(folder)
    entry = registry.open(record())
    for file in folder.glob("*.lock" if cleaned == "lock" else "*"):
        file.unlink()
    if cleaned == "folder":
        folder.rmdir()
    gone = registry.live()
    entry.update(record())

    assert ([], ["k/e"], []) == (gone, [found.record.key for found in registry.live()], registry.dead())
    entry.close()
    assert [] == list(folder.iterdir())


def test_a_record_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: Path, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        Registry(tmp_path).open(record())

    assert [] == list(tmp_path.iterdir())
