"""Paths of files in URLs, and back: a path is bytes to the system, whatever its encoding."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote

__all__ = ["as_written", "path_in", "path_of"]

# What ends a path in a URL or begins an escape, what would break a line, and bytes that are no UTF-8. All else stays as
# it is: people read these.
_ESCAPED = re.compile("[%?#\x00-\x1f\x7f\udc80-\udcff]")


def path_of(text: str) -> str:
    """The path that `text` in a URL names: `%23`-style escapes are undone, those of bytes that are no text too."""
    return unquote(text, errors="surrogateescape")


def path_in(path: str) -> str:
    """`path` as it stands in the URL of a store: `path_of` gives it back."""
    return _ESCAPED.sub(lambda found: quote(os.fsencode(found[0])), path)


def as_written(path: str) -> str:
    """`path` as somebody would write it in a URL, on any command line."""
    return quote(path, errors="surrogateescape")
