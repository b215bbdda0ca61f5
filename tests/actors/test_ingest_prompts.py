import io
from collections.abc import Iterator

import pytest

from incarnate.actors.ingest import ingest
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import find_dialect
from incarnate.domain.events import UserMessage
from tests.support.commands import KEY, recording

CLAUDE = find_dialect("claude-code")
DIED, RESUMED = recording("S4").read_bytes(), recording("S5").read_bytes()


@pytest.fixture
def system() -> Iterator[SessionSystem]:
    with SessionSystem.open("memory://") as opened:
        yield opened


def asked(system: SessionSystem) -> list[tuple[int, str]]:
    return [(found.offset, found.event.text) for found in system.replay(KEY) if isinstance(found.event, UserMessage)]


def test_the_prompts_of_all_runs_of_a_file_stand_where_they_were_asked(system: SessionSystem) -> None:
    first = ingest(system, KEY, CLAUDE, io.BytesIO(DIED), prompts=["do it"])
    both = ingest(system, KEY, CLAUDE, io.BytesIO(DIED + RESUMED), prompts=["do it", "go on"])

    assert (first.appended, 0) == (both.skipped, both.beyond)
    assert [(1, "do it"), (first.next_offset + 2, "go on")] == asked(system)


def test_a_run_that_is_piped_has_its_own_prompt(system: SessionSystem) -> None:
    for data, prompt in ((DIED, "do it"), (RESUMED, "go on")):
        ingest(system, KEY, CLAUDE, io.BytesIO(data), at_head=True, prompts=[prompt])

    assert ["do it", "go on"] == [text for _, text in asked(system)]
