"""What the server answers where it cannot do as asked: `{"error": {"kind", "message", "hint"}}` and a status."""

from __future__ import annotations

import logging
import re
from typing import NamedTuple

from incarnate.actors.logs import log
from incarnate.domain.codec import encode_json
from incarnate.domain.errors import (
    CorruptError,
    IncarnateError,
    KeyFormatError,
    OffsetError,
    StoreBusyError,
    UnavailableError,
)

__all__ = ["Problem", "problem_of"]


class Problem(Exception):  # noqa: N818 - it is answered, not an error of the program
    """A request that is refused with `status`."""

    def __init__(self, status: int, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.hint = hint

    def encode(self) -> bytes:
        """The JSON of the answer."""
        return encode_json({"error": {"kind": self.kind, "message": self.message, "hint": self.hint}})


class _Told(NamedTuple):
    error: type[IncarnateError]
    status: int
    kind: str
    hint: str = ""


_TABLE = (
    _Told(KeyFormatError, 404, "unknown-session"),
    # No request names an offset that a projection is asked to take: there is an event missing before it.
    _Told(OffsetError, 500, "log-damaged", "incarnate doctor tells what is wrong with the store"),
    _Told(StoreBusyError, 503, "store-busy"),
    _Told(UnavailableError, 503, "store-unavailable"),
    _Told(CorruptError, 500, "log-damaged"),
    _Told(IncarnateError, 500, "failed"),
)


def problem_of(error: Exception) -> Problem:
    """What to answer where `error` was raised. One that is not the library's is logged, and not told."""
    if isinstance(error, Problem):
        return error
    for told in _TABLE:
        if isinstance(error, told.error):
            return Problem(told.status, told.kind, _without_surrogates(str(error)), told.hint or error.hint)
    log(logging.ERROR, "studio_failed", "an answer of the studio failed", error=error)
    return Problem(500, "failed", "the server failed; its log tells more")


def _without_surrogates(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
