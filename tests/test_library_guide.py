"""What docs/library.md shows is run as it stands, and it names every error."""

import re
from pathlib import Path
from typing import Any

import pytest

import incarnate
from incarnate.domain import errors

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "library.md"

_FAMILIES = {"IncarnateError", "RefusedError", "CorruptError", "UnavailableError"}


def program() -> str:
    """All code of the guide, each line where it stands in the file."""
    kept, inside = [], False
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        inside = line == "```python" if fence else inside
        kept.append(line if inside and not fence else "")
    return "\n".join(kept)


def test_the_code_prints_what_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    try:
        exec(compile(program(), str(GUIDE), "exec"), namespace)
    finally:
        namespace["system"].close()

    expected = re.findall(r"^ *print\(.*\)  # (.+)$", program(), flags=re.MULTILINE)
    assert expected == capsys.readouterr().out.splitlines()


def test_every_error_and_every_event_is_named() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    events = [event.__name__ for event in incarnate.SessionEvent.__args__]
    named = [*(set(errors.__all__) - _FAMILIES), *events]

    assert [] == sorted(name for name in named if f"`{name}`" not in text)


def test_every_name_in_it_is_public() -> None:
    names = re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", GUIDE.read_text(encoding="utf-8"))
    plural = {"AppendedEvents", "IncarnateErrors"}

    assert [] == sorted(name for name in {*names} - {*incarnate.__all__} - plural if not name.endswith("Error"))


def test_emit_checks_no_ids_and_a_replay_of_nothing_gives_nothing() -> None:
    key = incarnate.ActivationKey("a", "b")
    with incarnate.SessionSystem.open("memory://") as system:
        assert [] == list(system.replay(key))
        for parent_id in ("nobody", None):
            system.claim(key).emit(incarnate.UserMessage(id="e", parent_id=parent_id, text="hi"))

        assert ["e", "e"] == [appended.event.id for appended in system.replay(key)]
        assert [] == list(system.replay(key, 2, 9))
