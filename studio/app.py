"""The studio's server: which question goes where, and what every answer carries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from incarnate.domain.codec import encode_json
from incarnate.studio.answers import Answers
from incarnate.studio.hub import Hub, Pace
from incarnate.studio.page_stream import Held, page_changes
from incarnate.studio.places import START_OVER, Place
from incarnate.studio.problems import Problem, problem_of
from incarnate.studio.requests import Parameters, key_of, segments
from incarnate.studio.roll import Roll
from incarnate.studio.sessions_stream import session_changes
from incarnate.studio.static import PAGE, page_file
from incarnate.studio.streams import EventStream, changes
from incarnate.studio.views import EVENTS, VIEWS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive
    from incarnate.studio.guard import Guard
    from incarnate.studio.listing import Listing
    from incarnate.studio.streams import Told

    Changes = AsyncGenerator[Told | None]

__all__ = ["Studio"]

_PACE = Pace()
_MOST_BODY_BYTES = 4096
_BODY_SECONDS = 10.0

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
    "server": "incarnate",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_JSON = "application/json"


class Studio:
    """The ASGI application. It belongs to the event loop that runs it."""

    def __init__(self, archive: Archive, listing: Listing, guard: Guard, page: Path = PAGE, pace: Pace = _PACE) -> None:
        self._archive = archive
        self._listing = listing
        self._guard = guard
        self._page = page
        self._pace = pace
        self._answers = Answers(archive, listing)
        self._hub: Hub | None = None
        self._roll: Roll | None = None

    @property
    def hub(self) -> Hub:
        """Those who follow something, while the application runs."""
        assert self._hub is not None, "the application was not started"
        return self._hub

    @property
    def roll(self) -> Roll:
        """The list that they follow, while the application runs."""
        assert self._roll is not None, "the application was not started"
        return self._roll

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            answer = await self._answer_of(scope, receive)
            await answer(scope, receive, send)
        else:  # a websocket: nothing here speaks it
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._hub = Hub(self._archive, self._pace)
        self._roll = Roll(self._hub, self._listing)
        async with self._hub.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await self._roll.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer_of(self, scope: Scope, receive: Receive) -> ASGIApp:
        try:
            self._guard.check_host(Headers(scope=scope))
            return await self._answer(scope, receive)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered in one form
            problem = problem_of(error)
            return _answer(problem.encode(), _JSON, problem.status)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        match segments(scope):
            case ["api", "sign-in"] if scope["method"] not in {"GET", "HEAD"}:
                _check_method(scope, "GET", "HEAD", "POST")
                return await self._sign_in(scope, receive)
            case ["api", "sign-out"]:
                _check_method(scope, "POST")
                return self._sign_out(Headers(scope=scope))
            case ["api", *path]:
                headers = Headers(scope=scope)
                self._guard.check_api(headers, _client(scope))
                _check_method(scope, "GET", "HEAD")
                return await self._api(path, Parameters(scope), headers)
            case ["static", *path]:
                _check_method(scope, "GET", "HEAD")
                return await self._file(scope, "/".join(path))
            case [""] | ["s", *_]:
                _check_method(scope, "GET", "HEAD")
                return await self._file(scope, "index.html")
            case ["favicon.ico"]:
                return Response(status_code=204, headers=_HEADERS)
            case _ if scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", ""):
                return await self._file(scope, "index.html", 404)  # a browser: the page says it, with a way home
            case _:
                raise _nothing_here()

    async def _api(self, path: list[str], parameters: Parameters, headers: Headers) -> ASGIApp:
        match path:
            case ["sign-in"]:
                parameters.check_all_read()
                return _signed(signed_in=True, needed=self._guard.has_token)
            case ["changes"]:
                return self._page_changes(parameters, headers)
            case ["sessions", "changes"]:
                parameters.check_all_read()
                return self._stream(session_changes(self.hub, self.roll, headers.get("last-event-id", "")))
            case ["sessions", name, "changes"]:
                return await self._changes(name, parameters, headers)
            case _:
                work = self._answers.find(path)
                if work is None:
                    raise _nothing_here()
                data = await self.hub.in_thread(work, parameters)
                parameters.check_all_read()
                return _answer(data, _JSON)

    async def _changes(self, name: str, parameters: Parameters, headers: Headers) -> ASGIApp:
        key = key_of(name)
        view = parameters.choice("view", (EVENTS, *VIEWS), "studio") or ""
        after = parameters.optional("after", 128)
        parameters.check_all_read()
        after = headers.get("last-event-id") or after
        await self.hub.in_thread(self._archive.head, key)
        return self._stream(self._view_changes(key, view, after))

    def _page_changes(self, parameters: Parameters, headers: Headers) -> ASGIApp:
        name = parameters.optional("session")
        view = parameters.choice("view", (EVENTS, *VIEWS), EVENTS) or ""
        held = Held(parameters.text("after", most=128), parameters.text("list", most=128))
        parameters.check_all_read()
        last = headers.get("last-event-id")
        held = held if last is None else Held.parse(last)
        of_session = None if name is None else self._view_changes(key_of(name), view, held.session)
        return self._stream(page_changes(of_session, session_changes(self.hub, self.roll, held.sessions), held))

    def _view_changes(self, key: ActivationKey, view: str, after: str | None) -> Changes:
        held = None if after == START_OVER else Place.parse(after)
        return changes(self.hub.channel(key, view), held)

    def _stream(self, parts: Changes) -> ASGIApp:
        return EventStream(self.hub, parts, _RAW_HEADERS)

    async def _file(self, scope: Scope, name: str, status: int = 200) -> Response:
        self._guard.check_file(_client(scope))
        found = await self.hub.in_thread(page_file, name, self._page)
        if found is None:
            raise Problem(404, "unknown-file", "there is no such file")
        return _answer(found.data, found.content_type, status)

    async def _sign_in(self, scope: Scope, receive: Receive) -> Response:
        request = Request(scope, receive)
        token = _token_in(await self._body(request), request.headers.get("content-type", ""))
        session = self._guard.sign_in(request.headers, token, _client(scope))
        answer = _signed(signed_in=True, needed=self._guard.has_token)
        answer.set_cookie(self._guard.cookie, session, httponly=True, samesite="strict", path="/")
        return answer

    def _sign_out(self, headers: Headers) -> Response:
        self._guard.check_site(headers)
        needed = self._guard.has_token
        answer = _signed(signed_in=not needed, needed=needed)
        answer.delete_cookie(self._guard.cookie, httponly=True, samesite="strict", path="/")
        return answer

    async def _body(self, request: Request) -> bytes:
        """What was sent, as long as somebody is there to read it and it does not take for ever."""
        coming = asyncio.ensure_future(_read(request))
        closing = asyncio.ensure_future(self.hub.closing.wait())
        await asyncio.wait((coming, closing), timeout=_BODY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in (coming, closing):
            task.cancel()
        if not coming.done():
            raise Problem(408, "too-slow", "the body did not come in time", "send it at once")
        return coming.result()


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BODY_BYTES:
            raise Problem(413, "too-large", f"the body has over {_MOST_BODY_BYTES} bytes")
    return bytes(body)


class _SignIn(msgspec.Struct, forbid_unknown_fields=True):
    token: str


_sign_in_decoder = msgspec.json.Decoder(_SignIn)


def _token_in(body: bytes, content_type: str) -> str:
    # A page of another site can send a form without being asked first, but not this type.
    if content_type.partition(";")[0].strip().lower() != _JSON:
        raise Problem(400, "malformed-body", "the body must be JSON", "send it as application/json")
    try:
        return _sign_in_decoder.decode(body).token
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Problem(400, "malformed-body", 'the body must read {"token": "..."}') from None


def _answer(data: bytes, content_type: str, status: int = 200) -> Response:
    return Response(data, status, _HEADERS, content_type)


def _signed(*, signed_in: bool, needed: bool) -> Response:
    return _answer(encode_json({"signedIn": signed_in, "needed": needed}), _JSON)


def _client(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _check_method(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        raise Problem(405, "wrong-method", f"this address takes {' and '.join(methods)}")


def _nothing_here() -> Problem:
    return Problem(
        404, "unknown-address", "there is nothing at this address", "GET /api/openapi.json describes the API"
    )
