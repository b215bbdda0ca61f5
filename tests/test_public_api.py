"""The root of the package: its public names and nothing else."""

import importlib.resources
import os
import subprocess
import sys
from types import ModuleType

import pytest

import incarnate

pytestmark = pytest.mark.smoke


def public_names(module: ModuleType) -> list[str]:
    return sorted(
        name for name, value in vars(module).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    )


def run_isolated(code: str) -> str:
    """Run `code` in an interpreter that has imported nothing of ours, not even for coverage."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "PYTHON"))}
    command = [sys.executable, "-I", "-c", code]

    return subprocess.check_output(command, env=environment, text=True).strip()


def test_all_is_sorted_and_names_what_is_public() -> None:
    assert public_names(incarnate) == list(incarnate.__all__)


def test_every_public_name_says_what_it_is_for() -> None:
    silent = [
        name
        for name in incarnate.__all__
        if callable(getattr(incarnate, name)) and not getattr(incarnate, name).__doc__
    ]

    assert [] == silent


def test_the_package_is_typed() -> None:
    marker = importlib.resources.files(incarnate) / "py.typed"

    assert marker.is_file()


def test_importing_the_library_starts_no_thread() -> None:
    started = run_isolated("import threading, incarnate; print(threading.active_count())")

    assert "1" == started


def test_importing_the_library_loads_no_back_end_and_no_command_line() -> None:
    heavy = "{'click', 'psycopg', 'rich', 'sqlite3'}"
    loaded = run_isolated(f"import sys, incarnate; print(sorted({heavy} & sys.modules.keys()))")

    assert "[]" == loaded
