"""What docs/openai-agents.md shows is run as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "openai-agents.md"
PROGRAM = "\n".join(re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL))


def test_the_code_prints_what_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    try:
        exec(compile(PROGRAM, str(GUIDE), "exec"), namespace)
    finally:
        namespace["system"].close()

    expected = re.findall(r"^ *print\(.*\)  # (.+)$", PROGRAM, flags=re.MULTILINE)
    assert expected == capsys.readouterr().out.splitlines()
