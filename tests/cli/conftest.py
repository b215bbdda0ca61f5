from pathlib import Path

import pytest

from tests.support.stores import sqlite_url


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test ever sees the user's own store."""
    monkeypatch.delenv("INCARNATE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "data"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store of the commands of this test."""
    url = sqlite_url(tmp_path)
    monkeypatch.setenv("INCARNATE_STORE", url)
    return url
