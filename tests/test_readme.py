"""What the README shows is run as it stands."""

import functools
import re
import shlex
from pathlib import Path

import pytest

from incarnate import StaleIncarnationError
from tests.support.commands import run
from tests.support.stores import sqlite_url

ROOT = Path(__file__).parent.parent


@functools.cache
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", readme(), flags=re.MULTILINE | re.DOTALL)


def test_the_example_raises_what_the_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [example] = blocks("python")
    with pytest.raises(StaleIncarnationError) as raised:
        exec(compile(example, "README.md", "exec"), {})

    lines = [entry.lineno + 1 for entry in raised.traceback if str(entry.path).endswith("README.md")]
    assert [len(example.splitlines())] == lines
    assert f"The first time its last line raises `StaleIncarnationError: {raised.value}`." in readme()


def test_the_commands_lead_from_a_clone_to_a_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INCARNATE_STORE", sqlite_url(tmp_path))
    monkeypatch.chdir(ROOT)
    prompt = "$ .venv/bin/incarnate "
    lines = [line.removeprefix(prompt) for line in blocks("console")[1].splitlines() if line.startswith(prompt)]
    results = [run(*shlex.split(line)) for line in lines]

    assert ["ingest", "ls", "show", "resume"] == [line.split()[0] for line in lines]
    assert [0, 0, 0, 0] == [result.exit_code for result in results]
    assert "The sub-agent reported back." in results[2].stdout


def test_its_two_commands_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert {"demo", "test"} <= set(targets)
    assert ["make demo", "make test"] == re.findall(r"^\$ (make \w+)   #", readme(), flags=re.MULTILINE)
