"""What the API offers, as an OpenAPI document."""

from __future__ import annotations

from typing import Any

from incarnate.domain.codec import encode_json
from incarnate.studio.openapi_schemas import SCHEMAS

__all__ = ["OPENAPI", "document"]

_VIEWS = ["events", "studio", "model", "frames"]
_CURSOR = {"type": "string", "pattern": r"^[0-9]{1,16}\..*$", "maxLength": 4096}
_SAFE = 2**53 - 1


def _integer(name: str, least: int, most: int, default: int | None = None, about: str = "") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return {"name": name, "in": "query", "schema": schema, "description": about}


def _text(name: str, most: int, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string", "maxLength": most}, "description": about}


def _choice(name: str, choices: list[str], about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string", "enum": choices}, "description": about}


_KEY = {
    "name": "key",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
    "description": "The session's key as the list gives it, percent-encoded as one segment: its own / as %2F.",
}
_VIEW = _choice("view", _VIEWS, "events: the log. studio: for people. model: what a provider gets. frames: a client's.")
_RANGE = [
    _integer("from", 0, _SAFE, 0, "The index of the first item."),
    _integer("limit", 1, 1000, 200, "Items at most; fewer where they come to 4 MB."),
    _choice("full", ["0", "1", "false", "true"], "Do not cut items over 256 KB; up to 64 MB an item."),
]


def _problem(about: str) -> dict[str, Any]:
    return {"description": about, "content": _json("Problem")}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


_REFUSED = {
    "400": _problem("A parameter is malformed."),
    "401": _problem("A token is needed, or the one that was sent is wrong."),
    "403": _problem("By another host's name, or from another site's page."),
    "404": _problem("There is nothing of that name."),
    "429": _problem("Too many requests at once."),
    "500": _problem("The log is damaged, or the server failed."),
    "503": _problem("The store is busy or away, or too many streams are open."),
}


def _get(about: str, schema: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    answer = {"description": about, "content": _json(schema)}
    return {"get": {"summary": about, "parameters": list(parameters), "responses": {"200": answer, **_REFUSED}}}


def _stream(about: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    answer = {"description": about, "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    return {"get": {"summary": about, "parameters": list(parameters), "responses": {"200": answer, **_REFUSED}}}


def _sign_in() -> dict[str, Any]:
    answers = {
        "200": {"description": "Signed in: a cookie is set.", "content": _json("SignedIn")},
        **{status: _REFUSED[status] for status in ("400", "401", "403", "429")},
        "408": _problem("The body did not come in time."),
        "413": _problem("The body is too large."),
    }
    body = {"required": True, "content": _json("SignIn")}
    post = {"summary": "Sign in.", "security": [], "requestBody": body, "responses": answers}
    return _get("Whether one is signed in, and must be.", "SignedIn") | {"post": post}


def _sign_out() -> dict[str, Any]:
    answers = {
        "200": {"description": "Signed out: the cookie is gone.", "content": _json("SignedIn")},
        "403": _REFUSED["403"],
    }
    return {"post": {"summary": "Sign out.", "security": [], "responses": answers}}


def document() -> dict[str, Any]:
    """The document."""
    session = "/api/sessions/{key}"
    resumed = _text("after", 128, "The id of a page or change to go on from.")
    last = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}, "description": "Before `after`."}
    listed = (
        _text("q", 256, "A part of the key, whatever its case."),
        _choice("state", ["live", "idle", "fenced", "retired"], "Only these."),
        {**_text("after", 4096, "`next` of the page before."), "schema": _CURSOR},
        _integer("limit", 1, 1000, 50),
    )
    followed = (
        _text("session", 4096, "The key of the session whose view is followed beside the list."),
        {**_VIEW, "description": "Of the session; events unless it is given."},
        resumed,
        _text("list", 128, "The id of the last rows, to go on from."),
    )
    generation = {"name": "generation", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
    found = (
        _text("q", 256, "A text, whatever its case."),
        _text("kinds", 512, "Types of events, with commas between them."),
        _integer("from", 0, _SAFE, 0, "The first offset."),
        _integer("limit", 1, 1_000_000, 1_000_000),
    )
    paths = {
        "/api/sessions": _get("The sessions, the last updated first.", "Sessions", *listed),
        "/api/changes": _stream("All that one page follows.", *followed, last),
        "/api/sessions/changes": _stream("The rows of the list that change.", last),
        session: _get("One session.", "Session", _KEY),
        f"{session}/messages": _get("A page of a view.", "Page", _KEY, _VIEW, *_RANGE),
        f"{session}/changes": _stream("The changes of a view.", _KEY, _VIEW, resumed, last),
        f"{session}/find": _get("Where something stands.", "Found", _KEY, *found),
        f"{session}/stats": _get("What the log amounts to.", "Stats", _KEY),
        f"{session}/rewinds": _get("The rewinds.", "Rewinds", _KEY),
        f"{session}/superseded/{{generation}}": _get("What a rewind superseded.", "Page", _KEY, generation, *_RANGE),
        f"{session}/timeline": _get("The timeline.", "Timeline", _KEY, _integer("width", 320, 2400, 1200)),
        "/api/sign-in": _sign_in(),
        "/api/sign-out": _sign_out(),
        "/api/openapi.json": _get("This document.", "Any"),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "incarnate studio",
            "version": "1",
            "description": "Sessions of a store, read-only and live.",
        },
        "paths": paths,
        "security": [{}, {"bearer": []}, {"cookie": []}],
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "incarnate-studio"},
            },
        },
    }


OPENAPI = encode_json(document())
