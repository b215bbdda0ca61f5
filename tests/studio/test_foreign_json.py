"""Events of newer versions, kept byte for byte, and texts that are hard to read: neither takes others with it."""

import json
from pathlib import Path

import pytest

from incarnate import ActivationKey, Opaque, SessionSystem, UserMessage, encode_appended, open_store
from incarnate.studio.exported import export_html
from tests.support.studio_app import address
from tests.support.studio_server import Served, events_of

KEY = ActivationKey("pik-1", "implement")
SECRET = f"sk-{'ant'}-Zx8Qw2Lk9Vb4Nm6Pq"
DEEP = "[" * 600 + "]" * 600
HEAD = b'{"type":"new","id":"n","parentId":null,'
HARD = {
    "lines": HEAD + b'\r\n "api_key":\n"%b"}',
    "no UTF-8": HEAD + b'"x":"\xff","api_key":"%b"}',
    "no float": HEAD + b'"x":[1e999,%b],"api_key":"%%b"}' % (b"9" * 4200),
    "deep": HEAD + b'"x":%b,"api_key":"%%b"}' % DEEP.encode(),
    "large": HEAD + b'"x":"\xff%b","y":1e999,"api_key":"%%b"}' % (b"a" * 300_000),
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/sessions.db"


@pytest.mark.parametrize("raw", HARD.values(), ids=list(HARD))
@pytest.mark.parametrize("mask", [True, False])
def test_an_event_that_is_hard_to_read_is_shown_with_all_others(url: str, raw: bytes, *, mask: bool) -> None:
    event = Opaque("new", "n", None, raw % SECRET.encode())
    with SessionSystem.open(url) as system:
        session = system.claim(KEY)
        session.emit_many([event, UserMessage(id="u", parent_id=None, text="behind it")])
    with open_store(url, read_only=True) as store:
        exported = export_html(store, KEY, 0, mask=mask)
    with Served(url, mask=mask) as served:
        items = served.json(address(KEY, "/messages?view=events"))["items"]
        whole = served.client.get(address(KEY, "/messages?view=events&limit=1&full=1"))
        assert [0, 1] == served.json(address(KEY, "/find"))["offsets"]
        assert [] == served.json(address(KEY, "/find?q=Zx8Qw"))["offsets"] or not mask
        with events_of(served.url, address(KEY, "/changes?view=events")) as events:
            assert items == next(events).data["items"]

    assert ["new", "behind it"] == [items[0]["type"], items[1]["text"]]
    assert exported is not None
    for told in (json.dumps(items), whole.text, b"".join(exported.pieces).decode()):
        assert mask == (SECRET not in told)


def test_a_text_of_deep_json_is_masked_as_text(url: str) -> None:
    with SessionSystem.open(url) as system:
        system.claim(KEY).emit(UserMessage(id="u", parent_id=None, text=f'["{SECRET}","token",{DEEP}]'))
    with Served(url, mask=True) as served:
        [item] = served.json(address(KEY, "/messages?view=events"))["items"]

    assert item["text"].startswith('["[masked]",')


def test_an_event_of_several_lines_is_told_in_one(url: str) -> None:
    with SessionSystem.open(url) as system:
        system.claim(KEY).emit(Opaque("new", "n", None, b'\n{"type":"new",\r\n"id":"n",\n "parentId":null}\r'))
        [told] = [encode_appended(appended) for appended in system.replay(KEY)]

    assert 1 == len(told.splitlines())
    assert {"type": "new", "id": "n", "offset": 0}.items() <= json.loads(told).items()
