"""The name of an activation."""

from __future__ import annotations

import msgspec

from incarnate.domain.errors import KeyFormatError

__all__ = ["MAX_PART_BYTES", "ActivationKey", "check_key"]

MAX_PART_BYTES = 1024
"""The longest part in UTF-8 bytes: two of them fit an index entry of every back end (PostgreSQL: 2,704 bytes)."""


class ActivationKey(msgspec.Struct, frozen=True, order=True):
    """One leased run of a process element.

    `str(key)` and `ActivationKey.parse` are inverse: `/` and `%` inside a part are written as `%2F` and `%25`,
    so no two keys share a string.

    Raises:
        KeyFormatError: a part that is not text, is empty, holds NUL or a lone surrogate, or is over 1,024 bytes.
    """

    process_instance_key: str
    element_id: str

    def __post_init__(self) -> None:
        _check("process_instance_key", self.process_instance_key)
        _check("element_id", self.element_id)

    def __str__(self) -> str:
        return f"{_escape(self.process_instance_key)}/{_escape(self.element_id)}"

    @classmethod
    def parse(cls, text: str) -> ActivationKey:
        """The key whose `str` is exactly `text`.

        Raises:
            KeyFormatError: no such key exists.
        """
        parts = text.split("/")
        if len(parts) != 2:  # noqa: PLR2004
            raise KeyFormatError(f"{text!r} is no activation key: it needs exactly one / between its two parts")
        key = cls(*map(_unescape, parts))
        if str(key) != text:
            raise KeyFormatError(f"{text!r} is no activation key: % stands only in %2F and %25")
        return key


def check_key(key: object) -> None:
    """Refuse what is no `ActivationKey`, such as its text.

    Raises:
        KeyFormatError: it is none.
    """
    if not isinstance(key, ActivationKey):
        error = KeyFormatError(f"an ActivationKey names an activation, not the {type(key).__name__} {key!r:.100}")
        error.hint = 'use ActivationKey.parse("a/b") or ActivationKey(process_instance_key, element_id)'
        raise error


def _check(name: str, part: object) -> None:
    if not isinstance(part, str):
        raise KeyFormatError(f"{name} must be text, not {type(part).__name__}")
    if not part:
        raise KeyFormatError(f"{name} is empty")
    if "\0" in part:
        raise KeyFormatError(f"{name} holds a NUL character")
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        raise KeyFormatError(f"{name} holds a lone surrogate") from None
    if size > MAX_PART_BYTES:
        raise KeyFormatError(f"{name} has {size} bytes; at most {MAX_PART_BYTES} are allowed")


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _unescape(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")
