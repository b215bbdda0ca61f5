"""The session files of a harness on this machine."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import ToolCall, UserMessage
from incarnate.supervision.commands import carry_prompt
from incarnate.supervision.harness_files import SessionFolder, default_root

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
HOMES = [
    ("claude", "claude-code", "83fc99aa-5742-4e22-97ed-d68f683e7beb"),
    ("codex", "codex", "01a22de2-04ae-7e33-bcfe-665417e6c424"),
    ("copilot", "@github/copilot", "4c03e950-438a-45e0-82f2-0c19b0d33e3d"),
    ("gemini", "gemini-cli", "d0eb824b-e84c-4a34-b1ac-2738278ca5ac"),
    ("kimi", "kimi", "dbf09335-72ea-482d-89bb-fc6c9592f8d7"),
    ("kimicode", "kimi", "session_abf76eea-909d-450a-a7c2-ca993f853b8a"),
    ("pi", "pi", "01a22de2-05de-7285-976e-86aae1240a27"),
    ("qwen", "qwen-code", "8fce717b-c313-4fbd-adf4-937308a20cf4"),
]


@pytest.mark.parametrize(("folder", "harness", "session"), HOMES, ids=[home[0] for home in HOMES])
def test_a_session_is_found_where_its_harness_keeps_it(folder: str, harness: str, session: str) -> None:
    home = RECORDINGS / folder / "S4" / "disk"
    files = SessionFolder.of(find_dialect(harness), {"HOME": str(home)})
    turn = files.last_turn(session)

    assert files.is_here(session)
    assert session.startswith(files.newest(0.0) or "nothing")
    assert ["STUBPROMPT S4: please do the scripted task."] == [one.text for one in turn if isinstance(one, UserMessage)]
    assert folder == "gemini" or any(isinstance(one, ToolCall) for one in turn)


def test_a_session_that_is_not_there_has_no_turn(tmp_path: Path) -> None:
    files = SessionFolder.of(find_dialect("codex"), {"HOME": str(tmp_path)})

    assert not files.is_here("01a22de2-04ae-7e33-bcfe-665417e6c424")
    assert [] == files.last_turn("01a22de2-04ae-7e33-bcfe-665417e6c424")
    assert files.newest(0.0) is None


def test_a_folder_that_is_not_there_is_said_not_to_be(tmp_path: Path) -> None:
    codex = find_dialect("codex")
    there, absent = tmp_path, tmp_path / "absent"

    assert str(there) == SessionFolder.of(codex, {}, there).place()
    assert f"{absent} (no such folder)" == SessionFolder.of(codex, {}, absent).place()
    homes = f"{absent}/.kimi/sessions or {absent}/.kimi-code/sessions (no such folder)"
    assert homes == SessionFolder.of(find_dialect("kimi"), {"HOME": str(absent)}).place()


def test_where_nobody_knows_the_place_a_session_may_be_here() -> None:
    assert SessionFolder.of(find_dialect("deepseek"), {"HOME": "/nowhere"}).is_here("any")


def test_variables_move_the_place() -> None:
    assert (Path("/c/sessions"), Path("/h/.codex/sessions")) == default_root(
        "codex", {"HOME": "/h", "CODEX_HOME": "/c"}
    )
    assert (Path("/h/.claude/projects"),) == default_root("claude-code", {"HOME": "/h"})


def test_an_older_session_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    shutil.copytree(RECORDINGS / "pi" / "S4" / "disk" / ".pi", tmp_path / ".pi")
    [path] = tmp_path.rglob("*.jsonl")
    os.utime(path, (1000, 1000))
    files = SessionFolder.of(find_dialect("pi"), {"HOME": str(tmp_path)})

    assert files.newest(1001.0) is None
    assert "01a22de2-05de-7285-976e-86aae1240a27" == files.newest(1000.0)


def test_a_carried_prompt_reads_as_what_was_asked(tmp_path: Path) -> None:
    shutil.copytree(RECORDINGS / "pi" / "S4" / "disk" / ".pi", tmp_path / ".pi")
    [path] = tmp_path.rglob("*.jsonl")
    told = carry_prompt("User: all of it", "go on").encode("unicode_escape")
    path.write_bytes(path.read_bytes().replace(b"STUBPROMPT S4: please do the scripted task.", told))
    files = SessionFolder.of(find_dialect("pi"), {"HOME": str(tmp_path)})
    turn = files.last_turn("01a22de2-05de-7285-976e-86aae1240a27")

    assert ["go on"] == [one.text for one in turn if isinstance(one, UserMessage)]


def test_a_file_that_cannot_be_understood_keeps_no_session_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_dialect: object) -> None:
        raise ZeroDivisionError

    shutil.copytree(RECORDINGS / "pi" / "S4" / "disk" / ".pi", tmp_path / ".pi")
    files = SessionFolder.of(find_dialect("pi"), {"HOME": str(tmp_path)})
    monkeypatch.setattr(type(find_dialect("pi")), "normalizer", broken)

    assert [] == files.last_turn("01a22de2-05de-7285-976e-86aae1240a27")


@pytest.mark.parametrize(
    "make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path)], ids=["pipe", "folder", "loop"]
)
def test_what_is_no_file_is_no_session(tmp_path: Path, make: Callable[[Path], None]) -> None:
    shutil.copytree(RECORDINGS / "pi" / "S4" / "disk" / ".pi", tmp_path / ".pi")
    [path] = tmp_path.rglob("*.jsonl")
    path.unlink()
    make(path)
    files = SessionFolder.of(find_dialect("pi"), {"HOME": str(tmp_path)})

    assert not files.is_here("01a22de2-05de-7285-976e-86aae1240a27")
    assert [] == files.last_turn("01a22de2-05de-7285-976e-86aae1240a27")
    assert files.newest(0.0) is None
