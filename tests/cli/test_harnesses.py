"""What is told of harnesses, and what an ingest finds out by itself."""

import json
from pathlib import Path

import pytest

from incarnate.domain.dialects.registry import DIALECTS
from tests.support.commands import KEY, run

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
PI = RECORDINGS / "pi" / "S2" / "stdout.jsonl"


def test_every_harness_is_listed_with_what_resumes_its_dead_sessions() -> None:
    listed = json.loads(run("harnesses", "--json").stdout)
    [pi] = [one for one in listed if one["harness"] == "pi"]

    assert sorted(DIALECTS) == [one["harness"] for one in listed]
    assert (True, True, True) == (pi["streaming"], pi["resumeById"], pi["durableResume"])
    assert ["pi", "--mode", "json", "--session", "SESSION", "PROMPT"] == pi["command"]
    assert all(one["durableResume"] == (one["streaming"] and one["resumeById"]) for one in listed)


def test_a_person_reads_the_same_list() -> None:
    lines = run("harnesses").stdout.splitlines()

    assert len(DIALECTS) + 1 == len(lines)
    assert ["pi", "yes", "yes", "yes", "pi", "--mode"] == next(line for line in lines if line[:3] == "pi ").split()[:6]
    assert any("restore(SESSION)" in line for line in lines)


def test_a_file_tells_whose_it_is() -> None:
    told = json.loads(run("ingest", "--key", KEY, "--json", PI).stdout)

    assert ("pi", 12, 0) == (told["harness"], told["appended"], told["refused"])


def test_a_pipe_tells_whose_it_is() -> None:
    told = json.loads(run("ingest", "--key", KEY, "--json", stdin=PI.read_bytes()).stdout)

    assert ("pi", 12) == (told["harness"], told["appended"])


def test_a_file_that_is_nobodys_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_bytes(b"hello\n")
    result = run("ingest", "--key", KEY, file)

    assert 1 == result.exit_code
    assert "it holds no record of any known harness\nTry: check what it is: incarnate harnesses lists" in result.stderr


def test_one_session_of_a_folder_is_asked_for() -> None:
    result = run("ingest", "--key", KEY, RECORDINGS / "pi")

    assert 1 == result.exit_code
    assert "sessions: " in result.stderr
    assert "Try: name one with --session" in result.stderr
    assert 0 == run("ingest", "--key", KEY, "--session", "01a22ddd-b393", RECORDINGS / "pi").exit_code


@pytest.mark.parametrize("form", ["sqlite", "jsonl"])
def test_what_maps_to_nothing_is_kept_beside_the_store(form: str, tmp_path: Path) -> None:
    store = tmp_path / ("sessions.db" if form == "sqlite" else "sessions")
    told = json.loads(run("ingest", "--key", KEY, "--keep-raw", "--json", "--store", f"{form}:///{store}", PI).stdout)
    [kept] = (tmp_path / f"{store.name}.raw").iterdir()

    assert told["kept"] == sum(told["ignored"].values()) == len(kept.read_bytes().splitlines())


def test_it_is_so_beside_a_store_in_the_folder_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    assert 0 == run("ingest", "--key", KEY, "--keep-raw", "--store", "jsonl:///.", PI).exit_code
    assert 1 == len(list((tmp_path / "here.raw").iterdir()))


def test_damage_is_told_to_a_person_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "damaged.jsonl"
    first, rest = PI.read_bytes().split(b"\n", 1)
    file.write_bytes(first + rest.replace(b"\n", b'\nLoading\n{"cut\n', 1))
    result = run("ingest", "--key", KEY, file)

    assert 3 == result.exit_code
    for part in ("line 1: glued to what stands before it", "line 2: Loading", "line 3: a record that is cut short"):
        assert part in result.stdout
