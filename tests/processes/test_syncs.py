"""Counts the syncs that really reach the disk, with strace: those between one acknowledgement and the next."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import Child
from tests.support.stores import jsonl_url, sqlite_url

ALWAYS_SYNCED = {"lease", "claim", "checkpoint", "turn", "fence"}  # I11
SAID = re.compile(r'write\(1, "(\w+)\\n"')
SYNCED = re.compile(r"(fsync|fdatasync)\(.*\) += 0$|(fsync|fdatasync) resumed>.*\) += 0$")


@pytest.fixture(scope="module")
def strace() -> str:
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed")
    tried = subprocess.run([found, "-o", "/dev/null", "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"strace may not trace here: {tried.stderr.decode()}")
    return found


def syncs(strace: str, url: str, file: Path) -> list[tuple[str, int]]:
    """Each acknowledged command with the number of syncs before it."""
    under = (strace, "-f", "-s", "32", "-e", "trace=fsync,fdatasync,write", "-e", "signal=none", "-o", str(file))
    with Child("every_command", url, under=under) as child:
        said = child.end()
    counted, count = [], 0
    for line in file.read_text().splitlines():
        if SYNCED.search(line):
            count += 1
        elif found := SAID.search(line):
            counted.append((found[1], count))
            count = 0
    assert said == [name for name, _ in counted]
    assert "begin" == said[0]
    return counted[1:]


URLS = {"sqlite": sqlite_url, "jsonl": jsonl_url}


@pytest.mark.parametrize("backend", URLS)
def test_i6_every_acknowledged_command_has_reached_the_disk(strace: str, tmp_path: Path, backend: str) -> None:
    counted = syncs(strace, URLS[backend](tmp_path), tmp_path / "trace")

    assert {*ALWAYS_SYNCED, "emit", "emit_many"} == {name for name, _ in counted}
    assert [] == [(name, count) for name, count in counted if count < 1]


@pytest.mark.parametrize("backend", URLS)
def test_i11_with_durability_process_all_but_events_has_reached_the_disk(
    strace: str, tmp_path: Path, backend: str
) -> None:
    counted = syncs(strace, URLS[backend](tmp_path, "?durability=process"), tmp_path / "trace")

    assert [] == [(name, count) for name, count in counted if name in ALWAYS_SYNCED and count < 1]
    assert 0 == sum(count for name, count in counted if name not in ALWAYS_SYNCED)
    assert ALWAYS_SYNCED < {name for name, _ in counted}
