"""`incarnate simulate`: for CI, with exit codes and JSON."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from incarnate.cli.app import cli
from incarnate.simulation import SCENARIOS
from tests.support.careless import SUPERVISE

CARELESS = f"""
{SUPERVISE}
def careless(sim):
    sim.process("a", supervise)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", *arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_scenarios_of_test_simulate.py").write_text(CARELESS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - before:  # each test has its own files of the same names
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_all_that_comes_with_incarnate_is_run_unless_named() -> None:
    result = run("--seeds", "2")

    assert 0 == result.exit_code
    assert list(SCENARIOS) == [line.partition(":")[0] for line in result.output.splitlines()]


@pytest.mark.parametrize("place", ["my_scenarios_of_test_simulate", "my_scenarios_of_test_simulate.py"])
@pytest.mark.usefixtures("folder")
def test_a_scenario_of_the_user_that_fails_is_told_with_its_smallest_run(place: str) -> None:
    result = run("--scenario", f"{place}:careless")

    assert 1 == result.exit_code
    assert "what did not go the usual way:\n  a/activation p/e, point " in result.stdout
    assert result.stderr.startswith(f"Error: {place}:careless: seed ")
    assert f"Try: incarnate simulate --scenario {place}:careless --seed " in result.stderr


@pytest.mark.usefixtures("folder")
def test_json_is_one_document_and_the_command_in_it_repeats_the_run() -> None:
    first = run("--scenario", "my_scenarios_of_test_simulate:careless", "--json")
    failure = json.loads(first.stdout)["scenarios"][0]["failure"]
    again = run(*failure["command"].split()[2:], "--json")

    assert 1 == first.exit_code == again.exit_code
    assert "no_event_twice" == failure["check"]
    assert failure == json.loads(again.stdout)["scenarios"][0]["failure"]


def test_other_seeds_are_other_runs_and_the_same_are_the_same() -> None:
    def digest(*arguments: str) -> str:
        output = run("--scenario", "take-over", "--json", *arguments).stdout
        told: str = json.loads(output)["scenarios"][0]["digest"]
        return told

    assert digest("--seeds", "2", "--first", "5") == digest("--seeds", "2", "--first", "5")
    assert digest("--seed", "5") != digest("--seed", "6")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "no scenario 'nothing' comes with incarnate"),
        ("nowhere_at_all:f", "no module 'nowhere_at_all' is found"),
        ("nowhere/at_all.py:f", "there is no file nowhere/at_all.py"),
        ("incarnate.domain.keys:f", "incarnate.domain.keys has no function 'f'"),
    ],
)
def test_a_name_that_is_no_scenario_is_told(name: str, message: str) -> None:
    result = run("--scenario", name)

    assert 2 == result.exit_code
    assert message in result.stderr


BROKEN = [
    ("def (", "broken_scenarios.py:1: SyntaxError: invalid syntax", "Try: mend it, so that "),
    ("import json\njson.loads('{')", "broken_scenarios.py:2: JSONDecodeError: Expecting", "Try: mend it, so that "),
    ("\nimport nowhere_at_all", "broken_scenarios.py:2: ModuleNotFoundError: No module", "Try: install nowhere_at_all"),
    ("raise SystemExit", "broken_scenarios.py:1: SystemExit", "Try: mend it, so that "),
    ("import broken_beside", "broken_beside.py:2: ValueError: beside", "Try: mend it, so that "),
]


@pytest.mark.parametrize("place", ["broken_scenarios", "broken_scenarios.py"])
@pytest.mark.parametrize(("text", "message", "hint"), BROKEN)
def test_a_module_that_cannot_be_imported_is_told_with_its_line(
    text: str, message: str, hint: str, place: str, folder: Path
) -> None:
    (folder / "broken_scenarios.py").write_text(text, encoding="utf-8")
    (folder / "broken_beside.py").write_text("\nraise ValueError('beside')", encoding="utf-8")
    result = run("--scenario", f"{place}:scenario")
    error, tried = result.stderr.splitlines()

    assert 2 == result.exit_code
    assert error.startswith(f"Error: {message}")
    assert tried.startswith(hint)


IMPORTING = """
from __future__ import annotations
import dataclasses
import {beside}

@dataclasses.dataclass
class Step:
    name: str

def scenario(sim):
    import imported_late_by_simulate
"""


@pytest.mark.parametrize(
    ("packaged", "beside"), [(False, "beside_of_simulate"), (True, "package_of_simulate.beside_of_simulate")]
)
def test_a_file_imports_what_pytest_lets_it_import_also_as_it_runs(
    packaged: bool,  # noqa: FBT001 - a parameter of the test
    beside: str,
    folder: Path,
) -> None:
    package = folder / "package_of_simulate"
    package.mkdir()
    if packaged:
        (package / "__init__.py").touch()
    (package / "beside_of_simulate.py").touch()
    ((folder if packaged else package) / "imported_late_by_simulate.py").touch()
    (package / "scenarios_of_simulate.py").write_text(IMPORTING.format(beside=beside), encoding="utf-8")
    before = sys.path.copy()
    result = run("--scenario", "package_of_simulate/scenarios_of_simulate.py:scenario", "--seeds", "1")

    assert (0, "") == (result.exit_code, result.stderr)
    assert before == sys.path


def test_two_scenarios_of_a_file_share_its_module(folder: Path) -> None:
    text = "seen = []\ndef first(sim):\n    seen.append(sim)\ndef second(sim):\n    assert seen\n"
    (folder / "shared_of_simulate.py").write_text(text, encoding="utf-8")
    names = [f"shared_of_simulate.py:{name}" for name in ("first", "second")]
    result = run("--scenario", names[0], "--scenario", names[1], "--seeds", "1")

    assert (0, "") == (result.exit_code, result.stderr)


def test_a_file_displaces_no_module_that_has_its_name(folder: Path) -> None:
    (folder / "json.py").write_text("def scenario(sim):\n    pass\n", encoding="utf-8")
    result = run("--scenario", "json.py:scenario", "--seeds", "1")

    assert (0, "") == (result.exit_code, result.stderr)
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    "url", ["sqlite:///s.db", "SQLITE:///s.db", "jsonl:///folder", "postgresql://db/name", "postgres://db/name"]
)
def test_a_store_that_would_keep_what_an_earlier_run_wrote_is_refused(url: str) -> None:
    result = run("--store", url)

    assert 2 == result.exit_code
    assert "Try: put {folder} into the URL" in result.stderr


def test_a_scheme_in_upper_case_means_the_same_store_for_all_processes() -> None:
    small, large = (
        run("--scenario", "take-over", "--seeds", "5", "--json", "--store", url).stdout
        for url in ("memory://", "MEMORY://")
    )

    assert json.loads(small)["scenarios"] == json.loads(large)["scenarios"]


@pytest.mark.parametrize("option", ["--seeds", "--first"])
def test_one_seed_and_several_are_not_both_run(option: str) -> None:
    result = run("--seed", "5", option, "3")

    assert 2 == result.exit_code
    assert f"Error: --seed runs one seed alone, and {option} says" in result.stderr
