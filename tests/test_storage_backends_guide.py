"""What docs/storage-backends.md shows is a store that keeps the contract, and its table names every capability."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from incarnate import ActivationKey, AssistantMessage, SessionSystem, StoreUrlError
from incarnate.storage.contract import Capability

pytest_plugins = ["pytester"]

GUIDE = (Path(__file__).parent.parent / "docs" / "storage-backends.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)


def test_the_store_of_the_guide_keeps_the_contract(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("\n".join(CODE[:2]))
    result = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "error", "--disable-plugin-autoload"
    )

    assert {"passed"} == set(result.parseoutcomes())
    assert 80 < result.parseoutcomes()["passed"]


def test_the_guides_store_is_plugged_in_by_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    guide, key = ModuleType("guide"), ActivationKey("pik", "task")
    monkeypatch.setitem(sys.modules, "guide", guide)  # pickle looks its classes up by name
    exec("\n".join(CODE[:-1]), vars(guide))
    with eval(CODE[-1], vars(guide)):  # what it returns undoes it
        with SessionSystem.open("pickle://logs") as system:
            system.claim(key).emit(AssistantMessage(id="a", parent_id=None, text="kept"))
        with SessionSystem.open("pickle://logs", read_only=True) as system:
            assert ["a"] == [one.event.id for one in system.replay(key)]
    with pytest.raises(StoreUrlError):
        SessionSystem.open("pickle://logs")


def test_its_table_names_every_capability() -> None:
    assert [*Capability] == re.findall(r"^\| `([a-z-]+)` \|", GUIDE, flags=re.MULTILINE)
