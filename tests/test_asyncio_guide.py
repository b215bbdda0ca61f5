"""What docs/asyncio.md shows is run as it stands, and it names what there is."""

import re
from pathlib import Path

import pytest

import incarnate

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "asyncio.md"


def text() -> str:
    return GUIDE.read_text(encoding="utf-8")


def test_the_program_prints_what_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [program] = re.findall(r"^```python\n(.*?)^```$", text(), flags=re.MULTILINE | re.DOTALL)
    exec(compile(program, str(GUIDE), "exec"), {"__name__": "guide"})

    expected = re.findall(r"^ *print\(.*\)  # (.+)$", program, flags=re.MULTILINE)
    assert expected == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("face", [incarnate.AsyncSessionSystem, incarnate.AsyncSession, incarnate.AsyncView])
def test_every_call_is_named(face: type) -> None:
    missing = [name for name in vars(face) if not name.startswith("_") and not re.search(rf"\b{name}\b", text())]

    assert [] == [
        name
        for name in missing
        if name not in {"url", "key", "name", "incarnation", "diagnostics", "subscribe", "unsubscribe"}
    ]


def test_every_name_in_it_is_public() -> None:
    names = {*re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", text())} - {"TaskGroup"}

    assert set() == names - {*incarnate.__all__}
