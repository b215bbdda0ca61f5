"""Whether a program can be found, as starting it would."""

import re
import sys
from pathlib import Path

import pytest

from incarnate.domain.errors import HarnessNotStartedError
from incarnate.supervision.programs import find_program


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, mode in (("prog", 0o755), ("plain", 0o644)):
        (tmp_path / "bin" / name).touch(mode)
    return tmp_path


@pytest.mark.parametrize(("program", "path"), [("prog", "/nope:bin"), ("bin/prog", ""), ("./bin/prog", "/nope")])
def test_a_program_is_found_by_path_or_name_from_its_working_directory(place: Path, program: str, path: str) -> None:
    assert place / "bin" / "prog" == find_program(program, {"PATH": path}, str(place))


def test_a_program_with_a_whole_path_is_found_from_everywhere() -> None:
    assert Path(sys.executable) == find_program(sys.executable, {})


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no-such", "No such file or directory"),
        ("/nope/prog", "No such file or directory"),
        ("bin/prog/x", "No such file or directory"),
        ("plain", "Permission denied"),
        ("./bin", "Permission denied"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(place: Path, program: str, reason: str) -> None:
    with pytest.raises(HarnessNotStartedError, match=re.escape(f"{program} could not be started: {reason}")):
        find_program(program, {"PATH": "bin"}, str(place))


def test_a_working_directory_that_is_gone_is_the_reason(place: Path) -> None:
    with pytest.raises(HarnessNotStartedError, match="its working directory: No such file"):
        find_program(sys.executable, {}, str(place / "gone"))
