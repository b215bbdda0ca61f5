"""What docs/studio.md shows is run as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

from incarnate import ActivationKey, SessionSystem, UserMessage

GUIDE = Path(__file__).parents[2] / "docs" / "studio.md"


def test_the_export_of_the_library_is_the_page_of_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with SessionSystem.open("sqlite:///sessions.db") as system:
        session = system.claim(ActivationKey("order-7", "implement-task"))
        session.emit(UserMessage(id="e0", parent_id=None, text="mend the tests"))
    namespace: dict[str, Any] = {}
    exec(compile(program, str(GUIDE), "exec"), namespace)

    assert "mend the tests" in (tmp_path / "session.html").read_text("utf-8")
    assert {} == namespace["page"].left_out
