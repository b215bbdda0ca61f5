"""Writers that are killed, and disks that are full: what was synced stays, and no two records merge."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from incarnate.domain.errors import StoreBusyError
from incarnate.domain.transcripts.rows import encode_row
from incarnate.storage.transcripts import TranscriptFile
from tests.support.transcript_writer import ROUNDS, SESSION, numbered, texts

WRITER = Path(__file__).parents[1] / "support" / "transcript_writer.py"


def run(harm: str, folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, WRITER, harm, folder], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.split(b"\n") if line]


def start(harm: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, WRITER, harm, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run("killed_at_random_bytes", tmp_path_factory.mktemp("killed"))


def test_a_writer_killed_at_any_byte_loses_nothing_that_was_synced(rounds: list[dict[str, Any]]) -> None:
    lost = [one for one in rounds if not set(one["synced"]) <= set(one["found"])]

    assert [9] * ROUNDS == [one["signal"] for one in rounds]
    assert [] == lost


def test_no_two_records_merge_after_a_kill(rounds: list[dict[str, Any]]) -> None:
    expected = [texts([numbered(number) for number in range(len(one["found"]))]) for one in rounds]

    assert expected == [one["found"] for one in rounds]
    assert any(one["torn"] for one in rounds)
    assert any(not one["torn"] for one in rounds)


@pytest.mark.parametrize("acknowledged", random.Random(3).sample(range(1, 60), 5))
def test_a_writer_killed_from_outside_loses_nothing_that_was_synced(tmp_path: Path, acknowledged: int) -> None:
    with start("endless", tmp_path) as writer:
        assert writer.stdout is not None
        for _ in range(acknowledged):
            writer.stdout.readline()
        writer.kill()
        rest = writer.stdout.read()
    synced = acknowledged + rest.count(b"\n")
    with TranscriptFile.open(tmp_path, SESSION) as transcript:
        found = transcript.events()

    assert [numbered(number) for number in range(len(found))] == found
    assert synced <= len(found)


def test_a_cut_at_every_byte_keeps_whole_records_and_takes_the_next(tmp_path: Path) -> None:
    lines = [encode_row(numbered(number)) + b"\n" for number in range(4)]
    whole = b"".join(lines)
    for cut in range(len(whole) + 1):
        with TranscriptFile.open(tmp_path, f"cut-{cut}") as transcript:
            transcript.path.write_bytes(whole[:cut])
        with TranscriptFile.open(tmp_path, f"cut-{cut}") as transcript:
            kept = len(transcript.events())
            transcript.append(numbered(99))
            appended = transcript.path.read_bytes()

        assert b"".join([*lines[:kept], encode_row(numbered(99)) + b"\n"]) == appended
        assert cut - len(b"".join(lines[:kept])) < len(lines[min(kept, 3)]) - 1


def test_what_a_full_disk_refuses_waits_and_follows_in_order(tmp_path: Path) -> None:
    full, roomy = run("full_disk", tmp_path)
    taken = full["said"].index(False)
    lines = [encode_row(numbered(number)).decode() + "\n" for number in range(21)]

    assert [True] * taken + [False] * (19 - taken) == full["said"]
    assert 19 - taken == full["errors"] == roomy["errors"]
    assert "".join(lines[: taken + 1]) == full["on_disk"]
    assert texts([numbered(number) for number in range(20)]) == full["events"]
    assert [True] == roomy["said"]
    assert "".join(lines) == roomy["on_disk"]


def test_a_second_process_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    with start("holding", tmp_path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(StoreBusyError):
            TranscriptFile.open(tmp_path, SESSION)
        writer.communicate()
    with TranscriptFile.open(tmp_path, SESSION) as transcript:
        found = transcript.events()

    assert [] == found
