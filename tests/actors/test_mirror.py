"""Transcript mirrors: the file is the log's transcript after anything that happens to either."""

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from incarnate import (
    ActivationKey,
    AssistantMessage,
    ClosedError,
    LogCorruptionError,
    SessionSystem,
    StoreBusyError,
    StoreFileError,
    Usage,
)
from incarnate.actors.mirror import Mirror
from incarnate.domain.transcripts.rows import decode_row, encode_row
from incarnate.domain.transcripts.translation import to_event, to_rows
from incarnate.storage.transcripts import TranscriptFile

KEY = ActivationKey("pik-1", "implement-task")
WRITER = Path(__file__).parents[1] / "support" / "mirror_writer.py"
PATIENCE = 30


def said(text: str) -> AssistantMessage:
    return AssistantMessage(id=text, parent_id=None, text=text)


def transcript(system: SessionSystem) -> bytes:
    """What the file must hold."""
    rows = to_rows(appended.event for appended in system.replay(KEY)).rows
    return b"".join([encode_row(row) + b"\n" for row in rows])


def in_file(mirror: Mirror) -> bytes:
    """What the file holds, once the mirror has caught up."""
    assert mirror.caught_up(PATIENCE), mirror.status
    return mirror.path.read_bytes()


def refuse(*_arguments: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def mirror(system: SessionSystem, tmp_path: Path) -> Iterator[Mirror]:
    with system.mirror(KEY, tmp_path / "logs", "s") as opened:
        yield opened


def test_the_file_follows_the_log(system: SessionSystem, mirror: Mirror) -> None:
    session = system.claim(KEY)
    for number in range(50):
        session.emit(said(str(number)))

        assert transcript(system) == in_file(mirror)
    assert 50 == mirror.status.rows


def test_a_rewind_cuts_the_file_and_what_follows_goes_behind(system: SessionSystem, mirror: Mirror) -> None:
    session = system.claim(KEY)
    session.emit_many([said("a"), said("b")])
    session.checkpoint("sha")
    session.emit_many([said("lost"), said("lost too")])
    assert 4 == in_file(mirror).count(b"\n")
    session.restore()
    session.emit(said("c"))

    assert transcript(system) == in_file(mirror)
    assert b"lost" not in mirror.path.read_bytes()
    assert [mirror.path] == list(mirror.path.parent.iterdir())


def test_a_session_of_appends_rewinds_and_restarts_is_mirrored(system: SessionSystem, tmp_path: Path) -> None:
    chance, mirror = random.Random(5), system.mirror(KEY, tmp_path, "s")
    session = system.claim(KEY)
    for number in range(400):
        match chance.randrange(12):
            case 0:
                session.checkpoint("sha")
            case 1:
                session.restore(rewind=True)
            case 2:
                session = system.claim(KEY)
            case 3:
                mirror.close()
                mirror = system.mirror(KEY, tmp_path, "s")
            case 4:
                assert transcript(system) == in_file(mirror)
            case _:
                session.emit_many([said(f"{number}.{index}") for index in range(chance.randrange(1, 4))])

    assert transcript(system) == in_file(mirror)
    assert (0, "") == mirror.status[2:4]


def test_a_consumer_that_fell_far_behind_is_level_again(
    system: SessionSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = system.claim(KEY)
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        with system.mirror(KEY, tmp_path, "s") as mirror:
            for number in range(3000):
                session.emit(said(str(number)))
            full.undo()

            assert transcript(system) == in_file(mirror)


def test_closing_the_system_writes_what_was_acknowledged(url: str, tmp_path: Path) -> None:
    with SessionSystem.open(url) as system:
        mirror = system.mirror(KEY, tmp_path, "s")
        system.claim(KEY).emit_many([said(str(number)) for number in range(1000)])
        expected = transcript(system)

    assert expected == mirror.path.read_bytes()
    assert mirror.closed


def test_a_closed_mirror_says_so(mirror: Mirror) -> None:
    mirror.close()
    mirror.close()
    with pytest.raises(ClosedError, match=r"the mirror .* was closed"):
        mirror.caught_up()


def test_what_the_file_has_in_common_with_the_log_stays_and_the_rest_is_saved(
    system: SessionSystem, tmp_path: Path
) -> None:
    session = system.claim(KEY)
    session.emit_many([said("a"), said("b")])
    begin = transcript(system)
    foreign = encode_row(decode_row(b'{"type":"user_message","text":"somebody else\'s"}')) + b"\n"
    (tmp_path / "s.jsonl").write_bytes(begin + foreign)
    session.emit(said("c"))
    with system.mirror(KEY, tmp_path, "s") as mirror:
        assert transcript(system) == in_file(mirror)
        [saved] = mirror.status.saved

    assert foreign == saved.read_bytes()
    assert saved.name.startswith("s.jsonl.cut-")


def test_values_that_python_takes_for_equal_are_not_the_same_row(system: SessionSystem, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b'{"type":"tool_result","id":"c","value":true,"error":null}\n')
    other = decode_row(b'{"type":"tool_result","id":"c","value":1,"error":null}')
    with system.mirror(KEY, tmp_path, "s") as mirror, TranscriptFile.open(tmp_path, "other") as expected:
        session = system.claim(KEY)
        session.emit(to_event(other, "e", None))
        expected.append(other)

        assert expected.path.read_bytes() == in_file(mirror)


def test_the_session_is_called_as_the_activation_unless_named(system: SessionSystem, tmp_path: Path) -> None:
    with system.mirror(KEY, tmp_path) as unnamed, system.mirror(KEY, tmp_path, "") as empty:
        names = [mirror.path.name.partition("~")[0] for mirror in (unnamed, empty)]

    assert ["pik-1_implement-task", "session"] == names


def test_a_file_has_one_mirror(mirror: Mirror, system: SessionSystem) -> None:
    with pytest.raises(StoreBusyError):
        system.mirror(KEY, mirror.path.parent, "s")


def test_a_damaged_file_is_left_to_repair(system: SessionSystem, tmp_path: Path) -> None:
    damaged = b'{"type":"user_mess\n{"type":"user_message","text":"a"}\n'
    (tmp_path / "s.jsonl").write_bytes(damaged)
    with pytest.raises(LogCorruptionError, match="line 1, byte 0"):
        system.mirror(KEY, tmp_path, "s")

    assert damaged == (tmp_path / "s.jsonl").read_bytes()


def test_what_a_transcript_leaves_out_is_counted(system: SessionSystem, mirror: Mirror) -> None:
    system.claim(KEY).emit_many([said("a"), Usage(id="u", parent_id=None, input_tokens=1, output_tokens=2)])

    assert {"usage": 1} == mirror.left_out()


def test_a_full_disk_holds_up_no_writer_is_told_and_heals(
    system: SessionSystem, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = system.claim(KEY)
    session.emit(said("before"))
    before = in_file(mirror)
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        session.emit_many([said("during"), said("lost")])
        assert not mirror.flush(0.05)
        assert "could not be written (No space left on device)" in mirror.status.error
        assert mirror.status.write_errors > 0
        assert before == mirror.path.read_bytes()
        session.restore(rewind=True)
        session.emit(said("after a rewind"))
    assert mirror.flush(PATIENCE)

    assert transcript(system) == mirror.path.read_bytes()
    assert "" == mirror.status.error


def test_a_full_disk_does_not_keep_a_system_from_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        with SessionSystem.open("memory://") as system:
            mirror = system.mirror(KEY, tmp_path, "s")
            system.claim(KEY).emit(said("a"))

    assert mirror.closed
    assert "No space left" in mirror.status.error


def test_a_failed_sync_is_raised_and_the_mirror_goes_on(
    system: SessionSystem, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = system.claim(KEY)
    session.emit(said("a"))
    assert mirror.caught_up(PATIENCE)
    with monkeypatch.context() as bad:
        bad.setattr(os, "fsync", refuse)
        with pytest.raises(StoreFileError, match="the disk failed"):
            mirror.flush(PATIENCE)
    session.emit(said("b"))

    assert transcript(system) == in_file(mirror)
    assert mirror.flush(PATIENCE)


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["removed", "emptied"])
def test_a_file_that_somebody_changes_is_made_whole(
    system: SessionSystem, mirror: Mirror, change: Callable[[Path], object]
) -> None:
    session = system.claim(KEY)
    session.emit(said("a"))
    in_file(mirror)
    change(mirror.path)
    session.emit(said("b"))

    assert transcript(system) == in_file(mirror)
    assert mirror.status.write_errors > 0


def test_another_process_writes_and_a_read_only_system_mirrors(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionSystem.open(url) as theirs:
        session = theirs.claim(KEY)
        session.emit(said("a"))
        with SessionSystem.open(url, read_only=True) as ours, ours.mirror(KEY, tmp_path, "s") as mirror:
            assert transcript(theirs) == in_file(mirror)
            session.restore(rewind=True)
            session.emit_many([said("b"), said("c")])

            assert transcript(theirs) == in_file(mirror)


@pytest.mark.parametrize("harm", ["kill", "between_cut_and_append", "in_a_write"])
def test_a_mirror_that_was_killed_is_caught_up_by_the_next(harm: str, tmp_path: Path) -> None:
    url, chance = f"sqlite:///{tmp_path}/sessions.db", random.Random(9)
    for seed in range(8):
        command = [sys.executable, str(WRITER), harm, f"{url}?durability=process", str(tmp_path), str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            if harm == "kill":
                for _ in range(chance.randrange(1, 200)):
                    writer.stdout.readline()
                writer.kill()
            writer.stdout.read()
        assert -signal.SIGKILL == writer.returncode
        with SessionSystem.open(url) as system, system.mirror(KEY, tmp_path) as mirror:
            assert transcript(system) == in_file(mirror)
            assert b"" != mirror.path.read_bytes() or not list(system.replay(KEY))
            assert "" == mirror.status.error
