"""What a request asks for: the segments of its path, and its parameters, each within its bounds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_to_bytes

from incarnate.domain.errors import KeyFormatError
from incarnate.domain.keys import ActivationKey
from incarnate.studio.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import Scope

__all__ = ["Parameters", "key_of", "segments"]

_MOST_PARAMETERS = 16
_target = re.compile(rb"\Ahttps?://[^/]*", re.IGNORECASE)
"""What stands before the path in a request that names the whole address, as those to a proxy do."""


def segments(scope: Scope) -> list[str]:
    """The parts of the path between its slashes, each with its escapes undone: an escaped slash parts nothing.

    Raises:
        Problem: it is no text.
    """
    raw = _target.sub(b"", scope.get("raw_path") or scope["path"].encode(), count=1) or b"/"
    try:
        return [unquote_to_bytes(part).decode() for part in raw.split(b"/")[1:]]
    except UnicodeDecodeError:
        raise Problem(400, "malformed-path", "the path is no UTF-8") from None


def key_of(segment: str) -> ActivationKey:
    """The activation that a segment names.

    Raises:
        Problem: it names none.
    """
    try:
        return ActivationKey.parse(segment)
    except KeyFormatError as error:
        raise Problem(404, "unknown-session", str(error), error.hint) from error


class Parameters:
    """The parameters after `?`.

    Raises:
        Problem: they are malformed, or one is there twice.
    """

    def __init__(self, scope: Scope) -> None:
        try:
            query = scope.get("query_string", b"").decode("ascii")
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
        except (UnicodeDecodeError, ValueError):
            raise Problem(400, "malformed-query", "the parameters cannot be read") from None
        self._values = dict(pairs)
        self._read: set[str] = set()
        if len(self._values) < len(pairs):
            raise Problem(400, "malformed-query", "a parameter is there twice")

    def text(self, name: str, default: str = "", most: int = 512) -> str:
        """A text of at most `most` characters."""
        value = str(self._get(name, default))
        if len(value) > most:
            raise _bad(name, f"must have at most {most} characters")
        return value

    def optional(self, name: str, most: int = 4096) -> str | None:
        """A text; None where it is not there."""
        return self.text(name, most=most) if self._get(name) is not None else None

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within its bounds."""
        text = self._get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 16) or not least <= int(text) <= most:  # noqa: PLR2004
            raise _bad(name, f"must be a whole number from {least} to {most}")
        return int(text)

    def choice(self, name: str, choices: Collection[str], default: str | None) -> str | None:
        """One of a few words."""
        value = self._get(name, default)
        if value is not None and value not in choices:
            raise _bad(name, f"must be one of {', '.join(choices)}")
        return value

    def check_all_read(self) -> None:
        """Refuse what nobody asked for: a name that was misspelt would else be an answer to another question.

        Raises:
            Problem: there is a parameter that was not read.
        """
        unknown = self._values.keys() - self._read
        if unknown:
            raise _bad(min(unknown)[:100], "is no parameter here")

    def _get(self, name: str, default: str | None = None) -> str | None:
        self._read.add(name)
        return self._values.get(name, default)

    def flag(self, name: str) -> bool:
        """Whether it is 1 or true."""
        return self.choice(name, ("0", "1", "false", "true"), "0") in {"1", "true"}


def _bad(name: str, what: str) -> Problem:
    return Problem(400, "malformed-parameter", f"{name} {what}")
