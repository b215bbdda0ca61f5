"""What docs/dialects.md shows is run as it stands."""

import io
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from incarnate.actors.ingest import ingest
from incarnate.actors.system import SessionSystem
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.keys import ActivationKey

GUIDE = (Path(__file__).parent.parent / "docs" / "dialects.md").read_text(encoding="utf-8")
KEY = ActivationKey("parrot", "1")


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(block("python"), "docs/dialects.md", "exec"), namespace)
    monkeypatch.setitem(DIALECTS, "parrot", namespace["Parrot"]())
    return find_dialect("parrot")


def test_a_harness_is_added_in_under_60_lines() -> None:
    assert len(block("python").splitlines()) < 60


def test_the_made_up_harness_becomes_the_log_that_is_shown(parrot: Any) -> None:
    with SessionSystem.open("memory://") as system:
        report = ingest(system, KEY, parrot, io.BytesIO(block("jsonl").encode()), prompts=["look", "go on"])
        events = [msgspec.to_builtins(found.event) for found in system.replay(KEY)]

    told = [":".join([event["type"], *([event["outcome"]] if "outcome" in event else [])]) for event in events]
    assert block("text").split() == told
    assert ({"preen": 1}, "n-7") == (report.ignored, report.session_id)


def test_every_dialect_has_its_section() -> None:
    assert sorted(DIALECTS) == sorted(set(re.findall(r"^## `(.+)`$", GUIDE, flags=re.MULTILINE)) & set(DIALECTS))
