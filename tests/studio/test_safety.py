"""Who may look, and that nothing of a log or a request becomes more than text."""

import hmac
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incarnate import ActivationKey, SessionSystem, ToolCall, UserMessage
from incarnate.studio import guard
from incarnate.studio.guard import Bucket, Guard
from incarnate.studio.problems import Problem
from tests.support.loops import on_a_loop
from tests.support.studio_app import HOST, address, running
from tests.support.studio_server import Served

TOKEN = "correct-horse-battery-staple"
SECRET = f"sk-{'ant'}-Zx8Qw2Lk9Vb4Nm6Pq"
HOSTILE = "</script><script>alert(1)</script> \x1b[31m\x00 \u202eevil\u2066 \u2028"
KEYS = [
    ActivationKey("a/b", "c%d"),
    ActivationKey(" . ", ".."),
    ActivationKey("ü 漢", "🦊"),
    ActivationKey("</script>\x1b]0;x\x07", "\u202e\u2066?q=#f"),
    ActivationKey("%2F", "%252F"),
]


@pytest.fixture
def url(swift_path: Path) -> str:
    url = f"sqlite:///{swift_path}/sessions.db"
    with SessionSystem.open(url) as system:
        for key in KEYS:
            session = system.claim(key)
            session.emit(UserMessage(id="e0", parent_id=None, text=f"{HOSTILE} {SECRET}"))
            session.emit(ToolCall(id="e1", parent_id="e0", call_id="c", name="run", args={"api_key": SECRET, "n": 1.5}))
    return url


@on_a_loop
async def ask_for_every_key(url: str) -> None:
    async with running(url) as app:
        listed = {row["key"] for row in (await app.json("/api/sessions"))["sessions"]}
        assert {str(key) for key in KEYS} == listed
        for key in KEYS:
            row = await app.json(address(key))
            assert str(key) == row["key"]
            page = await app.json(address(key, "/messages?view=events"))
            assert f"{HOSTILE} {SECRET}" == page["items"][0]["text"]
            async with app.stream(address(key, "/changes?view=events")) as stream:
                assert page["items"] == (await stream.next()).data["items"]


def test_a_key_of_any_letters_is_one_segment_and_what_its_log_says_is_text(url: str) -> None:
    ask_for_every_key(url)


@pytest.mark.parametrize("name", ["nobody%2Fhere", "a/b", "a%2Fb%2Fc", "%FF", "a", "%00%2Fb", "a%252Fb"])
def test_a_key_that_is_none_is_answered_in_the_form_of_all_problems(url: str, name: str) -> None:
    with Served(url) as served:
        answer = served.client.get(f"/api/sessions/{name}")
    assert answer.status_code in {400, 404}
    assert {"kind", "message", "hint"} == answer.json()["error"].keys()


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "[::1", "2130706433", "127.1"),
        *("[::1].evil.example", "[::1%evil.example]", "[::1]evil:80", "evil@localhost"),
    ],
)
def test_a_name_that_a_stranger_may_have_led_here_is_refused(url: str, host: str) -> None:
    with Served(url) as served:
        for path in ("/", "/api/sessions", "/static/app.js"):
            answer = served.client.get(path, headers={"Host": host})
            assert answer.status_code in {400, 403}, path


@pytest.mark.parametrize("host", ["localhost", "localhost:8123", "127.0.0.1:1", "[::1]:8123", "192.0.2.7"])
def test_its_own_names_and_addresses_are_taken(url: str, host: str) -> None:
    with Served(url) as served:
        assert 200 == served.client.get("/api/sessions", headers={"Host": host}).status_code


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_the_page_of_another_site_reads_nothing_and_signs_nobody_in(url: str, headers: dict[str, str]) -> None:
    with Served(url, token=TOKEN) as served:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert 403 == served.client.get("/api/sessions", headers=headers | bearer).status_code
        assert 403 == served.client.post("/api/sign-in", json={"token": TOKEN}, headers=headers).status_code


def test_without_the_token_nothing_is_read(url: str) -> None:
    paths = ["/api/sessions", "/api/openapi.json", "/api/sessions/changes", address(KEYS[0]), "/api/nothing"]
    paths += ["/api/changes", "/api/sign-in"]
    paths += [address(KEYS[0], f"/{rest}") for rest in ("messages", "changes", "find", "stats", "rewinds", "timeline")]
    with Served(url, token=TOKEN) as served:
        for path in paths:
            assert 401 == served.client.get(path).status_code, path
            wrong = served.client.get(path, headers={"Authorization": "Bearer wrong"}).status_code
            assert wrong in {401, 429}, path  # the last ones come after too many tries
            assert 401 == served.client.get(f"{path}?token={TOKEN}").status_code, path


def test_a_wrong_bearer_is_told_from_none(url: str) -> None:
    with Served(url, token=TOKEN) as served:
        wrong = [{"Authorization": f"{scheme} wrong"} for scheme in ("Bearer", "bearer")]
        none = [{}, {"Authorization": "Bearer"}, {"Authorization": "Basic abc"}, {"Cookie": "incarnate-studio=x"}]
        told = [served.client.get("/api/sessions", headers=headers).json()["error"] for headers in wrong + none]

    assert ["the token is wrong"] * 2 + ["a token is needed"] * 4 == [error["message"] for error in told]
    assert ["wrong-token"] * 2 + ["signed-out"] * 4 == [error["kind"] for error in told]


def test_who_signs_in_gets_a_cookie_that_is_not_the_token(url: str) -> None:
    with Served(url, token=TOKEN) as served:
        answer = served.client.post("/api/sign-in", json={"token": TOKEN})
        assert 200 == answer.status_code
        cookie = answer.headers["set-cookie"]
        assert TOKEN not in cookie
        assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
        assert 200 == served.client.get("/api/sessions").status_code
        served.client.cookies.clear()
        assert 401 == served.client.get("/api/sessions").status_code
        assert 200 == served.client.get("/api/sessions", headers={"Authorization": f"Bearer {TOKEN}"}).status_code


def test_who_signs_out_has_no_cookie_any_more(url: str) -> None:
    with Served(url, token=TOKEN) as served:
        served.client.post("/api/sign-in", json={"token": TOKEN})
        assert {"signedIn": True, "needed": True} == served.json("/api/sign-in")
        elsewhere = {"Origin": "https://evil.example"}
        assert 403 == served.client.post("/api/sign-out", headers=elsewhere).status_code
        assert 405 == served.client.get("/api/sign-out").status_code
        assert 200 == served.client.get("/api/sessions").status_code
        answer = served.client.post("/api/sign-out")
        assert {"signedIn": False, "needed": True} == answer.json()
        assert "max-age=0" in answer.headers["set-cookie"].lower()
        assert 0 == len(served.client.cookies)
        assert 401 == served.client.get("/api/sessions").status_code
        assert 401 == served.client.get("/api/sign-in").status_code


def test_where_there_is_no_token_nobody_is_signed_out(url: str) -> None:
    with Served(url) as served:
        for answer in (served.client.get("/api/sign-in"), served.client.post("/api/sign-out")):
            assert {"signedIn": True, "needed": False} == answer.json()


@pytest.fixture
def few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """No further ones come with time, of which a slow machine has much."""
    burst, _ = guard._TRIES  # noqa: SLF001
    monkeypatch.setattr(guard, "_TRIES", (burst, 0))


@pytest.mark.usefixtures("few_tries")
def test_a_token_is_tried_a_few_times_and_no_more(url: str) -> None:
    with Served(url, token=TOKEN) as served:
        answers = [served.client.post("/api/sign-in", json={"token": f"{n}"}).status_code for n in range(30)]
    assert 401 == answers[0]
    assert 429 == answers[-1]


@pytest.mark.usefixtures("few_tries")
def test_a_wrong_bearer_is_a_try_as_well_and_the_right_one_is_none(url: str) -> None:
    with Served(url, token=TOKEN) as served:

        def ask(token: str) -> int:
            return served.client.get("/api/sessions", headers={"Authorization": f"Bearer {token}"}).status_code

        assert {200} == {ask(TOKEN) for _ in range(30)}
        answers = [ask(f"{n}") for n in range(30)]
        assert (401, 429) == (answers[0], answers[-1])
        assert 429 == ask(TOKEN)  # nor is a guess that is right told from others then


@pytest.mark.usefixtures("few_tries")
def test_who_guesses_keeps_nobody_else_out() -> None:
    guard = Guard((), TOKEN, requests=Bucket(1, 0))
    bearer = {"host": HOST, "authorization": f"Bearer {TOKEN}"}
    for n in range(30):
        with pytest.raises(Problem):
            guard.check_api({"host": HOST, "authorization": f"Bearer {n}"}, f"2001:db8::{n}")
        with pytest.raises(Problem):
            guard.check_api({"host": HOST}, "192.0.2.1")
    with pytest.raises(Problem, match="tried too often"):
        guard.check_api(bearer, "2001:db8::ffff")
    guard.check_api(bearer, "192.0.2.1")


@pytest.mark.parametrize("other", ['a={"x":1}', "a b=1", "é=1", "a", "Path=/", "NAME=stale", "a@b=[1]"])
def test_cookies_of_other_servers_of_the_host_sign_nobody_out(other: str) -> None:
    guard = Guard((), TOKEN, cookie="NAME")
    session = guard.sign_in({"host": HOST}, TOKEN)
    for cookies in (f"{other}; NAME={session}", f"NAME={session}; {other}"):
        guard.check_api({"host": HOST, "cookie": cookies})
    with pytest.raises(Problem):
        guard.check_api({"host": HOST, "cookie": f"{other}; NAME=x{session}"})


def test_a_token_of_any_letters_is_a_bearer(url: str) -> None:
    token = "schlüssel-漢字-of-a-person"
    with Served(url, token=token) as served:
        headers = {"Authorization": f"Bearer {token}".encode()}
        assert 200 == served.client.get("/api/sessions", headers=headers).status_code  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"x" * 5000, 413), (b"{}", 400), (b'{"token": 1}', 400), (b"\xff", 400), (b'{"token":"\\ud800"}', 400)],
)
def test_a_body_that_is_no_token_is_refused(url: str, body: bytes, status: int) -> None:
    with Served(url, token=TOKEN) as served:
        answer = served.client.post("/api/sign-in", content=body, headers={"Content-Type": "application/json"})
        assert status == answer.status_code
        assert 400 == served.client.post("/api/sign-in", content=b"token=x").status_code


def test_a_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(guard, "hmac", type("Hmac", (), {"compare_digest": staticmethod(compare), "new": hmac.new}))
    with pytest.raises(Problem):
        Guard((), TOKEN).check_api({"authorization": "Bearer wrong", "host": HOST})
    with pytest.raises(Problem):
        Guard((), TOKEN).sign_in({"host": HOST}, "wrong")
    assert [(b"wrong", TOKEN.encode())] * 2 == compared


def test_a_token_is_in_no_log(url: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    with Served(url, token=TOKEN) as served:
        served.client.post("/api/sign-in", json={"token": TOKEN})
        served.client.get("/api/sessions", headers={"Authorization": f"Bearer {TOKEN}"})
        served.client.get("/api/sessions", headers={"Authorization": "Bearer wrong"})
    out = capfd.readouterr()
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert TOKEN not in out.out + out.err + "".join(ours)


def test_too_many_requests_at_once_are_refused(url: str) -> None:
    now = 0.0
    bucket = Bucket(3, 1, lambda: now)
    assert [True, True, True, False] == [bucket.take() for _ in range(4)]
    now = 2.0
    assert [True, True, False] == [bucket.take() for _ in range(3)]
    with Served(url, requests=Bucket(2, 0)) as served:
        assert [200, 200, 429] == [served.client.get("/api/openapi.json").status_code for _ in range(3)]


def test_the_files_of_the_page_are_bounded_for_each_client() -> None:
    guard = Guard((), TOKEN, files=(2, 0))
    for client in ("192.0.2.1", "192.0.2.2"):
        guard.check_file(client)
        guard.check_file(client)
        with pytest.raises(Problem, match="too many requests"):
            guard.check_file(client)
    for n in range(2):
        guard.check_file(f"2001:db8::{n}")
    with pytest.raises(Problem):
        guard.check_file("2001:db8::ffff")


def test_whoever_asks_for_files_without_end_is_refused_and_still_reads(url: str) -> None:
    with Served(url, files=(3, 0)) as served:
        paths = ("/", "/static/app.js", "/s/a%2Fb", "/static/none.js", "/static/main.js", "/")
        assert [200, 200, 200, 429, 429, 429] == [served.client.get(path).status_code for path in paths]
        assert 200 == served.client.get("/api/sessions").status_code


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    (folder / "sub").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>the page")
    (folder / "sub" / "app.js").write_text("export {}")
    (folder / "notes.py").write_text("not served")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "nothing.txt")
    return folder


def test_only_the_files_of_the_page_are_served(url: str, page: Path) -> None:
    out = [
        "../secret.txt",
        "%2e%2e/secret.txt",
        "..%2Fsecret.txt",
        "sub/../../secret.txt",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
    ]
    none = ["", "sub", "sub/", "notes.py", "link.txt", "index.html%00.js", "INDEX.HTML", "sub\\app.js", "%ff"]
    with Served(url, page=page) as served:
        for name in out + none:
            told = raw_get(served, f"/static/{name}")
            assert told.split(b" ")[1] in {b"400", b"404"}, name
            assert b"secret" not in told.partition(b"\r\n\r\n")[2], name
        assert "export {}" == served.client.get("/static/sub/app.js").text
        for path in ("/", "/s/a%2Fb", "/s/a%2Fb/at/5?tab=model"):
            answer = served.client.get(path)
            assert "<!doctype html>the page" == answer.text
            assert "text/html; charset=utf-8" == answer.headers["content-type"]


def raw_get(served: Served, path: str) -> bytes:
    """Without a client that would tidy the path up."""
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_every_answer_carries_the_policy(url: str, page: Path) -> None:
    with Served(url, page=page) as served:
        paths = ["/", "/static/sub/app.js", "/api/sessions", "/api/none", "/none", "/static/none", "/favicon.ico"]
        answers = [served.client.get(path) for path in paths]
        answers.append(served.client.post("/api/sessions"))
        with served.client.stream("GET", address(KEYS[0], "/changes")) as stream:
            answers.append(stream)
    for answer in answers:
        assert "default-src 'none'" in answer.headers["content-security-policy"], answer.url
        assert "'unsafe" not in answer.headers["content-security-policy"]
        assert "nosniff" == answer.headers["x-content-type-options"]
        assert "no-referrer" == answer.headers["referrer-policy"]
        assert "same-origin" == answer.headers["cross-origin-resource-policy"]
        assert "no-store" == answer.headers["cache-control"]
        assert "access-control-allow-origin" not in answer.headers


@pytest.fixture
def masked(url: str) -> Iterator[Served]:
    with Served(url, mask=True) as served:
        yield served


def test_a_secret_is_in_no_answer(masked: Served) -> None:
    for rest in ("", "/messages?view=events", "/messages?view=studio", "/messages?view=model", "/messages?view=frames"):
        assert "Zx8Qw2Lk9Vb4Nm6Pq" not in masked.client.get(address(KEYS[0], rest)).text
    for rest in ("/timeline", "/stats"):
        assert "Zx8Qw2Lk9Vb4Nm6Pq" not in masked.client.get(address(KEYS[0], rest)).text
    assert "Zx8Qw2Lk9Vb4Nm6Pq" not in masked.client.get("/api/sessions").text
    with masked.client.stream("GET", address(KEYS[0], "/changes?view=events")) as stream:
        data = ""
        for chunk in stream.iter_text():
            data += chunk
            if "\ndata: " in data and data.endswith("\n\n"):
                break
    assert "Zx8Qw2Lk9Vb4Nm6Pq" not in data
    assert "[masked]" in data


def test_a_search_does_not_spell_what_is_masked(masked: Served) -> None:
    assert [] == masked.json(address(KEYS[0], "/find?q=Zx8Qw"))["offsets"]
    assert [0] == masked.json(address(KEYS[0], "/find?q=alert"))["offsets"]
    assert [1] == masked.json(address(KEYS[0], "/find?kinds=tool-call"))["offsets"]
