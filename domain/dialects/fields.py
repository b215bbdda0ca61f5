"""Reading the fields of records that were written by others: each helper refuses or mends, none guesses."""

from __future__ import annotations

from typing import Any

from incarnate.domain.errors import DialectError
from incarnate.domain.events import MAX_INTEGER

__all__ = ["as_object", "as_record", "count", "either", "optional_text", "require", "text_of"]


def as_object(harness: str, record: object) -> dict[str, Any]:
    """The record, if it is an object.

    Raises:
        DialectError: it is none.
    """
    if not isinstance(record, dict):
        raise DialectError(harness, f"a record is a JSON object, not {type(record).__name__}")
    return record


def as_record(harness: str, record: object) -> dict[str, Any]:
    """The record, if it is one: an object whose `type` is a text.

    Raises:
        DialectError: it is no object, or has no type.
    """
    if isinstance(record, dict) and isinstance(record.get("type"), str):
        return record
    as_object(harness, record)
    raise DialectError(harness, "a record has a type")


def require(harness: str, record: dict[str, Any], name: str, kind: str | None = None) -> str:
    """The text of a field that must be there; `kind` names the record where its `type` does not.

    Raises:
        DialectError: it is absent or no text.
    """
    value = record.get(name)
    if not isinstance(value, str):
        raise DialectError(harness, f"{kind or record.get('type')} without {name}")
    return value


def either(record: dict[str, Any], *names: str) -> Any:
    """The value of the first of these fields that is there and not null; else None."""
    return next((value for name in names if (value := record.get(name)) is not None), None)


def optional_text(record: dict[str, Any], *names: str) -> str | None:
    """The first of these fields that holds a text that is not empty."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def count(value: object) -> int:
    """A token count; what is absent or no count is 0, as harnesses leave counts out at will."""
    if type(value) is int and 0 <= value <= MAX_INTEGER:  # nearly every one
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_INTEGER:
        return 0
    return int(value)


def text_of(harness: str, content: object) -> str:
    """The text of a content: itself, or its text parts joined.

    Raises:
        DialectError: it is neither a text nor a list of parts.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise DialectError(harness, f"content is a text or a list, not {type(content).__name__}")
    return "".join([part if isinstance(part, str) else _part_text(part) for part in content])


def _part_text(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    return text if isinstance(text, str) else ""
