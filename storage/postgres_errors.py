"""What the driver's errors mean: one table, read by every part of the PostgreSQL store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from incarnate.domain.errors import (
    IncarnateError,
    LogCorruptionError,
    OutcomeUnknownError,
    StoreBusyError,
    StoreServerError,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["meaning", "outcome", "told", "translated"]

Meaning = Literal["again", "lost", "unknown", "busy", "corrupt", "unusable"]

# By code, or else by the class that its first two characters name. `again`: the transaction was rolled back, and the
# same one may well succeed now. `lost`: the connection is gone. `unknown`: the server itself cannot tell.
_MEANINGS: dict[str, tuple[Meaning, str]] = {
    "08": ("lost", "the connection was lost"),
    "08007": ("unknown", "the server cannot tell whether it committed"),
    "22": ("unusable", "refused a value"),
    "23505": ("again", "somebody else was first"),
    "25006": ("unusable", "takes no writes: it is a standby, or set to read-only"),
    # The server ends who holds a lock and says nothing, a stopped process say. It had not read the commit.
    "25P03": ("again", "the server ended the transaction, since it was left open"),
    "25P04": ("again", "the server ended the transaction, since it took too long"),
    "26000": ("again", "the server has forgotten a statement"),
    "28": ("unusable", "refuses this user"),
    "3D000": ("unusable", "has no such database"),
    "40": ("again", "the transaction was in the way of another"),
    "40003": ("unknown", "the server cannot tell whether it committed"),
    "42501": ("unusable", "does not allow this user to do that"),
    "42P01": ("unusable", "the store's tables are gone"),
    "42703": ("unusable", "the schema holds tables that are not of this version of incarnate"),
    "53": ("busy", "the server is short of something"),
    "53100": ("unusable", "the server's disk is full; nothing was written"),
    "54": ("unusable", "a value is larger than PostgreSQL takes; nothing was written"),
    "55P03": ("busy", "another process holds the activation"),
    "57014": ("busy", "the server took too long"),
    "57P01": ("lost", "the server was shut down"),
    "57P02": ("lost", "the server crashed"),
    "57P03": ("lost", "the server is starting up or shutting down"),
    "57P05": ("lost", "the server closed an idle connection"),
    "58": ("unusable", "the server's disk failed"),
    "XX001": ("corrupt", "the server found damaged data"),
    "XX002": ("corrupt", "the server found a damaged index"),
}


def meaning(error: psycopg.Error) -> tuple[Meaning, str]:
    """What `error` means, and in our words."""
    code = error.sqlstate
    if code is None:  # of the client library: it had no answer to read
        return "lost", "the connection was lost"
    return _MEANINGS.get(code) or _MEANINGS.get(code[:2]) or ("unusable", "failed")


def outcome(error: psycopg.Error, place: str, *, committing: bool, broken: bool) -> IncarnateError | None:
    """What to raise for `error` in a write, None where the whole transaction may be tried again.

    `committing`: the commit was on its way. `broken`: the connection did not outlive it. An error that came with the
    connection intact is the server's word that nothing was written.
    """
    kind, reason = meaning(error)
    if kind == "unknown" or (committing and kind != "again" and (broken or kind == "lost")):
        return OutcomeUnknownError(f"{place}: {reason} during the commit ({told(error)})")
    if kind in {"again", "lost"}:
        return None
    return translated(error, place)


def translated(error: psycopg.Error, place: str) -> IncarnateError:
    """The driver's `error` as one of ours, where nothing was written."""
    kind, reason = meaning(error)
    text = f"{reason} ({told(error)})"
    if kind == "corrupt":
        return LogCorruptionError(place, text)
    if kind == "unusable":
        return StoreServerError(place, text)
    return StoreBusyError(f"{place}: {text}")


def told(error: BaseException) -> str:
    """What the server or the driver said, on one line."""
    return " ".join(str(error).split())
