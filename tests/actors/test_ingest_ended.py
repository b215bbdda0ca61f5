"""What a harness began and did not finish: held back while its file may grow, taken when it is dead."""

import io
from collections.abc import Iterator

import pytest

from incarnate.actors.ingest import ingest
from incarnate.actors.ingest_report import IngestReport
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.errors import LogMismatchError
from incarnate.domain.events import AssistantMessage
from tests.support.commands import KEY

GEMINI = find_dialect("gemini-cli")
BEGUN = b'{"type":"init","session_id":"s"}\n'


def piece(text: str) -> bytes:
    return b'{"type":"message","role":"assistant","delta":true,"content":"%s"}\n' % text.encode()


CUT = BEGUN + piece("half")
GROWN = CUT + piece(" and whole") + b'{"type":"result","status":"success"}\n'


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def said(system: SessionSystem) -> list[str]:
    return [found.event.text for found in system.replay(KEY) if isinstance(found.event, AssistantMessage)]


def feed(system: SessionSystem, data: bytes, *, at_head: bool = False, ended: bool | None = None) -> IngestReport:
    return ingest(system, KEY, GEMINI, io.BytesIO(data), at_head=at_head, ended=ended)


def test_what_may_be_completed_is_held_and_a_file_that_has_grown_is_continued(system: SessionSystem) -> None:
    assert (1, []) == (feed(system, CUT).held, said(system))
    assert (0, ["half and whole"]) == (feed(system, GROWN).held, said(system))


def test_what_a_dead_harness_began_is_taken_once(system: SessionSystem) -> None:
    reports = [feed(system, CUT, ended=True) for _ in range(2)]

    assert [(0, 2, 0), (0, 0, 2)] == [(report.held, report.appended, report.skipped) for report in reports]
    assert ["half"] == said(system)


def test_the_end_of_a_pipe_is_the_end_of_the_harness(system: SessionSystem) -> None:
    feed(system, CUT, at_head=True)
    feed(system, GROWN, at_head=True)

    assert ["half", "half and whole"] == said(system)


def test_a_pipe_that_is_only_paused_is_not(system: SessionSystem) -> None:
    assert (1, []) == (feed(system, CUT, at_head=True, ended=False).held, said(system))


def test_a_harness_that_was_not_dead_parts_from_its_log(system: SessionSystem) -> None:
    feed(system, CUT, ended=True)
    with pytest.raises(LogMismatchError):
        feed(system, GROWN)


def test_the_prompt_comes_before_what_was_begun(system: SessionSystem) -> None:
    ingest(system, KEY, GEMINI, io.BytesIO(piece("half")), prompts=["go"], ended=True)

    assert ["user", "assistant"] == [type(found.event).__struct_config__.tag for found in system.replay(KEY)]
