"""What the server worked out is kept for as long as it holds: the states of sessions, and drawings."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from incarnate import ActivationKey, AppendMany, SessionSystem, TurnEnd, UserMessage
from incarnate.studio import drawings, listing
from incarnate.studio.archive import Archive
from incarnate.studio.drawings import Drawings
from incarnate.studio.listing import Listing, Query
from incarnate.studio.problems import Problem
from incarnate.studio.timeline import Timeline
from incarnate.studio.timeline_svg import draw_timeline

KEY = ActivationKey("pik-1", "implement")
LINE: dict[str, Any] = {"id": "e", "parent_id": None}


@pytest.fixture
def url(swift_path: Path) -> str:
    return f"sqlite:///{swift_path}/sessions.db"


@pytest.fixture
def system(url: str) -> Iterator[SessionSystem]:
    with SessionSystem.open(url) as system:
        system.claim(KEY).emit(UserMessage(**LINE, text="hi"))
        yield system


@pytest.fixture
def archive(url: str, system: SessionSystem) -> Iterator[Archive]:
    assert system.url
    archive = Archive(url)
    yield archive
    archive.close()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The widths that were drawn."""
    widths: list[int] = []

    def count(timeline: Timeline, **named: Any) -> str:
        widths.append(named["width"])
        return draw_timeline(timeline, **named)

    monkeypatch.setattr(drawings, "draw_timeline", count)
    return widths


def test_a_timeline_is_drawn_once_for_each_width(archive: Archive, drawn: list[int]) -> None:
    kept = Drawings(archive)
    assert 1 == len({kept.of(KEY, 800) for _ in range(3)})
    assert kept.of(KEY, 800) != kept.of(KEY, 400)
    assert [800, 400] == drawn


def test_a_timeline_is_drawn_anew_for_whatever_is_in_it(
    archive: Archive, system: SessionSystem, drawn: list[int]
) -> None:
    kept = Drawings(archive)
    session = system.lease(KEY, 1)
    rewound = AppendMany(1, 1, (UserMessage(**LINE, text="again"),))
    happenings: dict[str, Callable[[], object]] = {
        "an event": lambda: session.emit(UserMessage(**LINE, text="more")),
        "a checkpoint": lambda: session.checkpoint("abcdef012345"),
        "a rewind": lambda: system.activation(KEY).ask(rewound),
        "a claim": lambda: system.claim(KEY),
    }
    last = kept.of(KEY, 800)
    for what, happen in happenings.items():
        happen()
        now = kept.of(KEY, 800)
        assert now[1] != last[1], what
        assert now == Drawings(archive).of(KEY, 800)
        last = now
    assert 1 + 2 * len(happenings) == len(drawn)


def test_who_asks_at_once_waits_for_one_drawing(archive: Archive, drawn: list[int]) -> None:
    kept, together = Drawings(archive), Barrier(4)

    def ask() -> str:
        together.wait()
        return kept.of(KEY, 800)[1]

    with ThreadPoolExecutor(4) as pool:
        assert 1 == len({asked.result() for asked in [pool.submit(ask) for _ in range(4)]})
    assert [800] == drawn


def test_what_could_not_be_drawn_is_tried_again(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Drawings(archive)
    with monkeypatch.context() as patch:
        patch.setattr(drawings, "draw_timeline", lambda *_, **__: 1 / 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                kept.of(KEY, 800)
    assert kept.of(KEY, 800)[1].startswith("<svg")
    with pytest.raises(Problem):
        kept.of(ActivationKey("nobody", "here"), 800)


def test_drawings_are_kept_up_to_a_bound_those_that_were_asked_for_last(
    archive: Archive, drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Drawings(archive)
    size = len(kept.of(KEY, 400)[1])
    monkeypatch.setattr(drawings, "_MOST_CHARACTERS", int(2.5 * size))
    for width in (401, 400, 402, 400, 401):
        kept.of(KEY, width)
    assert [400, 401, 402, 401] == drawn


@pytest.fixture
def looked_up(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> list[ActivationKey]:
    """The sessions whose log was opened."""
    keys: list[ActivationKey] = []
    snapshot = archive.store.snapshot

    def count(key: ActivationKey) -> Any:
        keys.append(key)
        return snapshot(key)

    monkeypatch.setattr(archive.store, "snapshot", count)
    return keys


def test_a_state_is_asked_for_without_reading_a_log_twice_however_many_there_are(
    archive: Archive, system: SessionSystem, looked_up: list[ActivationKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MOST_KNOWN", 2)
    keys = [KEY, *(ActivationKey("many", str(number)) for number in range(5))]
    for key in keys[1:]:
        system.claim(key).emit(UserMessage(**LINE, text="hi"))
    rows = Listing(archive)
    for _ in range(3):
        assert 0 == rows.page(Query(state="fenced"))["total"]
    assert sorted(map(str, keys)) == sorted(map(str, looked_up))

    system.lease(keys[3], 1).emit(TurnEnd(**LINE, turn=0))
    assert 0 == rows.page(Query(state="fenced"))["total"]
    system.claim(keys[3])
    assert [str(keys[3])] == [row["key"] for row in rows.page(Query(state="fenced"))["sessions"]]
    assert {keys[3]} == set(looked_up[len(keys) :])
    rows.close()


def test_the_states_of_what_was_swept_are_not_kept_for_ever(archive: Archive, system: SessionSystem) -> None:
    rows = Listing(archive)
    for number in range(5):
        system.claim(ActivationKey("swept", str(number))).emit(UserMessage(**LINE, text="hi"))
    assert 6 == rows.page(Query(state="live"))["total"]
    for number in range(5):
        system.retire(ActivationKey("swept", str(number)))
    system.sweep(timedelta(seconds=-1))
    assert 1 == rows.page(Query(state="live"))["total"]
    assert {KEY} == rows._signs.keys()  # noqa: SLF001
    rows.close()
