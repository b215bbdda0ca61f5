"""docs/operations.md: its library example runs as it stands, and it names what there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from incarnate.cli.app import cli
from incarnate.supervision import plan

GUIDE = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_example_of_the_library_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    harness = tmp_path / "codex"
    told = '{"type":"thread.started","thread_id":"t"}\\n{"type":"turn.started"}\\n{"type":"turn.completed","usage":{}}'
    harness.write_text(f"#!{sys.executable}\nprint('{told}')\n", encoding="utf-8")
    harness.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    exec(compile(example, "operations.md", "exec"), {})

    assert "0 done\n" in capfd.readouterr().out


def test_the_stand_in_dies_and_is_brought_back(tmp_path: Path) -> None:
    [script] = re.findall(r"```sh\n(.*?)```", GUIDE, flags=re.DOTALL)
    (tmp_path / "incarnate").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m incarnate "$@"\n', encoding="utf-8")
    (tmp_path / "incarnate").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    ran = subprocess.run(["sh", "-e"], input=script, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert 0 == ran.returncode, ran.stderr
    assert "try/1 runs: incarnation 2" in ran.stderr
    assert "done" in ran.stdout.partition("turn.completed")[2]


def test_every_exit_code_is_told() -> None:
    codes = {value for name, value in vars(plan).items() if name.startswith("EXIT_")}
    told = {int(code) for code in re.findall(r"^\| (\d+)[ ,]", GUIDE, flags=re.MULTILINE)}

    assert codes <= told


def test_every_option_that_it_shows_is_there() -> None:
    shown = set(re.findall(r"`(--[a-z-]+)", GUIDE))
    known = {name for command in cli.commands.values() for option in command.params for name in option.opts}

    assert shown <= known
