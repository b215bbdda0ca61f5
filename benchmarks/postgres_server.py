"""A PostgreSQL server of the benchmarks' own, with its own defaults (it syncs the disk), gone afterwards."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["WHY_NOT", "server"]

WHY_NOT = "no PostgreSQL server: apt-get install postgresql"


@contextmanager
def server() -> Generator[str | None]:
    """The URL of a fresh server; None where its programs are not installed."""
    programs = _programs()
    if programs is None:
        yield None
        return
    folder = tempfile.mkdtemp(prefix="incarnate-pg-")
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # a server refuses to be root's
    if as_user:
        shutil.chown(folder, "postgres")

    def run(program: str, *arguments: str) -> None:
        line = [*as_user, str(programs / program), *arguments]
        subprocess.run(line, check=True, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    data = f"{folder}/data"
    try:
        run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", data)
        options = f"-c listen_addresses= -c unix_socket_directories={folder}"
        run("pg_ctl", "--pgdata", data, "--wait", "--log", f"{folder}/log", "--options", options, "start")
        try:
            yield f"postgresql:///postgres?host={folder}&user=postgres"
        finally:
            run("pg_ctl", "--pgdata", data, "--mode=immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    of_debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("postgres")
    found = of_debian[-1] if of_debian else None if on_path is None else Path(on_path)
    return None if found is None else found.resolve().parent
