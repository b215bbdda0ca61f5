"""What an ingest notes of the harness's session, so that an agent which dies in its first turn can be resumed."""

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from incarnate.actors.ingest import ingest
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.system import SessionSystem
from incarnate.actors.turn_checkpoints import named_session
from incarnate.domain.checkpoints import Checkpoint
from incarnate.domain.commands import GetHead, LatestCheckpoint
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import StoreBusyError
from incarnate.domain.heads import EMPTY_HEAD
from incarnate.storage.memory import MemoryStore
from tests.support.commands import KEY, recording

SESSIONS = {
    name: msgspec.json.decode(recording(name).read_bytes().split(b"\n")[0])["session_id"] for name in ("S4", "S7")
}


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def feed(system: SessionSystem, data: bytes, harness: str = "claude-code", **options: Any) -> IngestReport:
    return ingest(system, KEY, find_dialect(harness), io.BytesIO(data), **options)


def sha() -> str:
    return "sha"


def newest(system: SessionSystem) -> Checkpoint | None:
    found: Checkpoint | None = system.activation(KEY).ask(LatestCheckpoint())
    return found


def test_an_agent_that_died_in_its_first_turn_left_a_checkpoint_that_names_its_session(system: SessionSystem) -> None:
    report = feed(system, recording("S4").read_bytes(), commit_sha=sha)
    found = newest(system)

    assert found is not None
    assert (1, "session:1", 1, "sha") == (report.checkpoints, found.id, found.offset, found.commit_sha)
    assert ("claude-code", SESSIONS["S4"]) == named_session(found)


def test_the_first_checkpoint_never_stands_at_0_where_a_restore_would_erase_the_log(system: SessionSystem) -> None:
    lines = recording("S4").read_bytes().splitlines(keepends=True)
    silent = b'{"type":"system","subtype":"hook_started","session_id":"%s"}\n' % SESSIONS["S4"].encode()
    feed(system, silent + lines[0], commit_sha=sha)
    seed = system.claim(KEY).restore()

    assert (1, 0) == (len(seed.events), seed.discards)


def test_the_session_is_noted_once_by_however_many_runs_and_pipes(system: SessionSystem) -> None:
    data = recording("S4").read_bytes()
    reports = [feed(system, data, commit_sha=sha), feed(system, data, commit_sha=sha)]
    reports.append(feed(system, data, commit_sha=sha, at_head=True))

    assert [1, 0, 0] == [report.checkpoints for report in reports]


def test_a_note_that_a_killed_run_still_owed_is_made_by_the_next(system: SessionSystem) -> None:
    data = recording("S4").read_bytes()
    feed(system, data)
    assert newest(system) is None
    report = feed(system, data, commit_sha=sha)
    found = newest(system)

    assert found is not None
    assert (1, "session:1") == (report.checkpoints, found.id)


def test_another_session_in_the_same_file_is_noted_after_its_first_events(system: SessionSystem) -> None:
    first, second = recording("S4").read_bytes(), recording("S7").read_bytes().splitlines(keepends=True)
    events = feed(system, first, commit_sha=sha).next_offset
    feed(system, first + second[0], commit_sha=sha)
    found = newest(system)

    assert found is not None
    assert ("claude-code", SESSIONS["S7"]) == named_session(found)
    assert events < found.offset <= system.activation(KEY).ask(GetHead()).next_offset


def test_the_runs_of_one_session_in_one_file_are_one_log(system: SessionSystem) -> None:
    died, resumed = recording("S4").read_bytes(), recording("S5").read_bytes()
    first = feed(system, died, commit_sha=sha)
    second = feed(system, died + resumed, commit_sha=sha)

    assert (first.appended, 0) == (second.skipped, second.beyond)
    assert second.appended > 0
    assert first.session_id == second.session_id


def test_records_of_another_harness_do_not_take_the_activation(system: SessionSystem) -> None:
    owner = system.claim(KEY)
    report = feed(system, recording("S7").read_bytes(), "kimi")

    assert (None, 0, 24, True) == (report.incarnation, report.mapped, report.lines, report.barren)
    assert owner.next_turn() == 0


def test_an_empty_file_claims_nothing(system: SessionSystem) -> None:
    report = feed(system, b"", commit_sha=sha)

    assert (None, 0, False) == (report.incarnation, report.lines, report.barren)
    assert EMPTY_HEAD == system.activation(KEY).ask(GetHead())


def test_a_pipe_claims_whatever_comes_through_it(system: SessionSystem) -> None:
    report = feed(system, recording("S7").read_bytes(), "kimi", at_head=True)

    assert (1, True) == (report.incarnation, report.barren)


def test_an_ingest_that_gives_up_tells_the_time_of_all_its_tries(
    system: SessionSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> Any:
        raise StoreBusyError("busy for 1 second")

    monkeypatch.setattr(MemoryStore, "transact", busy)
    with pytest.raises(StoreBusyError, match="busy for 1 second; gave up after 5 tries in 0 seconds"):
        feed(system, recording("S7").read_bytes())
