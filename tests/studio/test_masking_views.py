"""What is masked in an event is masked wherever the event shows: in lists, searches, pages and parts of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate import ActivationKey, SessionSystem, ToolCall, UserMessage
from incarnate.studio.cutting import CUT, fitted
from incarnate.studio.items import MOST_ITEM_BYTES, shaped
from incarnate.studio.masking import MASK, mask_start, mask_text
from incarnate.studio.summaries import summary_of
from tests.support.loops import on_a_loop
from tests.support.stores import sqlite_url
from tests.support.studio_app import address, running

SECRET = f"sk-{'ant'}-" + "a1B2" * 12
KEYS = [
    ActivationKey("a", "b"),
    ActivationKey("pk-2251799813685249", "implement"),
    ActivationKey(f"sk-{'a1' * 20}", "t"),
]


def call(args: Any) -> ToolCall:
    return ToolCall(id="t", parent_id=None, call_id="c", name="login", args=args)


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = sqlite_url(tmp_path)
    with SessionSystem.open(found) as system:
        for key in KEYS:
            system.claim(key).emit_many(
                [
                    UserMessage(id="u", parent_id=None, text="the words"),
                    call({"password": "hunter2", "Cookie": "sid=zzqqww", "note": f"the {SECRET}"}),
                ]
            )
    return found


@on_a_loop
async def test_a_key_that_looks_like_a_secret_leads_to_its_session(url: str) -> None:
    async with running(url, mask=True) as app:
        rows = (await app.json("/api/sessions"))["sessions"]
        assert {str(key) for key in KEYS} == {row["key"] for row in rows}
        async with app.stream("/api/sessions/changes") as stream:
            told = await stream.next()
        assert rows == told.data["sessions"]
        for key in KEYS:
            row = await app.json(address(key))
            assert (str(key), key.process_instance_key) == (row["key"], row["agent"])
            assert str(key) == (await app.json(address(key, "/stats")))["key"]


@on_a_loop
async def test_the_cursor_of_a_list_is_not_masked(url: str) -> None:
    async with running(url, mask=True) as app:
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = await app.json(f"/api/sessions?limit=1{after and f'&after={after}'}")
            found += [row["key"] for row in page["sessions"]]
            after = page["next"]
        assert {str(key) for key in KEYS} == set(found)


@on_a_loop
async def test_a_summary_and_a_search_know_no_more_than_the_event_shows(url: str) -> None:
    async with running(url, mask=True) as app:
        for row in (await app.json("/api/sessions"))["sessions"]:
            assert f'login {{"Cookie":"{MASK}","note":"the {MASK}","password":"{MASK}"}}' == row["lastEvent"]["summary"]
        for wanted in ("hunter2", "hunt", "zzqq", "a1B2"):
            assert [] == (await app.json(address(KEYS[0], f"/find?q={wanted}")))["offsets"]
        assert [0, 1] == (await app.json(address(KEYS[0], "/find?q=THE")))["offsets"]


@pytest.mark.parametrize("before", range(0, 700, 7))
def test_a_summary_shows_no_half_of_a_secret(before: int) -> None:
    for event in (
        UserMessage(id="u", parent_id=None, text=" " * before + SECRET),
        call({"x": " " * before + SECRET}),
        call([" " * before, SECRET]),
    ):
        assert "a1B2" not in summary_of(event, mask=True)


@given(st.integers(0, 200), st.text(max_size=120), st.sampled_from([SECRET, "password=hunter22", "x"]))
def test_the_start_of_a_text_is_masked_as_the_whole_is(length: int, words: str, secret: str) -> None:
    text = f"{words} {secret} {words}"
    shown = mask_start(text, length)
    whole = mask_text(text)
    assert whole.startswith((shown, shown.removesuffix(MASK)))
    assert len(shown) <= length + len(MASK)


def nested(depth: int) -> Any:
    return [nested(depth - 1) if depth else "v" for _ in range(8)]


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize(
    "args",
    [
        nested(5),
        [[1] * 1000] * 1000,
        {f"n{n}": [{"a": n}] * 9 for n in range(20_000)},
        ["é" * 200_000, "\x01" * 200_000],
        {"x" * 300_000: 1, "y": "z" * 300_000},
        [[["q" * 10] * 10] * 100] * 100,
    ],
    ids=["nested", "lists", "objects", "wide", "names", "texts"],
)
def test_an_item_of_many_short_values_is_cut_as_a_whole(args: Any, *, mask: bool) -> None:
    data = json.dumps({"type": "tool-call", "id": "e", "args": args}).encode()
    item = shaped(7, data, mask=mask)
    assert MOST_ITEM_BYTES // 8 < len(item.data) <= MOST_ITEM_BYTES
    assert ("tool-call", "e") == (json.loads(item.data)["type"], json.loads(item.data)["id"])
    assert len(data) == item.cut


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text("abxyz_-é", max_size=9), inner, max_size=9),
)


@given(VALUES, st.integers(80, 400))
def test_what_is_cut_fits_and_what_fits_is_whole(value: Any, most: int) -> None:
    shown, was_cut = fitted(value, most, mask=True)
    assert len(json.dumps(shown, separators=(",", ":"), ensure_ascii=False).encode()) <= most
    assert was_cut or value == shown


def test_short_fields_stay_whole_beside_long_ones() -> None:
    value = {"long": "x" * 10_000, "short": "y" * 100, "list": [1, 2, 3], "last": True}
    shown, _ = fitted(value, 1000, mask=True)
    assert {name: value[name] for name in ("short", "list", "last")} == {n: shown[n] for n in ("short", "list", "last")}
    assert shown["long"].endswith(CUT)


def test_names_that_say_what_is_secret_hold_where_an_object_is_cut() -> None:
    value = {"pad": "x" * 10_000, "value": SECRET[7:], "password": {"a": ["b" * 10_000]}, "name": "Authorization"}
    shown, _ = fitted(value, 1000, mask=True)
    assert (MASK, {"a": [MASK]}) == (shown["value"], shown["password"])
