"""From a URL to a store. Back ends are imported by name when they are asked for, never before."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote

from incarnate.domain.errors import MissingExtraError, StoreUrlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.storage.port import Store

__all__ = ["open_store"]

_DAY = 86_400
_OPTIONS = "the options are durability=commit|process and busy=SECONDS"


def open_store(url: str, *, read_only: bool = False) -> Store:
    """The store that `url` names.

    `memory://` is a fresh one each time. `sqlite:///relative.db` and `sqlite:////absolute/path.db` take the options
    `durability=commit|process` and `busy=SECONDS`; in a path, `%23`-style escapes are undone. `jsonl:///relative/folder`
    and `jsonl:////absolute/folder` take the same and `segment=BYTES`.
    `postgresql://user@host/database` is what PostgreSQL's own programs take, with these options beside libpq's and
    `schema=NAME` and `pool=CONNECTIONS`.

    Raises:
        StoreUrlError: no such scheme, path or option.
        StoreFileError, StoreServerError, StoreBusyError: from opening it.
        MissingExtraError: its driver is not installed.
    """
    scheme, separator, rest = url.partition("://")
    if scheme == "postgresql" and separator:
        return _postgres(url, read_only=read_only)
    if not separator or scheme not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in (*_SCHEMES, "postgresql"))
        raise StoreUrlError(
            f"{_without_password(url)!r} names no store: the scheme must be one of {known}",
            hint=_meant(_without_password(url)),
        )
    path, _, query = rest.partition("?")
    return _SCHEMES[scheme](url, unquote(path), _options(url, query), read_only=read_only)


def _meant(url: str) -> str:
    """What to write for a bare path; nothing for any other text."""
    return f"did you mean sqlite:///{quote(url)}?" if url and ":" not in url else ""


def _options(url: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, strict_parsing=True, keep_blank_values=True)) if query else {}
    except ValueError as error:
        raise StoreUrlError(f"{url!r}: the options after ? must read name=value&name=value", hint=_OPTIONS) from error


def _memory(url: str, path: str, options: dict[str, str], *, read_only: bool) -> Store:
    if path or options:
        raise StoreUrlError(f"{url!r}: memory:// takes no path and no options")
    store: Store = _backend("memory", "MemoryStore")(read_only=read_only)
    return store


def _sqlite(url: str, path: str, options: dict[str, str], *, read_only: bool) -> Store:
    path, settings = _on_disk(url, path, options, "file")
    _refuse_rest(url, options, "sqlite:// knows the options durability and busy")
    store: Store = _backend("sqlite", "SqliteStore")(path, **settings, read_only=read_only)
    return store


def _jsonl(url: str, path: str, options: dict[str, str], *, read_only: bool) -> Store:
    path, settings = _on_disk(url, path, options, "folder")
    segment = options.pop("segment", None)
    if segment is not None:
        if not re.fullmatch(r"[1-9][0-9]{0,11}", segment, re.ASCII):  # a place in a segment takes 40 bits
            raise StoreUrlError(f"{url!r}: segment must be a number of bytes, not {segment!r}", hint=_OPTIONS)
        settings["segment_bytes"] = int(segment)
    _refuse_rest(url, options, "jsonl:// knows the options durability, busy and segment")
    store: Store = _backend("jsonl", "JsonlStore")(path, **settings, read_only=read_only)
    return store


def _on_disk(url: str, path: str, options: dict[str, str], kind: str) -> tuple[str, dict[str, Any]]:
    """The path, and what the options that SQLite and JSONL share say; those are taken out of `options`."""
    if not path.startswith("/"):
        raise StoreUrlError(f"{url!r}: a relative path takes three slashes, an absolute one four")
    if len(path) == 1 or "\0" in path:
        raise StoreUrlError(f"{url!r} names no {kind}")
    durability = options.pop("durability", "commit")
    if durability not in {"commit", "process"}:
        raise StoreUrlError(f"{url!r}: durability must be commit or process, not {durability!r}", hint=_OPTIONS)
    return path[1:], {"durability": durability, "busy_seconds": _seconds(url, options.pop("busy", "5"))}


def _refuse_rest(url: str, options: dict[str, str], known: str) -> None:
    if options:
        raise StoreUrlError(f"{url!r}: {known}, not {', '.join(options)}", hint=_OPTIONS)


def _postgres(url: str, *, read_only: bool) -> Store:
    try:
        factory = _backend("postgres", "PostgresStore")
    except ImportError as error:  # psycopg, its pool, or the C library that it looks for
        raise MissingExtraError("postgres", "postgresql://") from error
    store: Store = factory(url, read_only=read_only)
    return store


def _without_password(url: str) -> str:
    """`url` for a message: a scheme that nobody knows may still hold a password."""
    return re.sub(r"(?<=://)([^:@/?]*):.*@", r"\1:...@", url)


def _seconds(url: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _DAY:  # also refuses NaN
        raise StoreUrlError(f"{url!r}: busy must be a number of seconds, not {text!r}", hint=_OPTIONS)
    return seconds


def _backend(module: str, name: str) -> Any:
    return getattr(import_module(f"incarnate.storage.{module}"), name)


_SCHEMES: dict[str, Callable[..., Store]] = {"memory": _memory, "sqlite": _sqlite, "jsonl": _jsonl}
