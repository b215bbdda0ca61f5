"""Back ends of third parties: registered in the process, or brought by an installed distribution."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incarnate import (
    FaultyStore,
    SessionSystem,
    Store,
    StoreBusyError,
    StoreServerError,
    StoreUrlError,
    open_store,
    register_store,
)
from incarnate.storage import plugins
from incarnate.storage.memory import MemoryStore
from tests.support.stores import KEY, Log


def memory(url: str, *, read_only: bool) -> Store:
    store = MemoryStore(read_only=read_only)
    store.url = url
    return store


def test_a_registered_scheme_is_opened_by_its_factory() -> None:
    with register_store("room", memory), open_store("room://here?x=1", read_only=True) as store:
        assert "room://here?x=1" == store.url
        assert "room" in plugins.known_schemes()

    with pytest.raises(StoreUrlError, match="names no store"):
        open_store("room://here")
    assert "room" not in plugins.known_schemes()


def test_a_test_swaps_the_store_below_code_that_opens_it_by_url() -> None:
    faulty = FaultyStore(MemoryStore())
    with (
        register_store("sqlite", lambda url, read_only: faulty),  # noqa: ARG005 - the names are the factory's
        SessionSystem.open("sqlite:///nowhere.db") as system,
    ):
        assert 1 == system.claim(KEY).incarnation

    assert {"write": 1, "transact": 1} == {name: faulty.calls[name] for name in ("write", "transact")}
    assert not Path("nowhere.db").exists()


def test_the_later_registration_wins_and_each_is_undone_by_itself() -> None:
    def named(name: str) -> plugins.StoreFactory:
        return lambda url, read_only: memory(f"{name} of {url}", read_only=read_only)

    first, second, third = [register_store("room", named(name)) for name in ("first", "second", "third")]
    second.undo()
    second.undo()
    assert "third of room://" == open_store("room://").url
    third.undo()
    assert "first of room://" == open_store("room://").url
    first.undo()
    assert plugins.factory_of("room") is None


@pytest.mark.parametrize("scheme", ["", "Room", "1room", "room://", "r\u00f6m", "a b"])
def test_a_scheme_that_cannot_begin_a_url_is_refused(scheme: str) -> None:
    with pytest.raises(StoreUrlError, match="is no scheme of a URL"):
        register_store(scheme, memory)


# Distributions

MODULE = """
from incarnate.storage.memory import MemoryStore
opened = []

def open_room(url, *, read_only):
    opened.append(url)
    return MemoryStore(read_only=read_only)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path in which distributions are installed."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("room_store", "broken_store"):
        sys.modules.pop(name, None)


def install(site: Path, name: str, entry_point: str, module: str = "") -> None:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[incarnate.stores]\n{entry_point}\n")
    (site / f"{name.replace('-', '_')}.py").write_text(module)


def test_the_scheme_of_a_distribution_is_loaded_when_it_is_asked_for(site: Path) -> None:
    install(site, "room-store", "room = room_store:open_room", MODULE)
    with pytest.raises(StoreUrlError, match=r"must be one of memory://, .*room://"):
        open_store("other://")

    assert "room_store" not in sys.modules
    with open_store("room://here") as store:
        assert 1 == Log(store).claim().fence
    assert ["room://here"] == sys.modules["room_store"].opened
    with open_store("faulty+room://here#fail=0"), register_store("room", memory), open_store("room://there"):
        assert ["room://here"] * 2 == sys.modules["room_store"].opened


def test_a_distribution_does_not_take_one_of_our_schemes(site: Path) -> None:
    install(site, "room-store", "memory = room_store:open_room", MODULE)

    with open_store("memory://"):
        assert "room_store" not in sys.modules


@pytest.mark.parametrize(
    ("value", "module", "reason"),
    [
        ("broken_store:open", "import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be"),
        ("broken_store:shut", "", "AttributeError: module 'broken_store' has no attribute 'shut'"),
        ("broken_store:open", "1 / 0", "ZeroDivisionError: "),
    ],
)
def test_a_distribution_that_cannot_be_loaded_is_named(site: Path, value: str, module: str, reason: str) -> None:
    install(site, "broken-store", f"broken = {value}", module)
    with pytest.raises(StoreUrlError) as refusal:
        open_store("broken://")

    told = f"broken:// is brought by broken-store, whose {value} cannot be loaded: {reason}"
    assert str(refusal.value).startswith(told)
    assert "reinstall broken-store, or tell its authors" == refusal.value.hint


FAILING = """
import os

def open_room(url, *, read_only):
    {}
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("raise ConnectionRefusedError(f'nobody at {url}')", "ConnectionRefusedError: nobody at room://me:...@here"),
        ("return {}['nowhere']", "KeyError: 'nowhere'"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_distribution_that_cannot_open_its_store_is_named(site: Path, line: str, reason: str) -> None:
    install(site, "room-store", "room = room_store:open_room", FAILING.replace("{}", line, 1))
    with pytest.raises(StoreServerError) as refusal:
        SessionSystem.open("room://me:secret@here")

    assert f"room://me:...@here: room-store could not open it: {reason}" == str(refusal.value)
    assert "room://me:...@here" == refusal.value.place
    assert type(refusal.value.__cause__).__name__ == reason.partition(":")[0]
    assert refusal.value.hint.endswith("tell the authors of room-store")


def test_what_a_distribution_says_in_our_words_is_said_as_it_is(site: Path) -> None:
    raises = "from incarnate import StoreBusyError; raise StoreBusyError('room is taken')"
    install(site, "room-store", "room = room_store:open_room", FAILING.replace("{}", raises, 1))
    with pytest.raises(StoreBusyError) as busy:
        open_store("room://here")

    assert "room is taken" == str(busy.value)


def test_what_a_program_registers_itself_raises_as_it_is() -> None:
    def fails(url: str, *, read_only: bool) -> Store:
        raise ZeroDivisionError(url, read_only)

    with register_store("room", fails), pytest.raises(ZeroDivisionError):
        open_store("room://here")


def test_two_distributions_of_one_scheme_are_both_named(site: Path) -> None:
    install(site, "room-store", "room = room_store:open_room", MODULE)
    install(site, "broken-store", "room = broken_store:open_room", MODULE)
    with pytest.raises(StoreUrlError, match=r"room:// is brought by \S+ and by \S+") as refusal:
        open_store("room://")

    assert {"room-store", "broken-store"} <= {*refusal.value.args[0].split()}
    with register_store("room", memory), open_store("room://") as store:
        assert 1 == Log(store).claim().fence
