"""A write-ahead log or journal that ends anywhere holds every commit that is whole; a flipped byte shows no other."""

import shutil
from pathlib import Path

import pytest

from incarnate.domain.errors import IncarnateError
from incarnate.storage.locate import open_store
from tests.support.faults import State, chance, goes_on, state_of
from tests.support.faults_agent import KEY
from tests.support.stores import Log, checkpoint, jsonl_url, note, sqlite_url

CUTS = 60


def harmed_file(folder: Path, kind: str) -> Path:
    if kind == "sqlite":
        return folder / "sessions.db-wal"
    [found] = (folder / "journals").glob("*/00000001.jsonl")
    return found


@pytest.fixture(params=["sqlite", "jsonl"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def url_in(folder: Path, kind: str) -> str:
    return sqlite_url(folder) if kind == "sqlite" else jsonl_url(folder)


@pytest.fixture
def written(tmp_path: Path, kind: str) -> tuple[Path, list[tuple[int, State]]]:
    """A store as a kill leaves it, and after each commit the length of its log and all that could be read."""
    folder, copy = tmp_path / "store", tmp_path / "copy"
    folder.mkdir()
    states: list[tuple[int, State]] = []
    with open_store(url_in(folder, kind)) as store:
        log = Log(store, KEY)

        def remember() -> None:
            states.append((harmed_file(folder, kind).stat().st_size, state_of(store, KEY)))

        log.lease(1)
        for number in range(12):
            offset = log.head.next_offset - (2 if number in {5, 9} else 0)
            log.append(offset, [note(f"{number}-{at}", "x" * (at * 900)) for at in range(3)])
            remember()
            if number % 4 == 0:
                log.put(checkpoint(f"cp{number}", offset))
                remember()
        shutil.copytree(folder, copy)
    return copy, states


def test_i6_a_log_cut_off_anywhere_holds_every_commit_that_is_whole(
    tmp_path: Path, kind: str, written: tuple[Path, list[tuple[int, State]]]
) -> None:
    source, states = written
    random = chance()
    for number in range(CUTS):
        folder = tmp_path / f"cut-{number}"
        shutil.copytree(source, folder)
        cut = random.randint(states[0][0], states[-1][0])
        with harmed_file(folder, kind).open("r+b") as file:
            file.truncate(cut)
        whole = [state for size, state in states if size <= cut][-1]
        with open_store(url_in(folder, kind)) as store:
            assert whole == state_of(store, KEY), cut
        goes_on(url_in(folder, kind), KEY)
        shutil.rmtree(folder)


def test_a_flipped_byte_never_crashes_and_shows_a_state_that_was_or_an_error(
    tmp_path: Path, kind: str, written: tuple[Path, list[tuple[int, State]]]
) -> None:
    source, states = written
    random = chance()
    known = [state for _, state in states]
    told = 0
    for number in range(CUTS):
        folder = tmp_path / f"flip-{number}"
        shutil.copytree(source, folder)
        path = harmed_file(folder, kind)
        data = bytearray(path.read_bytes())
        data[random.randrange(states[0][0], len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        try:
            with open_store(url_in(folder, kind)) as store:
                found = state_of(store, KEY)
        except IncarnateError:
            told += 1
        else:
            assert found in known
        shutil.rmtree(folder)

    assert kind == "sqlite" or told > 0


def test_a_page_of_garbage_is_told_or_not_read_and_a_copy_of_before_works_again(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with open_store(sqlite_url(tmp_path)) as store:
        Log(store, KEY).append(0, [note(str(at), "x" * 900) for at in range(30)])
        before = state_of(store, KEY)
    whole = path.read_bytes()
    told = 0
    for page in range(1, len(whole) // 4096):
        path.write_bytes(whole[: page * 4096] + b"\xff" * 4096 + whole[(page + 1) * 4096 :])
        try:
            with open_store(sqlite_url(tmp_path), read_only=True) as store:
                found = state_of(store, KEY)
        except IncarnateError:
            told += 1
        else:
            assert before == found, page
    path.write_bytes(whole)

    assert told > 5
    goes_on(sqlite_url(tmp_path), KEY)
