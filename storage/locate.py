"""From a URL to a store. Back ends are imported by name when they are asked for, never before."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from incarnate.domain.errors import MissingExtraError, StoreUrlError
from incarnate.storage.paths import as_written, path_of
from incarnate.storage.plugins import factory_of, known_schemes, register_store, without_password

if TYPE_CHECKING:
    from incarnate.storage.faulty import FaultyStore
    from incarnate.storage.port import Store

__all__ = ["open_store"]

_DAY = 86_400
_FAULTY = "faulty+"
_OPTIONS = "the options are durability=commit|process and busy=SECONDS"


def open_store(url: str, *, read_only: bool = False) -> Store:
    """The store that `url` names.

    `memory://` is a fresh one each time. `sqlite:///relative.db` and `sqlite:////absolute/path.db` take the options
    `durability=commit|process` and `busy=SECONDS`; in a path, `%23`-style escapes are undone. `jsonl:///relative/folder`
    and `jsonl:////absolute/folder` take the same and `segment=BYTES`.
    `postgresql://user@host/database` is what PostgreSQL's own programs take, with these options beside libpq's and
    `schema=NAME` and `pool=CONNECTIONS`; `postgres://` means the same, and case means nothing in a scheme. Other
    schemes are those of `register_store` and of installed distributions (entry points of the group
    `incarnate.stores`). `faulty+URL#fail=2&lose=1` is the store of `URL` with those faults.

    Raises:
        StoreUrlError: no such scheme, path or option, or no str at all.
        StoreFileError, StoreServerError, StoreBusyError: from opening it.
        MissingExtraError: its driver is not installed.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not all check
        raise _no_text(url)
    scheme, separator, rest = url.partition("://")
    factory = factory_of(scheme) if separator else None
    if factory is not None:
        return factory(url, read_only=read_only)
    usual = _usual(scheme)
    factory = factory_of(usual) if separator and usual != scheme else None
    if factory is not None:
        return factory(f"{usual}://{rest}", read_only=read_only)
    if separator and scheme.startswith(_FAULTY):
        return _faulty(url.removeprefix(_FAULTY), read_only=read_only)
    known = ", ".join(f"{name}://" for name in known_schemes())
    raise StoreUrlError(
        f"{without_password(url)!r} names no store: the scheme must be one of {known}",
        hint=_meant(without_password(url)),
    )


def _usual(scheme: str) -> str:
    """The name by which a back end goes: case means nothing in a scheme, and `psql` takes a short one."""
    folded = scheme.lower()
    return "postgresql" if folded == "postgres" else folded


def _no_text(url: object) -> StoreUrlError:
    """What to say of anything but a str; a path is most often what was meant."""
    meant = f"did you mean sqlite:///{as_written(os.fsdecode(url))}?" if isinstance(url, os.PathLike) else ""
    return StoreUrlError(f"the URL of a store must be a str, not {url!r:.100}", hint=meant)


def _faulty(url: str, *, read_only: bool) -> Store:
    url, _, faults = url.partition("#")
    store: FaultyStore = _backend("faulty", "FaultyStore")(open_store(url, read_only=read_only))
    try:
        store.arm(faults)
    except StoreUrlError:
        store.close()
        raise
    return store


def _parts(url: str) -> tuple[str, dict[str, str]]:
    """The path of a URL, unescaped, and its options."""
    path, _, query = url.partition("://")[2].partition("?")
    return path_of(path), _options(url, query)


def _meant(url: str) -> str:
    """What to write for a bare path; nothing for any other text."""
    if not url or ":" in url:
        return ""
    scheme = "jsonl" if os.path.isdir(url) else "sqlite"  # noqa: PTH112 - a NUL or a lone surrogate is no error to it
    return f"did you mean {scheme}:///{as_written(url)}?"


def _options(url: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, strict_parsing=True, keep_blank_values=True)) if query else {}
    except ValueError as error:
        raise StoreUrlError(f"{url!r}: the options after ? must read name=value&name=value", hint=_OPTIONS) from error


def _memory(url: str, *, read_only: bool) -> Store:
    path, options = _parts(url)
    if path or options:
        raise StoreUrlError(f"{url!r}: memory:// takes no path and no options")
    store: Store = _backend("memory", "MemoryStore")(read_only=read_only)
    return store


def _sqlite(url: str, *, read_only: bool) -> Store:
    path, options = _parts(url)
    path, settings = _on_disk(url, path, options, "file")
    _refuse_rest(url, options, "sqlite:// knows the options durability and busy")
    store: Store = _backend("sqlite", "SqliteStore")(path, **settings, read_only=read_only)
    return store


def _jsonl(url: str, *, read_only: bool) -> Store:
    path, options = _parts(url)
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


register_store("memory", _memory)
register_store("sqlite", _sqlite)
register_store("jsonl", _jsonl)
register_store("postgresql", _postgres)
