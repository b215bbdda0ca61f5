"""Whether a program can be found, as starting it would."""

import re
import sys
from pathlib import Path

import pytest

from incarnate.domain.errors import HarnessNotStartedError
from incarnate.supervision.interpreters import needed_by
from incarnate.supervision.programs import find_program


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, mode in (("prog", 0o755), ("plain", 0o644)):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(mode)
    return tmp_path


def script(place: Path, name: str, line: str) -> str:
    (place / name).write_bytes(line.encode())
    (place / name).chmod(0o755)
    return f"./{name}"


@pytest.mark.parametrize(("program", "path"), [("prog", "/nope:bin"), ("bin/prog", ""), ("./bin/prog", "/nope")])
def test_a_program_is_found_by_path_or_name_from_its_working_directory(place: Path, program: str, path: str) -> None:
    assert place / "bin" / "prog" == find_program(program, {"PATH": path}, str(place))


def test_a_program_with_a_whole_path_is_found_from_everywhere() -> None:
    assert Path(sys.executable) == find_program(sys.executable, {})


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no-such", "No such file or directory"),
        ("", "No such file or directory"),
        ("/nope/prog", "No such file or directory"),
        ("bin/prog/x", "No such file or directory"),
        ("plain", "Permission denied"),
        ("./bin", "Permission denied"),
        ("./text", "Exec format error: it is a text that does not begin with #!"),
        ("./empty", "Exec format error: it is a text that does not begin with #!"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(place: Path, program: str, reason: str) -> None:
    script(place, "text", "echo hi\n")
    script(place, "empty", "")
    with pytest.raises(
        HarnessNotStartedError, match=re.escape(f"{program or repr(program)} could not be started: {reason}")
    ):
        find_program(program, {"PATH": "bin"}, str(place))


def test_a_working_directory_that_is_gone_is_the_reason(place: Path) -> None:
    with pytest.raises(HarnessNotStartedError, match="its working directory: No such file"):
        find_program(sys.executable, {}, str(place / "gone"))


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("#!/nope/node\n", "'/nope/node'"),
        ("#! /nope/node --option", "'/nope/node'"),
        ("#!/bin/sh\r\n", r"'/bin/sh\r'"),
        ("#!/usr/bin/env nope\n", "'nope'"),
        ("#!/usr/bin/env -S LC_ALL=C nope --option\n", "'nope'"),
        ("#!nope\n", "'nope'"),
        ("#!/usr/bin/env nope --option", "'nope'"),
    ],
)
def test_a_script_whose_interpreter_is_not_there_is_refused_with_its_name(place: Path, line: str, missing: str) -> None:
    with pytest.raises(HarnessNotStartedError) as refused:
        find_program(script(place, "run", line), {"PATH": "/usr/bin"}, str(place))

    assert f"./run could not be started: {missing}, which it is run with: No such file or directory" == str(
        refused.value
    )


def test_a_script_of_a_script_whose_interpreter_is_not_there_is_refused(place: Path) -> None:
    inner = script(place, "inner", "#!/nope/node\n")

    with pytest.raises(HarnessNotStartedError, match=re.escape("'/nope/node', which")):
        find_program(script(place, "outer", f"#!{inner}\n"), {}, str(place))


def test_a_binary_whose_loader_is_not_there_is_refused(place: Path) -> None:
    loader = next(needed_by(Path(sys.executable))).name.encode()
    other = b"/nope" + loader[5:]
    (place / "binary").write_bytes(Path(sys.executable).read_bytes().replace(loader + b"\0", other + b"\0"))
    (place / "binary").chmod(0o755)

    with pytest.raises(HarnessNotStartedError, match=re.escape(f"{other.decode()!r}, which")):
        find_program("./binary", {}, str(place))


@pytest.mark.parametrize(
    "line",
    ["#!/bin/sh\n", "#!/usr/bin/env sh\n", "#!/usr/bin/env -S A=b sh -e\n", "#!\n", "#!bin/prog\n", "#!./self\n"],
)
def test_a_script_whose_interpreter_is_there_or_not_told_is_found(place: Path, line: str) -> None:
    assert place / "self" == find_program(script(place, "self", line), {"PATH": "/usr/bin:/bin"}, str(place))


@pytest.mark.parametrize(
    "words",
    [
        "-S 'no such' x",
        '-S "$NOPE" x',
        "-S ${NOPE} x",
        "-S PATH=/opt/bin nope",
        "-i nope",
        "-u A nope",
        "-Snope",
        "A='b c' nope",
    ],
)
def test_what_env_searches_for_is_not_guessed_at(place: Path, words: str) -> None:
    assert place / "self" == find_program(script(place, "self", f"#!/usr/bin/env {words}\n"), {}, str(place))


def test_a_binary_for_another_processor_is_left_to_the_kernel_and_its_emulator(place: Path) -> None:
    data = bytearray(Path(sys.executable).read_bytes())
    loader = next(needed_by(Path(sys.executable))).name.encode()
    data[18:20] = b"\xfe\xca"
    (place / "binary").write_bytes(bytes(data).replace(loader + b"\0", b"/nope" + loader[5:] + b"\0"))
    (place / "binary").chmod(0o755)

    assert place / "binary" == find_program("./binary", {}, str(place))


def test_a_file_cut_short_of_what_its_head_promises_is_left_to_the_kernel(place: Path) -> None:
    whole = Path(sys.executable).read_bytes()
    for length in (8, 20, 60, 70):
        (place / "bin" / "prog").write_bytes(whole[:length])

        assert place / "bin" / "prog" == find_program("bin/prog", {}, str(place))
