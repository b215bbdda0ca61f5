"""Text that others wrote, made safe for a terminal, and what the commands print through."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from incarnate.domain.codec import encode_json

__all__ = ["make_console", "printable", "say", "write_document", "write_json", "write_json_array", "write_json_lines"]

# What moves the cursor, changes its colour, sets a title, turns the writing round or cannot be written at all.
_CONTROLS = (*range(0x09), *range(0x0A, 0x20))
_BEYOND_ASCII = (
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
)
_SURROGATES = range(0xD800, 0xE000)


def _escapes(codes: Iterable[int]) -> dict[int, str]:
    return {code: f"\\u{code:04x}" for code in codes}


_PRINTABLE = _escapes((*_CONTROLS, *_BEYOND_ASCII, *_SURROGATES))
_PRINTABLE_JSON = _escapes(_BEYOND_ASCII)  # the encoder has escaped the controls, where they are no line feeds


def printable(text: str) -> str:
    """`text` as one line: what could harm a terminal, and a line feed, is written as its escape."""
    return text.translate(_PRINTABLE)


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes nothing in a text for its own markup."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print one line of texts and `(text, style)` pairs."""
    safe = [printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in parts]
    if console.is_terminal:
        console.print(Text.assemble(*safe))
    else:  # the same text, without rich's work of laying it out
        console.file.write("".join([part if isinstance(part, str) else part[0] for part in safe]) + "\n")


def write_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    _write(encode_json(value) + b"\n")


def write_json_lines(lines: Iterable[bytes]) -> None:
    """Print encoded values, one a line, as they come."""
    for line in lines:
        _write(line + b"\n")


def write_json_array(items: Iterable[bytes]) -> None:
    """Print encoded values as one JSON array, one a line, as they come."""
    opening = b"["
    for item in items:
        _write(opening + b"\n" + item)
        opening = b","
    _write(b"[]\n" if opening == b"[" else b"\n]\n")


def write_document(pieces: Iterable[bytes]) -> None:
    """Print a document whose texts were made safe for what shows it, piece by piece."""
    for piece in pieces:
        _write(piece)


def _write(data: bytes) -> None:
    # Not click.echo, which flushes each time.
    if sys.stdout.isatty():
        # In JSON these can only stand inside a string, where their escapes mean the same.
        data = data.decode("utf-8", "replace").translate(_PRINTABLE_JSON).encode()
    sys.stdout.buffer.write(data)
