"""The pytest plugin, in pytest runs of its own."""

import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from click.testing import CliRunner

from incarnate.cli.app import cli
from tests.support.careless import SUPERVISE
from tests.support.plugin_runs import FIXED, PLUGIN
from tests.support.postgres_server import execute, is_to_be_had, server_url

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
NEEDED = {"pytest", "incarnate"}

HEAD = """
    from incarnate import *

    def said(number):
        return UserMessage(id=f"e{number}", parent_id=f"e{number - 1}" if number else None, text=f"message {number}")
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> "Run":
    return Run(pytester)


class Run:
    """Runs tests in which the plugin is loaded as an installed one would be."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def __call__(self, tests: str, *options: str, conftest: str = "") -> pytest.RunResult:
        self._pytester.makeconftest(conftest)
        self._pytester.makepyfile(HEAD + tests)
        return self._pytester.runpytest_inprocess(*FIXED, "-rA", *options)


STORES = """
    def test_url(session_system):
        print("store", session_system.url.partition("://")[0])
        session = session_system.claim(ActivationKey("pik", "task"))
        session.emit(said(0))
        assert session.incarnation == 1
"""


def stores_of(result: pytest.RunResult) -> list[str]:
    return re.findall(r"^store (\w+)", result.stdout.str(), flags=re.MULTILINE)


def test_a_system_is_empty_and_in_memory_unless_told_otherwise(run: Run) -> None:
    result = run(STORES + STORES.replace("test_url", "test_again"))

    result.assert_outcomes(passed=2)
    assert ["memory", "memory"] == stores_of(result)


def test_a_test_runs_over_every_store_that_is_named(run: Run, tmp_path: Path) -> None:
    own = f"sqlite:///{tmp_path}/own.db"
    result = run(STORES, *(f"--incarnate-store={name}" for name in ("memory", "sqlite", "jsonl", own)))

    result.assert_outcomes(passed=4)
    assert ["jsonl", "memory", "sqlite", "sqlite"] == sorted(stores_of(result))
    assert (tmp_path / "own.db").exists()


def test_each_test_has_a_folder_of_its_own(run: Run) -> None:
    url = "sqlite:///{folder}/own.db?durability=process"
    result = run(STORES + STORES.replace("test_url", "test_again"), f"--incarnate-store={url}")

    result.assert_outcomes(passed=2)


def test_the_store_itself_can_be_had(run: Run) -> None:
    result = run(
        """
    def test_store(store, session_system):
        faulty = FaultyStore(store)
        with SessionSystem(faulty) as system:
            system.claim(ActivationKey("pik", "task")).emit(said(0))
        assert 2 == faulty.calls["transact"]
    """,
        "--incarnate-store=sqlite",
    )

    result.assert_outcomes(passed=1)


@pytest.mark.skipif(not is_to_be_had(), reason="no PostgreSQL server")
def test_a_postgresql_server_is_left_as_it_was(run: Run) -> None:
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'incarnate_test_%'"
    result = run(STORES + STORES.replace("test_url", "test_again"), f"--incarnate-store={server_url()}")

    result.assert_outcomes(passed=2)
    assert ["postgresql", "postgresql"] == stores_of(result)
    assert [] == execute(server_url(), schemas)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--incarnate-store=mysql", "'mysql' is none of memory, sqlite, jsonl, and no URL"),
        ("--incarnate-store=postgresql", "no URL such as postgresql://host/db"),
        ("--incarnate-seed=many", "'many' is no seed such as 7, and no range such as 0-199"),
        ("--incarnate-seed=5-3", "'5-3' ends before it begins; a range reads as 0-199"),
    ],
)
def test_an_option_that_means_nothing_ends_the_run(run: Run, option: str, told: str) -> None:
    result = run(STORES, option)

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert told in result.stderr.str()


def test_a_password_stands_in_no_test_id(run: Run) -> None:
    result = run(STORES, "--collect-only", "-v", "--incarnate-store=postgresql://me:secret@host/db")

    assert "test_url[postgresql]" in result.stdout.str()
    assert "secret" not in result.stdout.str()


def test_given_makes_sessions_whose_logs_hold_events(run: Run) -> None:
    result = run("""
    def test_given(given, session_system):
        one, other = given([said(0), said(1)]), given()
        named = given([said(0)], "order-7/task")
        assert [2, 0, 1] == [session.next_offset for session in (one, other, named)]
        assert str(named.key) == "order-7/task" and one.key != other.key
        one.emit(said(2))
        assert ["e0", "e1", "e2"] == [appended.event.id for appended in session_system.replay(one.key)]
    """)

    result.assert_outcomes(passed=1)


def test_a_log_that_holds_what_is_expected_passes(run: Run) -> None:
    result = run("""
    def test_replays(given, assert_replays):
        session = given([said(0)], "order-7/task")
        assert_replays(session, [said(0)])
        assert_replays(session.key, [said(0)])
        assert_replays("order-7/task", (event for event in [said(0)]))
        assert_replays(session, [UserMessage(id="x", parent_id="y", text="message 0")], ignore=("id", "parent_id"))
        assert_replays("order-7/other", [])

    def test_a_session_of_another_system(assert_replays):
        with SessionSystem.open("memory://") as system:
            session = system.claim(ActivationKey("pik", "task"))
            session.emit(said(0))
            assert_replays(session, [said(0)])
    """)

    result.assert_outcomes(passed=2)


def test_a_log_that_differs_is_shown_line_by_line(run: Run) -> None:
    result = run("""
    def test_replays(given, assert_replays):
        assert_replays(given([said(0), said(1), said(2)], "order-7/task"), [said(0), said(7), said(2)])
    """)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: order-7/task holds 3 events, not those expected:",
            "*--- expected",
            "*+++ the log of order-7/task",
            '* UserMessage {"id":"e0","parent_id":null,"text":"message 0"}',
            '*-UserMessage {"id":"e7","parent_id":"e6","text":"message 7"}',
            '*+UserMessage {"id":"e1","parent_id":"e0","text":"message 1"}',
        ]
    )


def test_an_integer_is_not_taken_for_a_truth_value(run: Run) -> None:
    result = run("""
    def test_replays(given, assert_replays):
        call = ToolCall(id="a", parent_id=None, call_id="c", name="n", args=1)
        assert_replays(given([call]), [ToolCall(id="a", parent_id=None, call_id="c", name="n", args=True)])
    """)

    result.assert_outcomes(failed=1)


MESSAGES = """
    import pykka

    class Greeter(pykka.ThreadingActor):
        def __init__(self, session):
            super().__init__()
            self.session = session

        def on_receive(self, message):
            self.session.emit(said(0))
            return "done"

    class Listener(pykka.ThreadingActor):
        def on_receive(self, message):
            pass
"""


@pytest.mark.parametrize("dispatcher", ["calling", "thread"])
def test_messages_are_recorded_with_their_senders(run: Run, dispatcher: str) -> None:
    result = run(
        MESSAGES
        + f"""
    def test_messages(store, message_log):
        with SessionSystem(store, dispatcher="{dispatcher}") as system:
            session = system.claim(ActivationKey("pik", "task"))
            listener, greeter = Listener.start(), Greeter.start(session)
            try:
                system.activation(session.key).ask(Subscribe(listener))
                assert greeter.ask("greet") == "done"
            finally:
                greeter.stop()
                listener.stop()
        sent = [(one.sender, one.receiver, one.kind, type(one.message).__name__) for one in message_log]
        assert sent[:5] == [
            (None, "pik/task", "ask", "Claim"),
            (None, "pik/task", "ask", "Subscribe"),
            (None, "Greeter", "ask", "str"),
            ("Greeter", "pik/task", "ask", "Append"),
            ("pik/task", "Listener", "tell", "Appended"),
        ]
        assert [one.message for one in message_log.to("Greeter")][0] == "greet"
        assert len(message_log.to(session.key)) == 3
        assert ["message 0"] == [append.event.text for append in message_log.of(Append)]
        assert message_log.names()[:2] == ["Claim", "Subscribe"]
        assert str(message_log).splitlines()[0] == "(outside) -> pik/task: ask Claim()"
        message_log.clear()
        assert len(message_log) == 0
    """
    )

    result.assert_outcomes(passed=1)


def test_after_the_test_nothing_is_recorded_any_more(run: Run) -> None:
    result = run("""
    logs = []

    def test_first(session_system, message_log):
        logs.append(message_log)
        session_system.claim(ActivationKey("pik", "task"))

    def test_second(session_system):
        before = len(logs[0])
        session_system.claim(ActivationKey("pik", "task"))
        assert before == len(logs[0]) == 1
    """)

    result.assert_outcomes(passed=2)


SUPERVISED = """
    from incarnate.simulation import persist

    def supervisor(process):
        session = persist(process, process.system.claim, ActivationKey("pik", "task"))
        persist(process, session.emit, said(session.next_offset))

    def test_simulated(simulation):
        print("seed", simulation.seed)
        simulation.process("a", supervisor)
        simulation.process("b", supervisor)
"""


def test_a_simulation_is_run_and_checked_as_its_test_ends(run: Run) -> None:
    result = run(SUPERVISED, "--incarnate-seed=0-4", "--incarnate-seed=9")

    result.assert_outcomes(passed=6)
    assert ["0", "1", "2", "3", "4", "9"] == re.findall(r"^seed (\d+)", result.stdout.str(), flags=re.MULTILINE)


def test_what_a_simulation_finds_fails_the_test_and_tells_its_seed(run: Run, pytester: pytest.Pytester) -> None:
    result = run(
        SUPERVISED.replace(
            "persist(process, session", "assert process.name != 'b', 'b is wrong'; persist(process, session"
        ),
        "--incarnate-seed=3",
        "--incarnate-store=sqlite",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*b is wrong*"])
    again, *_ = re.findall(r"The same run again: pytest (.*)", result.stdout.str())
    file, *rest = again.split("::", 1)
    assert (pytester.path / file.removeprefix("'")).exists()
    assert ["test_simulated[sqlite-seed3]' --incarnate-store sqlite --incarnate-seed 3"] == rest


def test_fixtures_of_the_tests_themselves_win(run: Run) -> None:
    result = run(
        """
    def test_own(store, simulation, given):
        assert (store, simulation, given) == ("own store", "own simulation", "own given")
    """,
        "--incarnate-store=memory",
        "--incarnate-store=sqlite",
        "--incarnate-seed=0-9",
        conftest="""
    import pytest
    @pytest.fixture
    def store(): return "own store"
    @pytest.fixture
    def simulation(): return "own simulation"
    @pytest.fixture
    def given(): return "own given"
    """,
    )

    result.assert_outcomes(passed=1)


def isolated(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_loading_it_needs_no_extra_and_starts_nothing() -> None:
    told = isolated(
        "import sys, threading\n"
        "for name in ('greenlet', 'psycopg', 'click', 'rich', 'agents'): sys.modules[name] = None\n"
        f"import {PLUGIN}\n"
        "print(threading.active_count(), 'sqlite3' in sys.modules)"
    )

    assert "1 False" == told


def test_where_it_is_installed_pytest_has_it_by_itself(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(session_system): assert session_system.url == 'memory://'")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=1)


def test_the_tests_of_the_guide_pass(pytester: pytest.Pytester) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    pytester.makepyfile(test_guide="\n".join(blocks))
    result = pytester.runpytest_inprocess(*FIXED, "--incarnate-store=memory", "--incarnate-store=sqlite")

    assert {"passed"} == set(result.parseoutcomes())
    assert 2 * len(re.findall(r"^def test_", "\n".join(blocks), flags=re.MULTILINE)) == result.parseoutcomes()["passed"]


def test_the_guide_needs_the_extra_that_it_names_and_no_other(pytester: pytest.Pytester) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    told = re.findall(r"pip install pytest '\.\[(.+?)\]'", GUIDE)
    lines = [line for name in extras if name not in told for line in extras[name]]
    needless = {word for line in lines for word in re.findall(r"^[\w-]+", line)}
    modules = [name for name, brought in packages_distributions().items() if (needless - NEEDED).intersection(brought)]
    pytester.makeconftest(f"import sys\nsys.modules.update(dict.fromkeys({modules}))")
    pytester.makepyfile(test_guide="\n".join(re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)))
    result = pytester.runpytest_subprocess(*FIXED)

    assert ["simulation"] == told
    assert {"click", "rich", "psycopg", "agents", "hypothesis"} <= set(modules)
    assert {"passed"} == set(result.parseoutcomes())


def test_without_the_extra_a_simulation_names_it(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from incarnate.simulation import scheduler\nscheduler.greenlet = None")
    pytester.makepyfile("def test_it(simulation): pass")
    result = pytester.runpytest_subprocess(*FIXED)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs the extra 'simulation', which is not installed"])


def test_a_log_that_differs_is_shown_as_in_the_guide(pytester: pytest.Pytester) -> None:
    [shown] = re.findall(r"^```\n(AssertionError.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    program = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)[0]
    pytester.makepyfile(test_guide=program.replace("answer_open_calls(session, [", "print([", 1))
    result = pytester.runpytest_inprocess(*FIXED, "-k", "cut_short")

    result.stdout.fnmatch_lines([f"*{line.replace('[', '[[]')}" for line in shown.splitlines()], consecutive=True)


BESIDE = f"""
{SUPERVISE}
def divide(process):
    1 / 0
"""
EXPLORES = """
    from beside_explores import divide, supervise
    from incarnate.simulation import explore

    def careless(sim):
        sim.process("a", supervise)

    def careless_in_a_line_of_its_own(sim):
        sim.process("a", divide)

    def test_careless():
        explore(careless)

    def test_divide():
        explore(careless_in_a_line_of_its_own)
"""


@pytest.fixture
def explored(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return explored_in(pytester)


def explored_in(pytester: pytest.Pytester) -> list[str]:
    """The lines of a pytest run in which two explorations fail; the tests are in a folder below."""
    folder = pytester.mkdir("tests")
    (folder / "beside_explores.py").write_text(textwrap.dedent(BESIDE), encoding="utf-8")
    (folder / "test_explores.py").write_text(textwrap.dedent(EXPLORES), encoding="utf-8")
    return pytester.runpytest_inprocess(*FIXED, "--import-mode=prepend").outlines


def test_the_command_that_explore_prints_in_a_test_repeats_the_run_from_there(explored: list[str]) -> None:
    command = next(line for line in explored if "Try: repeat it with " in line).partition(" with incarnate ")[2]
    result = CliRunner().invoke(cli, command.split())

    assert "simulate --scenario tests/test_explores.py:careless --seed 17" == command
    assert 1 == result.exit_code
    assert f"Try: incarnate {command}\n" in result.stderr


def test_a_module_on_pythonpath_is_repeated_by_its_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")
    lines = explored_in(pytester)

    assert [line for line in lines if "incarnate simulate --scenario test_explores:careless --seed 17" in line]


def test_a_failed_exploration_shows_the_lines_of_the_test_and_none_of_the_kit(explored: list[str]) -> None:
    shown = explored[explored.index(next(line for line in explored if "test_careless ___" in line)) :]
    careless, divide = "\n".join(shown).partition("short test summary")[0].split(" test_divide _")

    assert len(careless.splitlines()) < 12
    assert ">       explore(careless)" in careless
    assert len(divide.splitlines()) < 24
    assert ">       1 / 0" in divide
    assert ">       explore(careless_in_a_line_of_its_own)" in divide
    assert "simulation/" not in careless + divide
