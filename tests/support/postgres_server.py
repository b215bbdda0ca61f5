"""PostgreSQL servers for the tests: the one that INCARNATE_TEST_POSTGRES names, or throw-away ones of Debian's package.

A throw-away server lies in a temporary folder, listens on a socket there alone, and runs with its own defaults: it
syncs the disk. The one that the tests of a session share does not: a killed process or server loses nothing by that,
only a power cut would, and waiting for the disk was nine tenths of their time. As root it runs as the user `postgres`,
since a server refuses to be root's.
"""

import atexit
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self

import psycopg

from tests.support.waiting import soon

VARIABLE = "INCARNATE_TEST_POSTGRES"
# Waits for the end of the pipe that this process holds, however it ends, and takes the server away.
_KEEPER = 'folder=$1; shift; read -r _; "$@"; rm -rf "$folder"'
_STOP = ("--mode=immediate", "--silent", "stop")
HOW = f"`apt-get install postgresql` provides one, or {VARIABLE}=postgresql://... names a running one"


class Server:
    """A server of the test's own, that may be killed and started again."""

    def __init__(self, *settings: str) -> None:
        self._programs = programs()
        self._folder = tempfile.mkdtemp(prefix="incarnate-pg-")
        self._settings = settings
        self._user = "postgres" if os.geteuid() == 0 else ""
        if self._user:
            shutil.chown(self._folder, self._user)
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER, "sh", self._folder, *self._line("pg_ctl", "--pgdata", self._data, *_STOP)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is not for it
            cwd="/",
        )
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", self._data)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql:///postgres?host={self._folder}&user=postgres"

    @property
    def _data(self) -> str:
        return f"{self._folder}/data"

    def start(self) -> None:
        options = ["listen_addresses=", f"unix_socket_directories={self._folder}", *self._settings]
        line = " ".join(f"-c {shlex.quote(option)}" for option in options)
        self._run(
            "pg_ctl", "--pgdata", self._data, "--wait", "--log", f"{self._folder}/log", "--options", line, "start"
        )

    def kill(self) -> None:
        """SIGKILL the postmaster, and wait until its children have noticed and ended."""
        lock = Path(self._data) / "postmaster.pid"
        os.kill(int(lock.read_text().split()[0]), signal.SIGKILL)
        assert soon(lambda: not self._processes(), 30)
        for file in (lock, *Path(self._folder).glob(".s.PGSQL.*")):
            file.unlink()  # where nobody reaps the dead, the next server would take it for alive

    def _processes(self) -> list[int]:
        """All that run in the server's folder; of the dead it cannot be told."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if str((process / "cwd").readlink()) == self._data:
                    found.append(int(process.name))
        return found

    def stop(self) -> None:
        self._keeper.communicate()

    def execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return execute(self.url, statement, *values)

    def _line(self, program: str, *arguments: str) -> list[str]:
        as_user = ["runuser", "-u", self._user, "--"] if self._user else []
        return [*as_user, str(self._programs / program), *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        line = self._line(program, *arguments)
        done = subprocess.run(
            line, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode:
            log = Path(self._folder) / "log"
            raise AssertionError(f"{line}: {done.stdout.decode()}{log.read_text() if log.exists() else ''}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()


def programs() -> Path:
    """Where the server's programs lie; a skip where they lie nowhere."""
    found = _newest()
    if found is None:
        import pytest  # noqa: PLC0415 - the benchmarks start a server too, and are no tests

        pytest.skip(f"no PostgreSQL server: {HOW}")
    return found.resolve().parent


def _newest() -> Path | None:
    of_debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("postgres")
    return of_debian[-1] if of_debian else None if on_path is None else Path(on_path)


def is_to_be_had() -> bool:
    """Whether a test may have a server."""
    return VARIABLE in os.environ or _newest() is not None


def execute(url: str, statement: str, *values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


@cache
def server_url() -> str:
    """The server that the tests of a session share."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    server = Server("fsync=off", "full_page_writes=off")
    atexit.register(server.stop)
    return server.url


def postgres_url(folder: Path, options: str = "") -> str:
    """A store of its own for each folder: a schema named after it."""
    url = server_url()
    schema = schema_of(folder)
    _made.add(schema)
    return f"{url}{'&' if '?' in url else '?'}schema={schema}{options}"


def schema_of(folder: Path) -> str:
    return f"test_{hashlib.sha256(str(folder).encode()).hexdigest()[:24]}"


_made: set[str] = set()


@atexit.register
def drop_schemas() -> None:
    """Leave a server that is not ours as it was."""
    named = os.environ.get(VARIABLE)
    if named:
        for schema in _made:
            execute(named, f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
