"""From URL to store."""

import itertools
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from incarnate.domain.errors import StoreBusyError, StoreUrlError
from incarnate.storage.locate import open_store
from incarnate.storage.memory import MemoryStore
from incarnate.storage.plugins import register_store
from incarnate.storage.sqlite import SqliteStore
from tests.support.stores import Log


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///sessions.db", "sessions.db"),
        ("sqlite:///./inner/../sessions.db", "sessions.db"),
        ("sqlite:///{folder}/sessions.db", "sessions.db"),
        ("sqlite:///{folder}/a%20b%3f%23%25.db", "a b?#%.db"),
        ("sqlite:///{folder}/a+b.db", "a+b.db"),
        ("sqlite:///{folder}/a%FFb.db", "a\udcffb.db"),
        ("sqlite:///{folder}/ä\U0001f9e0.db", "ä\U0001f9e0.db"),
        ("sqlite:///memory://", "memory:"),
        ("sqlite:///sessions.db?durability=commit", "sessions.db"),
        ("sqlite:///sessions.db?durability=process&busy=0.5", "sessions.db"),
        ("sqlite:///sessions.db?busy=0", "sessions.db"),
        ("sqlite:///sessions.db?busy=86400", "sessions.db"),
        ("sqlite:///sessions.db?", "sessions.db"),
        ("SQLITE:///Sessions.DB", "Sessions.DB"),
    ],
)
def test_a_url_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, file: str) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)

    with open_store(url.format(folder=tmp_path)) as store:
        Log(store).claim()

        assert isinstance(store, SqliteStore)
        assert (tmp_path / file).is_file()


@pytest.mark.parametrize("name", ["a b%?#", "two\nlines", "ä\U0001f9e0", "no text \udcff"])
@pytest.mark.parametrize("scheme", ["sqlite", "jsonl"])
def test_the_url_of_a_store_opens_it_again_whatever_its_path_and_is_one_line_of_text(
    scheme: str, name: str, tmp_path: Path
) -> None:
    escaped = quote(os.fsencode(f"{tmp_path}/{name}"))
    with open_store(f"{scheme}:///{escaped}") as store:
        Log(store).append(0, "a")
    with open_store(store.url, read_only=True) as again:
        assert "a" == Log(again).names

    assert (tmp_path / name).exists()
    assert [store.url] == store.url.encode().decode().splitlines()


@pytest.mark.parametrize("scheme", ["postgres", "POSTGRES", "PostgreSQL"])
def test_what_psql_takes_for_a_scheme_is_taken(scheme: str) -> None:
    def factory(url: str, *, read_only: bool) -> MemoryStore:
        opened.append(url)
        return MemoryStore(read_only=read_only)

    opened: list[str] = []
    with register_store("postgresql", factory), open_store(f"{scheme}://Me@host/DB") as store:
        assert isinstance(store, MemoryStore)

    assert ["postgresql://Me@host/DB"] == opened


def test_a_back_end_of_ones_own_may_be_called_postgres() -> None:
    with register_store("postgres", lambda url, read_only: MemoryStore()), open_store("postgres://host/db") as store:  # noqa: ARG005
        assert isinstance(store, MemoryStore)


def test_every_memory_url_is_a_store_of_its_own() -> None:
    with open_store("memory://") as one, open_store("memory://") as other:
        Log(one).claim()

        assert [MemoryStore, MemoryStore] == [type(one), type(other)]
        assert (1, None) == (Log(one).head.fence, Log(other).head.fence)


SCHEMES = "the scheme must be one of memory://, sqlite://, jsonl://, postgresql://"
OPTIONS = "the options are durability=commit|process and busy=SECONDS"
NO_BUSY = "busy must be a number of seconds, not"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", f" names no store: {SCHEMES}"),
        ("sessions.db", f" names no store: {SCHEMES}"),
        ("sqlite:sessions.db", f" names no store: {SCHEMES}"),
        ("mysql://host/db", f" names no store: {SCHEMES}"),
        ("MYSQL://host/db", f" names no store: {SCHEMES}"),
        ("memory://x", ": memory:// takes no path and no options"),
        ("memory://?busy=1", ": memory:// takes no path and no options"),
        ("sqlite://", ": a relative path takes three slashes, an absolute one four"),
        ("sqlite://sessions.db", ": a relative path takes three slashes, an absolute one four"),
        ("sqlite:///", " names no file"),
        ("sqlite:///?busy=1", " names no file"),
        ("sqlite:///a%00b", " names no file"),
        ("sqlite:///x?durability=fast", ": durability must be commit or process, not 'fast'"),
        ("sqlite:///x?durability=", ": durability must be commit or process, not ''"),
        ("sqlite:///x?busy=soon", f": {NO_BUSY} 'soon'"),
        ("sqlite:///x?busy=", f": {NO_BUSY} ''"),
        ("sqlite:///x?busy=-1", f": {NO_BUSY} '-1'"),
        ("sqlite:///x?busy=nan", f": {NO_BUSY} 'nan'"),
        ("sqlite:///x?busy=inf", f": {NO_BUSY} 'inf'"),
        ("sqlite:///x?busy=86401", f": {NO_BUSY} '86401'"),
        ("sqlite:///x?mode=ro&cache=1", ": sqlite:// knows the options durability and busy, not mode, cache"),
        ("sqlite:///x?Busy=1", ": sqlite:// knows the options durability and busy, not Busy"),
        ("sqlite:///x?busy", ": the options after ? must read name=value&name=value"),
        ("sqlite:///x?busy=1&", ": the options after ? must read name=value&name=value"),
    ],
)
def test_a_url_that_names_no_store_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreUrlError) as refusal:
        open_store(url)

    assert f"{url!r}{reason}" == str(refusal.value)
    assert refusal.value.hint
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sessions.db", "did you mean sqlite:///sessions.db?"),
        ("/var/a b.db", "did you mean sqlite:////var/a%20b.db?"),
        ("no text \udcff.db", "did you mean sqlite:///no%20text%20%FF.db?"),
        ("", StoreUrlError.hint),
        ("mysql://host/db", StoreUrlError.hint),
        ("sqlite:///", StoreUrlError.hint),
        ("sqlite:///x?durability=fast", OPTIONS),
        ("sqlite:///x?busy=soon", OPTIONS),
        ("sqlite:///x?mode=ro", OPTIONS),
        ("sqlite:///x?busy", OPTIONS),
    ],
)
def test_the_hint_says_how_to_write_what_was_meant(url: str, hint: str) -> None:
    with pytest.raises(StoreUrlError) as refusal:
        open_store(url)

    assert hint == refusal.value.hint


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (Path("sessions.db"), "did you mean sqlite:///sessions.db?"),
        (Path("/var/a b:c.db"), "did you mean sqlite:////var/a%20b%3Ac.db?"),
        (None, StoreUrlError.hint),
        (b"memory://", StoreUrlError.hint),
        (5, StoreUrlError.hint),
    ],
    ids=repr,
)
def test_what_is_no_text_is_refused_and_the_url_of_a_path_is_shown(value: Any, hint: str) -> None:
    with pytest.raises(StoreUrlError) as refusal:
        open_store(value)

    assert f"the URL of a store must be a str, not {value!r}" == str(refusal.value)
    assert hint == refusal.value.hint


def test_the_url_sets_the_wait(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with open_store(url) as holder, open_store(f"{url}?busy=0.01") as store:

        def claim_meanwhile(_: object) -> None:
            Log(store).claim()

        with pytest.raises(StoreBusyError, match=r"for 0\.01 seconds"):
            holder.transact(Log(holder).key, claim_meanwhile, 0)  # type: ignore[arg-type]


def test_a_wait_of_one_second_is_told_in_the_singular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(times)))
    url = f"sqlite:///{tmp_path}/sessions.db?busy=1"
    with open_store(url) as holder, open_store(url) as store:

        def claim_meanwhile(_: object) -> None:
            Log(store).claim()

        with pytest.raises(StoreBusyError) as busy:
            holder.transact(Log(holder).key, claim_meanwhile, 0)  # type: ignore[arg-type]

        assert str(busy.value).endswith(" for 1 second")


def test_read_only_is_handed_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    open_store(url).close()
    before = (tmp_path / "sessions.db").stat().st_mtime_ns

    with open_store(url, read_only=True) as store:
        assert [] == list(store.activations())
    assert before == (tmp_path / "sessions.db").stat().st_mtime_ns
