"""An exported session: the same as the server gives for the same log, of one moment, masked, and bounded."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incarnate import (
    ActivationKey,
    AppendMany,
    AssistantMessage,
    LogRewoundError,
    PageTooLargeError,
    SessionSystem,
    Store,
    ToolCall,
    UserMessage,
    open_store,
)
from incarnate.studio.exported import Exported, export_html, export_svg
from tests.support.projections import recorded_logs
from tests.support.stores import sqlite_url
from tests.support.studio_app import App, address, running
from tests.support.told_sessions import EVENTS, HOSTILE

KEY = ActivationKey("order 7/<b>", "implement")
NOW_MS = 1_800_000_000_000
SECRET = "sk-" + "a1B2" * 12
LINK: dict[str, Any] = {"id": "e", "parent_id": None}


def said(text: str) -> UserMessage:
    return UserMessage(**LINK, text=text)


def append(url: str, events: list[Any], offset: int = 0, incarnation: int = 1) -> None:
    with SessionSystem.open(url) as system:
        system.lease(KEY, incarnation)
        system.activation(KEY).ask(AppendMany(incarnation, offset, tuple(events)))


def exported(url: str, **named: Any) -> Exported:
    store = open_store(url, read_only=True)
    try:
        page = export_html(store, KEY, NOW_MS, **named)
    finally:
        store.close()
    assert page is not None
    return page


def text_of(page: Exported) -> str:
    return b"".join(page.pieces).decode()


def data_of(page: Exported) -> dict[str, Any]:
    """What a browser would read out of the page."""
    [data] = re.findall(r'<script type="application/json" id="incarnate-data">(.*?)</script>', text_of(page), re.DOTALL)
    found: dict[str, Any] = json.loads(data)
    return found


async def served(url: str, *, mask: bool) -> dict[str, Any]:
    """The same out of the server's answers."""
    async with running(url, mask=mask) as app:
        rewinds = await app.json(address(KEY, "/rewinds"))
        model = await everything(app, "/messages?view=model")
        frames = await everything(app, "/messages?view=frames")
        kept = [rewind["generation"] for rewind in rewinds if not rewind["swept"]]
        return {
            "session": await app.json(address(KEY)),
            "stats": await app.json(address(KEY, "/stats")),
            "rewinds": rewinds,
            "events": (await everything(app, "/messages?view=events"))["items"],
            "model": {name: model[name] for name in ("items", "offsets", "diagnostics")},
            "frames": {name: frames[name] for name in ("items", "offsets")},
            "superseded": {str(one): (await everything(app, f"/superseded/{one}?"))["items"] for one in kept},
            "timelineSvg": (await app.json(address(KEY, "/timeline?width=1200")))["svg"],
        }


async def everything(app: App, path: str) -> dict[str, Any]:
    return dict(await app.json(address(KEY, f"{path}&limit=1000")))


@given(batches=st.lists(st.lists(EVENTS, max_size=12), min_size=1, max_size=4), data=st.data(), mask=st.booleans())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_it_holds_what_the_server_answers_for_the_same_log(
    tmp_path: Path, batches: list[list[Any]], data: st.DataObject, *, mask: bool
) -> None:
    url = sqlite_url(tmp_path / str(len(list(tmp_path.iterdir()))))
    Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True)
    length = 0
    for number, batch in enumerate(batches, 1):
        offset = data.draw(st.integers(0, length))
        append(url, [said("hi"), *batch], offset, number)
        length = offset + 1 + len(batch)
    found = data_of(exported(url, mask=mask))
    wanted = asyncio.run(served(url, mask=mask))
    for one in (found, wanted):
        one["session"].pop("state")  # of two times

    assert wanted["superseded"] == found.get("superseded", {})
    for view in ("model", "frames"):
        assert wanted[view] == {name: found[view][name] for name in wanted[view]}
    rest = [name for name in wanted if name not in {"superseded", "model", "frames"}]
    assert {name: wanted[name] for name in rest} == {name: found[name] for name in rest}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path)


def test_no_text_of_a_log_ends_the_script_that_it_stands_in(url: str) -> None:
    append(url, [said(text) for text in HOSTILE])
    page = exported(url)

    assert list(HOSTILE) == [event["text"] for event in data_of(page)["events"]]
    assert 2 == text_of(page).count("</script")
    assert 0 == text_of(page).count("<script>window.hurt")


@pytest.mark.parametrize("form", ["html", "svg"])
def test_secrets_are_masked_wherever_they_stand_unless_asked_otherwise(url: str, form: str) -> None:
    key = ActivationKey("pk-2251799813685249", "token-a1b2c3d4e5f6a7b8")
    with SessionSystem.open(url) as system:
        session = system.claim(key)
        call = ToolCall(**LINK, call_id="c", name="Bash", args={"command": f"curl -H 'Bearer {SECRET}'"})
        session.emit_many([said(SECRET), call])
        session.checkpoint(SECRET)
        system.activation(key).ask(AppendMany(1, 1, (said(f"again {SECRET}"), call)))
    store = open_store(url, read_only=True)
    masked, plain = (_written(store, key, form, mask=mask) for mask in (True, False))
    store.close()

    assert SECRET not in masked
    assert SECRET in plain
    assert str(key) in masked, "a key is an address"


def _written(store: Store, key: ActivationKey, form: str, *, mask: bool) -> str:
    if form == "svg":
        return export_svg(store, key, mask=mask) or ""
    page = export_html(store, key, NOW_MS, mask=mask)
    assert page is not None
    return text_of(page)


def test_a_session_that_is_not_there_is_none(url: str) -> None:
    append(url, [said("hi")])
    store = open_store(url, read_only=True)

    assert export_html(store, ActivationKey("no", "body"), NOW_MS) is None
    assert export_svg(store, ActivationKey("no", "body")) is None
    store.close()


def test_a_session_that_nobody_has_written_to_is_a_page_too(url: str) -> None:
    with SessionSystem.open(url) as system:
        system.claim(KEY)
    found = data_of(exported(url))

    assert [] == found["events"]
    assert None is found["session"]["lastEvent"]


def test_long_texts_are_cut_where_the_page_would_be_too_large_and_counted(url: str) -> None:
    append(url, [said("x" * 100_000) for _ in range(20)])
    page = exported(url, most_bytes=1_000_000)
    found = data_of(page)

    assert 20 == len(found["events"]) == len(found["cut"])
    assert all(event["text"].endswith("… [cut]") for event in found["events"])
    assert all(full > 100_000 for full in found["cut"].values())
    assert page.left_out["long text"] >= 20
    assert sum(len(text) for text in re.findall(r'"text":"[^"]*"', text_of(page))) < 1_000_000


def test_what_is_not_the_log_is_left_out_first(url: str) -> None:
    append(url, [said("x" * 4000) for _ in range(20)])
    append(url, [said("y" * 4000) for _ in range(20)], offset=0)
    page = exported(url, most_bytes=100_000)

    assert {"model history": 1, "superseded tail": 1} == dict(page.left_out)
    assert {"model", "superseded"}.isdisjoint(data_of(page))


def test_frames_are_left_out_before_the_model_history(url: str) -> None:
    append(url, [AssistantMessage(**LINK, text="x" * 4000) for _ in range(20)])
    page = exported(url, most_bytes=200_000)

    assert {"frames": 1} == dict(page.left_out)
    assert "model" in data_of(page)


def test_frames_take_no_more_than_the_events_that_they_are_of(url: str) -> None:
    append(url, [event for log in recorded_logs() for event in log["events"]])
    found = data_of(exported(url))

    assert len(json.dumps(found["frames"])) < len(json.dumps(found["events"]))
    assert found["frames"]["items"]


def test_a_tail_whose_texts_were_cut_tells_how_long_they_were(url: str) -> None:
    append(url, [said("x" * 300_000), said("short")])
    append(url, [said("after")])
    found = data_of(exported(url))

    assert ["1"] == list(found["superseded"]) == list(found["supersededCut"])
    assert ["0"] == list(found["supersededCut"]["1"])
    assert found["supersededCut"]["1"]["0"] > 300_000


def test_a_log_that_no_page_can_hold_is_refused_with_what_to_do(url: str) -> None:
    append(url, [said("x" * 3000) for _ in range(100)])

    with pytest.raises(PageTooLargeError, match="takes more than 100000 bytes as a page") as refused:
        exported(url, most_bytes=100_000)
    assert (KEY, 100_000) == (refused.value.key, refused.value.most)
    assert refused.value.size > 100_000
    assert "incarnate studio" in refused.value.hint


class Disturbed:
    """A store in which somebody rewinds whenever the events are read, as often as it is told to."""

    def __init__(self, url: str, times: int) -> None:
        self._store = open_store(url, read_only=True)
        self._url = url
        self._left = times
        self.url = url

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def head(self, key: ActivationKey) -> Any:
        if self._left:
            self._left -= 1
            append(self._url, [said(f"instead {self._left}")])
        return self._store.head(key)


def test_a_rewind_that_comes_between_begins_it_anew(url: str) -> None:
    append(url, [said("first"), said("second")])
    store: Any = Disturbed(url, 2)
    page = export_html(store, KEY, NOW_MS)
    store.close()
    assert page is not None

    assert ["instead 0"] == [event["text"] for event in data_of(page)["events"]]
    assert 2 == data_of(page)["session"]["generation"]


def test_a_log_that_is_rewound_all_the_time_is_told(url: str) -> None:
    append(url, [said("first")])
    store: Any = Disturbed(url, 100)

    with pytest.raises(LogRewoundError):
        export_html(store, KEY, NOW_MS)
    store.close()


def test_the_newest_checkpoint_and_its_way_to_go_on_are_in_it(url: str) -> None:
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        session.emit(said("hi"))
        made = session.checkpoint("1a2b3c4")
    found = data_of(exported(url))["session"]

    assert made.id == found["latestCheckpoint"]["id"] == found["checkpoints"][0]["id"]
    assert [{"incarnation": 1, "start": 0, "stop": 1}] == found["history"]
