"""From a `postgresql://` URL to what the PostgreSQL store needs: our options split from libpq's parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from incarnate.domain.errors import StoreUrlError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Durability", "Target", "parse"]

Durability = Literal["commit", "process"]

_SECRET_OPTIONS = frozenset({"password", "sslpassword"})
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_DAY = 86_400
_MOST_CONNECTIONS = 1000

# A network that swallows packets would hold a command for hours: TCP asks only after two, unless told to.
_DEFAULTS = {
    "fallback_application_name": "incarnate",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


class Target(msgspec.Struct, frozen=True):
    """`shown` is the URL without its secrets, fit for messages; `parameters` go to libpq."""

    shown: str
    parameters: dict[str, Any]
    schema: str
    durability: Durability
    busy_seconds: float
    connections: int


def parse(url: str) -> Target:
    """What `url` says.

    Raises:
        StoreUrlError: libpq does not take it, or an option of ours is not one; it never tells a password.
    """
    base, _, query = url.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&")] if query else []
    shown = _shown(base, pairs)
    ours = {name: unquote(value) for name, _, value in pairs if name in _OURS}
    theirs = "&".join(f"{name}={value}" for name, _, value in pairs if name not in _OURS)
    _check_names(shown, pairs)
    try:
        parameters = conninfo_to_dict(f"{base}?{theirs}" if theirs else base)
    except psycopg.Error:
        # Neither libpq's message nor its exception goes on: both may quote the password that it could not read.
        raise StoreUrlError(f"{shown!r} is no URL that PostgreSQL's client library takes") from None
    settings = {name: convert(shown, ours.get(name, default)) for name, (default, convert) in _OURS.items()}
    return Target(
        shown,
        {**_DEFAULTS, **parameters},
        settings["schema"],
        settings["durability"],
        settings["busy"],
        settings["pool"],
    )


def _shown(base: str, pairs: list[tuple[str, str, str]]) -> str:
    scheme, _, rest = base.partition("://")
    user, at, hosts = rest.rpartition("@")
    options = "&".join("".join(pair) for pair in pairs if pair[0] not in _SECRET_OPTIONS)
    return f"{scheme}://{user.partition(':')[0]}{at}{hosts}" + (f"?{options}" if options else "")


def _check_names(shown: str, pairs: list[tuple[str, str, str]]) -> None:
    names = [name for name, _, _ in pairs]
    if not all(separator for _, separator, _ in pairs):
        raise StoreUrlError(f"{shown!r}: the options after ? must read name=value&name=value")
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    unknown = [name for name in names if name not in known and name not in _OURS]
    if unknown:
        raise StoreUrlError(
            f"{shown!r}: postgresql:// knows the options {', '.join(_OURS)} and those of PostgreSQL's client library, "
            f"not {', '.join(unknown)}"
        )


def _durability(shown: str, text: str) -> Durability:
    match text:
        case "commit" | "process":
            return text
        case _:
            raise StoreUrlError(f"{shown!r}: durability must be commit or process, not {text!r}")


def _busy(shown: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _DAY:  # also refuses NaN
        raise StoreUrlError(f"{shown!r}: busy must be a number of seconds, not {text!r}")
    return seconds


def _schema(shown: str, text: str) -> str:
    if not _SCHEMA.fullmatch(text):
        raise StoreUrlError(
            f"{shown!r}: schema must be at most 63 letters, digits and _ that begin with no digit, not {text!r}"
        )
    return text


def _pool(shown: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 2 <= int(text) <= _MOST_CONNECTIONS):  # noqa: PLR2004
        # One would not do: who reads a snapshot may write meanwhile.
        raise StoreUrlError(f"{shown!r}: pool must be a number from 2 to {_MOST_CONNECTIONS}, not {text!r}")
    return int(text)


_OURS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "durability": ("commit", _durability),
    "busy": ("5", _busy),
    "schema": ("incarnate", _schema),
    "pool": ("20", _pool),
}
