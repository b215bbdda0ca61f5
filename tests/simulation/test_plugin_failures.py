"""What the pytest plugin shows of a test that fails: a command that repeats it, and the end of its trace."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.plugin_runs import FIXED

pytest_plugins = ["pytester"]

OWN = "sqlite:///{folder}/own.db?durability=process"
CASES = """
import pytest

class TestCases:
    @pytest.mark.parametrize("text", ["a b", "it's $HOME::x[1]"])
    def test_param(self, simulation, store_url, text):
        fails(simulation, store_url, text)

def test_bad(simulation, store_url):
    fails(simulation, store_url)

def fails(simulation, store_url, text=""):
    def supervise(process):
        assert not text, f"case {simulation.seed} {store_url.rpartition('/')[2]} {text}!"
        assert text, f"case {simulation.seed} {store_url.rpartition('/')[2]}!"

    simulation.process("a", supervise)
"""
LONG = """
def test_long(simulation):
    def supervise(process):
        for _ in range(100):
            process.sleep(1)
        assert process.name == "a", "at last"

    for name in ("a", "b"):
        simulation.process(name, supervise)
"""


def cases_of(text: str) -> list[str]:
    return re.findall(r"^E +AssertionError: (case .*!)$", text, flags=re.MULTILINE)


def repeated(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": shlex.join(FIXED)}
    return subprocess.run(command, shell=True, check=False, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "options",
    [
        (),
        (f"--incarnate-store={OWN}", "--incarnate-seed=17", "--incarnate-seed=17"),
        ("--incarnate-store=sqlite", f"--incarnate-store={OWN}", "--incarnate-store=memory", "--incarnate-seed=3-4"),
    ],
    ids=["plain", "url", "stores"],
)
def test_the_command_that_a_failure_prints_repeats_just_that_case(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    folder = pytester.mkdir("proj dir")
    (folder / "test_it's.py").write_text(CASES, encoding="utf-8")
    chosen = ("-k", "bad and not seed4") if len(options) > 3 else ()
    first = pytester.runpytest_inprocess(*FIXED, *options, *chosen).stdout.str()
    # Anchored: where CI is set, pytest's summary at the end gives each message a second time, whole.
    commands = re.findall(r"^E +The same run again: (.*)", first, flags=re.MULTILINE)
    again = [repeated(command, pytester.path) for command in dict(zip(cases_of(first), commands, strict=True)).values()]

    assert 3 == len(commands)
    assert [[case] for case in dict.fromkeys(cases_of(first))] == [cases_of(one.stdout) for one in again]
    assert {pytest.ExitCode.TESTS_FAILED} == {one.returncode for one in again}


def test_a_printed_command_hides_a_password_and_nothing_else(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef store_url(_incarnate_store): return 'memory://'")
    pytester.makepyfile(test_mine=CASES)
    url = "postgresql://me:s3cret@host/db?application_name=ours&password=s3cret2"
    shown = pytester.runpytest_inprocess(*FIXED, f"--incarnate-store={url}", "-k", "bad").stdout.str()

    command = (
        "pytest 'test_mine.py::test_bad[postgresql]' "
        "--incarnate-store 'postgresql://me:...@host/db?application_name=ours&password=...'"
    )
    assert f"The same run again: {command} (with the password in place of ...)\n" in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize("fixture", ["store", "simulation"])
def test_a_server_that_is_away_is_told_without_its_password(pytester: pytest.Pytester, fixture: str) -> None:
    pytester.makepyfile(f"def test_it({fixture}): pass")
    url = "postgresql://me:s3cret@127.0.0.1:1/db"
    # Of its own process: pytester forgets what is imported first in a run of its own, psycopg's C half remembers.
    result = pytester.runpytest_subprocess(*FIXED, f"--incarnate-store={url}")

    result.assert_outcomes(errors=2)  # it cannot be opened, and no schema dropped
    result.stdout.fnmatch_lines(
        ["StoreServerError: postgresql://me@127.0.0.1:1/db*", "Try: *", "the schema * dropped: *"]
    )
    assert "s3cret" not in result.stdout.str()


def test_a_failed_simulation_shows_the_end_of_its_trace(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LONG)
    lines = pytester.runpytest_inprocess(*FIXED, "--incarnate-seed=5").outlines
    title = next(place for place, line in enumerate(lines) if line.strip("- ") == "the simulation's trace, seed 5")
    [told] = re.findall(r"^\((\d+) lines before these: --incarnate-trace shows them\)$", lines[title + 1])

    assert 60 < int(told)
    assert re.search(
        r"ms  b\S*/main: failed with AssertionError$", "\n".join(lines[title + 2 : title + 42]), re.MULTILINE
    )
    assert "short test summary" in lines[title + 42]


def test_all_of_a_trace_can_be_seen(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LONG)
    shown = pytester.runpytest_inprocess(*FIXED, "--incarnate-trace").stdout.str()

    assert re.search(r"trace, seed 0 -+\n +0\.000 ms  a: starts \(1\)\n", shown)
    assert "lines before these" not in shown


def test_a_test_that_passes_or_has_no_simulation_shows_no_trace(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_good(simulation): pass\ndef test_plain(): assert 0")
    result = pytester.runpytest_inprocess(*FIXED, "-rA")

    result.assert_outcomes(passed=1, failed=1)
    assert "the simulation's trace" not in result.stdout.str()


def test_what_pytest_fail_ends_is_repeated_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="import pytest\ndef test_bad(simulation): pytest.fail('no')")
    result = pytester.runpytest_inprocess(*FIXED)

    result.stdout.fnmatch_lines(
        ["E * The same run again: pytest test_mine.py::test_bad", "*the simulation's trace, seed 0*"]
    )


HOWEVER = """
import unittest, pytest

def adds(simulation):
    simulation.process("a", lambda process: 1 / 0)

def test_through_its_request(request):
    adds(request.getfixturevalue("simulation"))

@pytest.fixture
def busy(simulation):
    adds(simulation)

def test_through_another_fixture(busy):
    pass

class TestMethods(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _given(self, simulation):
        self.simulation = simulation

    def test_of_unittest(self):
        adds(self.simulation)

    def test_of_unittest_that_is_clean(self):
        self.simulation.process("a", lambda process: None)
"""


def test_a_simulation_is_run_to_its_end_however_its_test_came_by_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=HOWEVER)
    result = pytester.runpytest_inprocess(*FIXED)
    shown = result.stdout.str()
    again = re.findall(r"^E +The same run again: pytest test_mine\.py::(.*)", shown, flags=re.MULTILINE)

    result.assert_outcomes(passed=1, failed=3)
    assert ["test_through_its_request", "test_through_another_fixture", "TestMethods::test_of_unittest"] == again
    assert 3 == shown.count("a/main: failed with ZeroDivisionError")


def test_a_simulation_that_its_test_closed_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(simulation):\n    with simulation:\n        simulation.spawn(print)")
    result = pytester.runpytest_inprocess(*FIXED)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *ClosedError: the simulation is closed: nothing of it runs any more"])


def test_an_exploration_without_a_command_shows_the_trace_of_its_smallest_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from incarnate.simulation import explore

        def test_bad():
            explore(lambda sim: sim.process("a", lambda process: 1 / 0), seeds=3)
    """)
    result = pytester.runpytest_inprocess(*FIXED)

    result.stdout.fnmatch_lines(["*the simulation's trace, seed 0*", "*a/main: failed with ZeroDivisionError"])


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("sqlite:///x.db", "put {folder} into the URL: a new folder for each test"),
        ("jsonl:///x", "put {folder} into the URL: a new folder for each test"),
        ("postgresql://me:s3cret@host/db?schema=mine", "write postgresql:// and name no schema: each test gets one"),
    ],
)
def test_a_store_that_holds_what_an_earlier_simulation_wrote_is_refused(
    pytester: pytest.Pytester, url: str, means: str
) -> None:
    pytester.makepyfile("def test_it(simulation): simulation.process('a', lambda process: None)")
    result = pytester.runpytest_inprocess(*FIXED, f"--incarnate-store={url}", "--incarnate-seed=0-3")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert f"would hold what an earlier simulation wrote, and a correct supervisor would fail on it; {means}" in (
        result.stderr.str()
    )
    assert "s3cret" not in result.stderr.str()


def test_a_store_is_refused_to_no_test_without_a_simulation(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(simulation): pass\ndef test_other(store): pass")
    options = ("--incarnate-store=sqlite:///x.db", "--incarnate-seed=0-3", "-k", "other")
    result = pytester.runpytest_inprocess(*FIXED, *options)

    result.assert_outcomes(passed=1, deselected=4)
