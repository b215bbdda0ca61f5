"""Fixtures for the tests of supervisors, in every pytest run where incarnate is installed.

`docs/testing.md` shows them. No extra is imported before a test asks for what needs it: such a run must not fail.
"""

from __future__ import annotations

import argparse
import re
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from incarnate.actors.session import Session
from incarnate.actors.system import SessionSystem
from incarnate.domain.errors import UnavailableError
from incarnate.domain.keys import ActivationKey
from incarnate.simulation.kept import is_kept
from incarnate.simulation.kit import Simulation
from incarnate.simulation.messages import MessageLog, recording
from incarnate.simulation.pytest_failure import SIMULATION, again, shown, simulation_of, trace_of
from incarnate.simulation.replays import check_replay
from incarnate.storage.locate import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable

    from incarnate.domain.events import Opaque, SessionEvent
    from incarnate.storage.port import Store

_URLS = {"memory": "memory://", "sqlite": "sqlite:///{folder}/sessions.db", "jsonl": "jsonl:///{folder}/journals"}

_ENDED_BY_CALL = pytest.StashKey[bool]()
"""Whether the test is a function, in whose call its simulation comes to its end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses stores and seeds."""
    group = parser.getgroup("incarnate", "incarnate's fixtures")
    group.addoption(
        "--incarnate-store",
        action="append",
        metavar="STORE",
        default=[],
        type=_store_url,
        help="run the tests of the fixtures store, session_system and simulation over this one: memory (the default), "
        "sqlite, jsonl, or a URL, in which {folder} is a new folder for each test; may be repeated. A postgresql:// "
        "URL that names no schema gets one for each test, which is dropped after it.",
    )
    group.addoption(
        "--incarnate-seed",
        action="append",
        metavar="SEED",
        default=[],
        type=_seeds,
        help="run the tests of the fixture simulation with this seed (0 unless given), or with those from A up to B "
        "of A-B; may be repeated",
    )
    group.addoption(
        "--incarnate-trace",
        action="store_true",
        help="show all of the trace of a simulation that failed, not its end",
    )


def _store_url(text: str) -> str:
    url = _URLS.get(text, text)
    if "://" not in url:
        names = ", ".join(_URLS)
        raise pytest.UsageError(
            f"--incarnate-store: {text!r} is none of {names}, and no URL such as postgresql://host/db"
        )
    return url


def _seeds(text: str) -> range:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text, re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed such as 7, and no range such as 0-199")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:  # no seed at all: pytest would skip the test, and a slip in CI would pass
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins; a range reads as 0-199")
    return range(first, last + 1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each store and each seed that was asked for."""
    urls = _stores(metafunc.config)
    if urls and "_incarnate_store" in metafunc.fixturenames:
        # The scheme alone: a URL may hold a password, and this is printed.
        ids = [url.partition("://")[0] for url in urls]
        metafunc.parametrize("_incarnate_store", urls, ids=ids, indirect=True)
    seeds: list[range] = metafunc.config.getoption("--incarnate-seed") or []
    if seeds and "_incarnate_seed" in metafunc.fixturenames:
        each = dict.fromkeys(seed for several in seeds for seed in several)
        metafunc.parametrize("_incarnate_seed", list(each), ids=[f"seed{seed}" for seed in each], indirect=True)


def _stores(config: pytest.Config) -> list[str]:
    """The URLs that were asked for, each once: pytest would number the ids of two that are equal."""
    return list(dict.fromkeys(config.getoption("--incarnate-store") or []))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a store for simulations that holds what an earlier one wrote, once it is known which tests are to run."""
    for item in items:
        if isinstance(item, pytest.Function) and "_incarnate_seed" in item.fixturenames and hasattr(item, "callspec"):
            _refuse_kept(str(item.callspec.params.get("_incarnate_store", _URLS["memory"])))


def _refuse_kept(url: str) -> None:
    if not is_kept(url) or _gets_a_schema(url):
        return
    folder = "put {folder} into the URL: a new folder for each test"
    means = "write postgresql:// and name no schema: each test gets one" if url.startswith("postgres") else folder
    raise pytest.UsageError(
        f"--incarnate-store: {shown(url)} would hold what an earlier simulation wrote, and a correct supervisor would "
        f"fail on it; {means}"
    )


def _gets_a_schema(url: str) -> bool:
    """Whether each test gets a schema of a PostgreSQL server for itself."""
    return url.startswith("postgresql://") and not re.search(r"[?&]schema=", url)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Let a simulation come to its end inside of its test, so that what it finds fails the test."""
    __tracebackhide__ = True
    pyfuncitem.stash[_ENDED_BY_CALL] = True
    try:
        outcome = yield
        _end(pyfuncitem)
    except (Exception, pytest.fail.Exception) as error:
        _tell_command(pyfuncitem, error)
        raise
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """The same where pytest calls no function: a method of `unittest.TestCase`."""
    __tracebackhide__ = True
    outcome = yield
    if isinstance(item, pytest.Function) and not item.stash.get(_ENDED_BY_CALL, False):
        try:
            _end(item)
        except (Exception, pytest.fail.Exception) as error:
            _tell_command(item, error)
            raise
    return outcome


def _end(test: pytest.Function) -> None:
    __tracebackhide__ = True
    sim = simulation_of(test)
    if sim is not None:
        sim.run()
        sim.check()


def _tell_command(test: pytest.Function, error: BaseException) -> None:
    if simulation_of(test) is not None:
        error.add_note(f"The same run again: {again(test, _URLS, _stores(test.config))}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of a failed simulation's trace."""
    report = yield
    if report.failed and call.when == "call" and call.excinfo is not None:
        section = trace_of(item, call.excinfo.value, whole=bool(item.config.getoption("--incarnate-trace")))
        report.sections += [section] if section is not None else []
    return report


@pytest.fixture
def _incarnate_store(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", _URLS["memory"]))


@pytest.fixture
def _incarnate_seed(request: pytest.FixtureRequest) -> int:
    return int(getattr(request, "param", 0))


@pytest.fixture
def store_url(_incarnate_store: str, request: pytest.FixtureRequest) -> Generator[str]:
    """The URL of a store that is empty, unless it was given by a URL that always names the same."""
    if "{folder}" in _incarnate_store:
        folder = request.getfixturevalue("tmp_path")
        yield _incarnate_store.replace("{folder}", str(folder))
    elif _gets_a_schema(_incarnate_store):
        schema = f"incarnate_test_{uuid.uuid4().hex}"
        yield f"{_incarnate_store}{'&' if '?' in _incarnate_store else '?'}schema={schema}"
        _drop(_incarnate_store, schema)
    else:
        yield _incarnate_store


def _drop(url: str, schema: str) -> None:
    import psycopg  # noqa: PLC0415 - an extra, which the store of that URL has needed already
    from psycopg import sql  # noqa: PLC0415

    from incarnate.storage.postgres_url import parse  # noqa: PLC0415

    try:
        with psycopg.connect(**parse(url).parameters, autocommit=True) as db:
            db.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
    except psycopg.Error as error:
        pytest.fail(f"the schema {schema} could not be dropped: {error}", pytrace=False)


@contextmanager
def _without_frames() -> Generator[None]:
    """Tell why there is no store without its frames: pytest shows their arguments, and a URL may hold a password."""
    try:
        yield
    except UnavailableError as error:
        told = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
        pytest.fail("\n".join(told), pytrace=False)


@pytest.fixture
def store(store_url: str) -> Generator[Store]:
    """A store, empty, of the kind that `--incarnate-store` names; in memory unless given."""
    with _without_frames():
        opened = open_store(store_url)
    with opened:
        yield opened


@pytest.fixture
def session_system(store: Store) -> Generator[SessionSystem]:
    """A session system over the fixture `store`."""
    with SessionSystem(store) as system:
        yield system


@pytest.fixture
def given(session_system: SessionSystem) -> Callable[..., Session]:
    """`given(events, key)`: a session of `session_system`, just claimed, whose log holds `events` already.

    `key` is a key or its text; each call without one takes another.
    """
    made = 0

    def make(events: Iterable[SessionEvent | Opaque] = (), key: ActivationKey | str | None = None) -> Session:
        nonlocal made
        made += key is None
        chosen = f"given-{made}/test" if key is None else key
        where = ActivationKey.parse(chosen) if isinstance(chosen, str) else chosen
        session_system.claim(where).emit_many(events)
        return session_system.claim(where)

    return make


@pytest.fixture
def assert_replays(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`assert_replays(log, expected, ignore=())`: the log holds just these events, or the difference is shown.

    `log` is a session of any system, or a key (or its text) of `session_system`; `ignore` names fields that may
    differ, such as `("id", "parent_id")`.
    """

    def check(
        log: Session | ActivationKey | str, expected: Iterable[SessionEvent | Opaque], ignore: Collection[str] = ()
    ) -> None:
        __tracebackhide__ = True
        system = None if isinstance(log, Session) else request.getfixturevalue("session_system")
        check_replay(system, log, expected, ignore)

    return check


@pytest.fixture
def message_log() -> Generator[MessageLog]:
    """Every message that an actor of this process is sent while the test runs, in the order of their sending."""
    with recording() as log:
        yield log


@pytest.fixture
def simulation(_incarnate_seed: int, store_url: str, request: pytest.FixtureRequest) -> Generator[Simulation]:
    """A simulation of the seed that `--incarnate-seed` names; it is run to its end and checked as the test ends."""
    with _without_frames():
        sim = Simulation(_incarnate_seed, store=store_url)
    request.node.stash[SIMULATION] = sim
    with sim:
        yield sim
